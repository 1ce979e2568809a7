//! Tests of single plans of slices in the hub: what an importer gets or keeps, and exports that are not distributed.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildNamespace, IntoObject, claim, distributed_slice, in_hub_of,
    member_agent, named, namespace, resolved, seconds, service_import, slice, slice_export,
};
use crate::support::view::{NOW, claimed_hub_view, events, hub_view, observe_removal, planned, undecodable, writes};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::model::{HubSlice, ImportStatus, ImportType, Kind, Object, ServiceImport};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Patch, Write};

/// Returns a marked exported slice of `work/app` from member-1.
fn export() -> HubSlice {
    slice_export("member-1", &slice("work/app-1")).marked()
}

fn key(export: &HubSlice) -> Key {
    Key::Slice(export.meta.name.name.clone())
}

fn distributed_key(export: &HubSlice, importer: &str) -> Key {
    Key::DistributedSlice { slice: export.meta.name.name.clone(), importer: names::member_namespace(importer) }
}

/// Returns a ServiceImport that lists these exporters and records member-2 as the importer.
fn import_of(exporters: &[&str]) -> ServiceImport {
    service_import("work/app").showing(resolved(exporters)).claimed_by(&["member-2"])
}

fn exports(slices: &[&HubSlice]) -> Vec<Object> {
    slices.iter().map(|slice| Object::EndpointSliceExport((*slice).clone())).collect()
}

fn distributed_slices(slices: &[&HubSlice]) -> Vec<Object> {
    slices.iter().map(|slice| Object::EndpointSliceImport((*slice).clone())).collect()
}

fn hub(import: &ServiceImport, slices: Vec<Object>) -> Planner {
    claimed_hub_view(slices.into_iter().chain([import.clone().object()]))
}

fn mark(export: &HubSlice) -> Write {
    Write::add_finalizer(Kind::EndpointSliceExport, &export.meta)
}

fn unmark(export: &HubSlice) -> Write {
    Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta)
}

fn is_create(write: &Write) -> bool {
    matches!(write.action, Action::Create(_))
}

/// Also rules D1, D6.
#[test]
fn an_export_has_its_finalizer_while_it_is_distributed_or_perhaps_imported() {
    let unmarked = slice_export("member-1", &slice("work/app-1"));
    let distributed = distributed_slice("member-2", &unmarked);
    let slices = [exports(&[&unmarked]), distributed_slices(&[&distributed])].concat();
    let of_no_exporter = hub(&import_of(&["member-9"]), slices);
    assert_eq!(writes(&of_no_exporter, &key(&unmarked)), [mark(&unmarked)], "an importer has it");
    let view = hub_view(exports(&[&export()]));
    assert_eq!(writes(&view, &key(&export())), [], "without a ServiceImport nobody knows who imports it");
}

/// Also rule A13.
#[test]
fn a_slice_is_planned_again_when_the_features_of_an_importer_end() {
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let slices = exports(&[&export()]).into_iter().chain([agent.clone()]).collect();
    let mut view = hub(&import_of(&["member-1"]), slices);
    assert_eq!(view.plan(&key(&export()), NOW).again, None);
    observe_removal(&mut view, &agent);
    assert_eq!(view.plan(&key(&export()), NOW).again, Some(seconds(80)), "a minute after its MemberAgent");
}

/// Also rule U14.
#[test]
fn only_a_slice_that_differs_waits_for_the_first_announcement_of_its_importer() {
    let current = distributed_slice("member-2", &export());
    let other = current.clone().with_addresses(&["10.0.0.9"], 1);
    let table = [
        ("current", current, None),
        ("other content", other.clone(), Some(seconds(370))),
        ("other content, and being deleted", other.deleting(), None),
    ];
    for (why, distributed, again) in table {
        let view =
            hub(&import_of(&["member-1"]), [exports(&[&export()]), distributed_slices(&[&distributed])].concat());
        assert_eq!(view.plan(&distributed_key(&export(), "member-2"), NOW).again, again, "{why}");
    }
}

/// Also rule D1.
#[test]
fn a_distributed_slice_gets_the_service_of_its_export() {
    let mut distributed = distributed_slice("member-2", &export());
    distributed.spec.owner = named("work/other");
    let view = hub(&import_of(&["member-1"]), [exports(&[&export()]), distributed_slices(&[&distributed])].concat());
    let update = Write::patch(&distributed.meta, Patch::EndpointSliceImport(export().spec));
    assert_eq!(writes(&view, &distributed_key(&export(), "member-2")), [update]);
}

/// Also rules D15, F7.
#[test]
fn a_member_without_headless_services_keeps_its_slice_while_the_import_is_deleted() {
    let status = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-1"]) };
    let import = service_import("work/app").showing(status);
    let agent = member_agent("member-2", Features::ALL.without(Feature::Headless), Features::ALL);
    let distributed = distributed_slice("member-2", &export());
    let slices = [exports(&[&export()]), distributed_slices(&[&distributed])].concat();
    let beside = [claim("member-2", &import).marked().object(), agent.object()];
    let view = |import: ServiceImport| hub_view(slices.iter().chain(&beside).cloned().chain([import.object()]));
    let key = distributed_key(&export(), "member-2");
    assert_eq!(writes(&view(import.clone().deleting()), &key), []);
    assert_eq!(writes(&view(import), &key), [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
}

/// Also rule D15.
#[test]
fn a_claim_that_is_not_recorded_yet_brings_no_slice() {
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let of_importer = claim("member-2", &import).marked().object();
    let view = hub_view(exports(&[&export()]).into_iter().chain([import.object(), of_importer]));
    assert_eq!(writes(&view, &distributed_key(&export(), "member-2")), []);
}

/// Also rule D4.
#[test]
fn an_export_beside_an_undecodable_one_of_its_name_keeps_its_finalizer_for_its_own_slices_only() {
    let mut dying = export().uid("another").deleting();
    dying.meta.name = in_hub_of("member-3", &export().meta.name.name);
    let of_undecodable = distributed_slice("member-2", &export());
    let mut own = of_undecodable.clone();
    own.spec.reference.cluster = "member-3".into();
    let table = [
        ("of the undecodable one", of_undecodable, vec![unmark(&dying)]),
        ("its own", own.clone(), vec![]),
        ("its own, and being deleted", own.deleting(), vec![unmark(&dying)]),
    ];
    for (why, distributed, expected) in table {
        let import = service_import("work/app").showing(resolved(&["member-3"]));
        let mut view = hub(&import, [exports(&[&dying]), distributed_slices(&[&distributed])].concat());
        undecodable(&mut view, Kind::EndpointSliceExport, &export().meta.name);
        assert_eq!(view.plan(&key(&export()), NOW).writes, expected, "{why}");
    }
}

/// Also rule C9.
#[test]
fn without_an_import_slices_stay_for_a_claim_that_may_be_undecodable() {
    let distributed = distributed_slice("member-2", &export());
    let objects = [exports(&[&export()]), distributed_slices(&[&distributed])].concat();
    let mut view = hub_view(objects.clone());
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-2", "work-web"));
    assert_eq!(writes(&view, &key(&export())), []);
    let dying = claim("member-2", &service_import("work/app")).marked().deleting();
    let mut view = hub_view(objects.into_iter().chain([dying.object()]));
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-2", "work-web"));
    let withdrawn = [Write::delete(Kind::EndpointSliceImport, &distributed.meta)];
    assert_eq!(writes(&view, &key(&export())), withdrawn, "its claim of the Service is deleted");
}

// === Handover ===

/// Also rule D10.
#[test]
fn a_removal_waits_for_a_slice_that_a_conflicted_exporter_still_changes() {
    let (old, new) = (export().deleting(), slice_export("member-1", &slice("work/app-2")).marked());
    let old_distributed = distributed_slice("member-2", &export());
    let outdated = distributed_slice("member-2", &new).with_addresses(&["10.0.0.2"], 0);
    let slices = exports(&[&old, &new]);
    let both = [slices.clone(), distributed_slices(&[&old_distributed, &outdated])].concat();
    assert_eq!(writes(&hub(&import_of(&["member-9"]), both), &key(&old)), []);
    let view = hub(&import_of(&["member-9"]), [slices, distributed_slices(&[&old_distributed])].concat());
    let withdrawn = [Write::delete(Kind::EndpointSliceImport, &old_distributed.meta)];
    assert_eq!(writes(&view, &key(&old)), withdrawn, "it gets no new slice");
}

/// Also rule D15.
#[test]
fn a_removal_waits_for_a_new_slice_while_a_new_import_lists_no_exporters() {
    let (old, new) = (export(), slice_export("member-1", &slice("work/app-2")).marked());
    let import = service_import("work/app");
    let of_importer = claim("member-2", &import).east_west().marked().with_status(resolved(&["member-1"]));
    let emptied = old.clone().with_addresses(&[], 2);
    let slices = [exports(&[&emptied, &new]), distributed_slices(&[&distributed_slice("member-2", &old)])].concat();
    let view = hub_view(slices.into_iter().chain([import.object(), of_importer.object()]));
    assert_eq!(writes(&view, &key(&old)), []);
}

// === Several exports with one name ===

/// Returns an exported slice of a cluster under the name `app-1`, which contains no cluster.
fn rival(cluster: &str, second: i64) -> HubSlice {
    let source = slice("work/app-1").uid(&format!("uid-in-{cluster}"));
    slice_export(cluster, &source).called("app-1").created(seconds(second)).marked()
}

/// Also rules T6, T11.
#[test]
fn a_denied_export_holds_neither_a_name_nor_a_source_slice() {
    let mut denied = rival("member-3", 1);
    denied.spec.owner = named("closed/app");
    let holder = rival("member-1", 2);
    let mut later = rival("member-4", 9).called("app-2");
    later.spec.reference.uid = holder.spec.reference.uid.clone();
    let closed = namespace("closed").exported_from_by("").object();
    let slices = exports(&[&denied, &holder, &later]).into_iter().chain([closed]).collect();
    let view = hub(&import_of(&["member-1", "member-4"]), slices);
    assert!(writes(&view, &key(&holder)).iter().any(is_create));
    assert!(!writes(&view, &key(&later)).iter().any(is_create), "another export holds its source slice");
}

/// Also rule D8.
#[test]
fn an_export_that_loses_its_name_gets_one_event() {
    let (holder, loser) = (rival("member-1", 1), rival("member-4", 2));
    let of_loser = ["member-2", "member-3"].map(|importer| distributed_slice(importer, &loser));
    let mut unmarked = loser.clone();
    unmarked.meta.finalizers.ours = false;
    let import = import_of(&["member-1", "member-4"]).claimed_by(&["member-2", "member-3"]);
    for (why, loser, number) in [
        ("it was distributed", loser.clone(), 1),
        ("it gets its finalizer", unmarked, 1),
        ("it is being deleted", loser.deleting(), 0),
    ] {
        let view =
            hub(&import, [exports(&[&holder, &loser]), distributed_slices(&[&of_loser[0], &of_loser[1]])].concat());
        let plan = planned(&view, &key(&holder));
        assert_eq!(plan.writes.iter().filter(|write| write.kind() == Kind::EndpointSliceImport).count(), 2, "{why}");
        assert_eq!(events(&view, &key(&holder)), vec!["NameHeldByAnother"; number], "{why}");
    }
}
