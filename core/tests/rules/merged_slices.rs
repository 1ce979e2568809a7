//! Tests of the distribution of slices to members that import Services of the standard API.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildNamespace, IntoObject, claim, conflict,
    distributed_slice, in_hub_of, internal_export, mcs_part, member_agent, merged_service_import, named, namespace,
    no_conflict, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{NOW, hub_view, observe_change, observe_removal, undecodable, writes};
use fleetnet_core::features::Features;
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::limits::MERGED_CLUSTERS_MAX;
use fleetnet_core::model::{
    ExportedBy, HubSlice, ImportType, InternalServiceExport, Kind, McsExport, McsProperties, MergedCluster,
    MergedImport, MergedServiceImport, Object, SessionAffinity,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_types::{Text, WatchState};
use std::sync::Arc;

/// API by which a test exports or imports a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Fleet,
    Mcs,
    Both,
}

fn key(export: &HubSlice) -> Key {
    Key::Slice(export.meta.name.name.clone())
}

/// Returns the InternalServiceExport of `work/app` from member-1.
fn exported(by: By) -> InternalServiceExport {
    let export = internal_export("member-1", &service("work/app"));
    let mcs = |exported_by| McsExport { exported_by, ..mcs_part() };
    match by {
        By::Fleet => export,
        By::Mcs => export.mcs(mcs(ExportedBy::McsApi)),
        By::Both => export.mcs(mcs(ExportedBy::Both)),
    }
}

/// Returns a MergedServiceImport that its member uses.
fn used_by(importer: &str) -> MergedServiceImport {
    let import = MergedImport {
        import_type: ImportType::ClusterSetIp,
        ports: Vec::new(),
        session_affinity: SessionAffinity::None,
        properties: McsProperties::default(),
        clusters: vec![MergedCluster { cluster: "member-1".into(), ports: None }],
    };
    merged_service_import(importer, "work/app", &Arc::new(import)).marked()
}

/// Returns the objects with which member-2 imports `work/app`, beside its agent. `accepted` are the exporters that the
/// ServiceImport lists.
fn importing(by: By, accepted: &[&str]) -> Vec<Object> {
    let import = service_import("work/app").showing(resolved(accepted));
    let recorded = if by == By::Mcs { import } else { import.claimed_by(&["member-2"]) };
    let claimed = claim("member-2", &recorded).east_west().marked().with_status(recorded.status.clone()).object();
    let mut objects = vec![member_agent("member-2", Features::ALL, Features::ALL).object(), recorded.object()];
    objects.extend((by != By::Mcs).then_some(claimed));
    objects.extend((by != By::Fleet).then(|| used_by("member-2").object()));
    objects
}

/// Returns a marked exported slice of `work/app`.
fn export() -> HubSlice {
    slice_export("member-1", &slice("work/app-1")).marked()
}

fn creates(export: &HubSlice, importer: &str) -> Write {
    let at = in_hub_of(importer, &export.meta.name.name);
    Write::create(at, Desired::EndpointSliceImport(export.spec.clone()))
}

fn deletes(distributed: &HubSlice) -> Write {
    Write::delete(Kind::EndpointSliceImport, &distributed.meta)
}

/// Rule D17: The MergedServiceImport of a member has the finalizer of the member agent
/// Then: The member gets the slices of all exports of the Service by the standard API, as long as it has the right to
/// import. The hub needs neither a ServiceImport nor the namespace of the Service. While MergedServiceImports are not
/// listed, or that of the member is undecodable, its distributed slices of such exports stay. While rights are unknown,
/// it gets changes and no new slices
#[test]
fn a_member_gets_slices_once_its_merged_import_has_its_finalizer() {
    let (unmarked, marked) = (slice_export("member-1", &slice("work/app-1")), export());
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let fixed = [exported(By::Mcs).object(), agent];
    let view = |slice: &HubSlice, import: MergedServiceImport| {
        hub_view(fixed.iter().cloned().chain([Object::EndpointSliceExport(slice.clone()), import.object()]))
    };
    let mut unused = used_by("member-2");
    unused.meta.finalizers.ours = false;
    assert_eq!(
        writes(&view(&marked, unused.clone()), &key(&marked)),
        [Write::remove_finalizer(Kind::EndpointSliceExport, &marked.meta)]
    );
    assert_eq!(writes(&view(&unmarked, unused.clone()), &key(&unmarked)), []);
    let mark = Write::add_finalizer(Kind::EndpointSliceExport, &unmarked.meta);
    assert_eq!(
        writes(&view(&unmarked, used_by("member-2")), &key(&unmarked)),
        [mark],
        "without a ServiceImport in the hub"
    );
    assert_eq!(writes(&view(&marked, used_by("member-2")), &key(&marked)), [creates(&marked, "member-2")]);
    let dying = used_by("member-2").deleting();
    let distributed = distributed_slice("member-2", &marked).marked();
    let mut left = view(&marked, dying);
    observe_change(&mut left, Object::EndpointSliceImport(distributed.clone()));
    assert_eq!(writes(&left, &key(&marked)), [deletes(&distributed)], "the import goes, and its slices go with it");

    let mut changing = view(&marked, unused);
    let mut requeue = Vec::new();
    changing.clone().applied(used_by("member-2").version(2).object(), NOW, &mut requeue);
    let distributed_key =
        Key::DistributedSlice { slice: marked.meta.name.name.clone(), importer: names::member_namespace("member-2") };
    assert!(requeue.contains(&distributed_key), "no plan has read that the importer has no slice");
    assert!(observe_change(&mut changing, used_by("member-2").version(2).object()).contains(&key(&marked)));
    assert_eq!(writes(&changing, &key(&marked)), [creates(&marked, "member-2")]);
    let second = slice_export("member-1", &slice("work/app-2")).marked();
    assert!(observe_change(&mut changing, Object::EndpointSliceExport(second.clone())).contains(&key(&second)));
    assert_eq!(writes(&changing, &key(&second)), [creates(&second, "member-2")], "a new slice");
    observe_change(&mut changing, Object::EndpointSliceImport(distributed.clone()));
    assert!(observe_removal(&mut changing, &used_by("member-2").object()).contains(&key(&marked)));
    assert_eq!(writes(&changing, &key(&marked)), [deletes(&distributed)]);
}

/// Rule D16: Both APIs export a Service, or only the standard API does
/// Then: Members with a claim (InternalServiceImport) get slices of exports that the fleet's API requests and that are
/// not in conflict. If an export that both APIs request is in conflict by the fleet's API, these members lose its
/// distributed slices, and members with a MergedServiceImport keep them
///
/// Also rule D17.
#[test]
fn each_api_supplies_its_own_importers() {
    let (export, distributed) = (export(), distributed_slice("member-2", &export()).marked());
    let (accepted, loses) = (Some(no_conflict("work/app")), Some(conflict("work/app")));
    // Each row: the exporting API, the outcome by the fleet's API, and what importers by each API get.
    let table = [
        (By::Fleet, &accepted, [("fleet", By::Fleet, true), ("mcs", By::Mcs, false), ("both", By::Both, true)]),
        (By::Both, &accepted, [("fleet", By::Fleet, true), ("mcs", By::Mcs, true), ("both", By::Both, true)]),
        (By::Both, &loses, [("fleet", By::Fleet, false), ("mcs", By::Mcs, true), ("both", By::Both, true)]),
        (By::Mcs, &None, [("fleet", By::Fleet, false), ("mcs", By::Mcs, true), ("both", By::Both, true)]),
    ];
    for (exporting, outcome, importers) in table {
        let mut internal = exported(exporting);
        internal.conditions = outcome.iter().cloned().collect();
        for (name, importer, gets) in importers {
            let listed: &[&str] = if *outcome == accepted { &["member-1"] } else { &["member-9"] };
            let objects = importing(importer, listed).into_iter().chain([internal.clone().object()]);
            let mut view = hub_view(objects.chain([Object::EndpointSliceExport(export.clone())]));
            let shown = format!("{exporting:?} {outcome:?} {name}");
            let created = writes(&view, &key(&export)).contains(&creates(&export, "member-2"));
            assert_eq!(created, gets, "{shown}");
            observe_change(&mut view, Object::EndpointSliceImport(distributed.clone()));
            let written = writes(&view, &key(&export));
            assert_eq!(written, if gets { vec![] } else { vec![deletes(&distributed)] }, "{shown}");
        }
    }
}

/// Also rules D16, D17.
#[test]
fn an_export_that_begins_and_ends_by_one_api_changes_the_slices_of_its_importers_only() {
    let export = export();
    let distributed = |importer: &str| distributed_slice(importer, &export).marked();
    let objects = importing(By::Fleet, &["member-1"]).into_iter().chain([used_by("member-3").object()]);
    let agent = member_agent("member-3", Features::ALL, Features::ALL).object();
    let distributed_slices =
        ["member-2", "member-3"].map(|importer| Object::EndpointSliceImport(distributed(importer)));
    let slices = [Object::EndpointSliceExport(export.clone())].into_iter().chain(distributed_slices);
    let mut view = hub_view(objects.chain([exported(By::Both).object(), agent]).chain(slices));
    assert_eq!(writes(&view, &key(&export)), []);
    assert!(observe_change(&mut view, exported(By::Mcs).version(2).object()).contains(&key(&export)));
    assert_eq!(writes(&view, &key(&export)), [deletes(&distributed("member-2"))]);
    assert!(observe_change(&mut view, exported(By::Fleet).version(3).object()).contains(&key(&export)));
    assert_eq!(writes(&view, &key(&export)), [deletes(&distributed("member-3"))]);
    assert!(observe_removal(&mut view, &exported(By::Fleet).object()).contains(&key(&export)));
    assert_eq!(writes(&view, &key(&export)), [], "it will be created again, perhaps by both APIs");
}

/// Returns the view of a hub agent in which member-2 has a slice of a Service that it imports by the standard API only,
/// and the slice.
fn with_distributed(others: impl IntoIterator<Item = Object>) -> (Planner, HubSlice) {
    let export = export();
    let distributed = Object::EndpointSliceImport(distributed_slice("member-2", &export).marked());
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let changed = export.with_addresses(&["10.0.0.9"], 2);
    let objects = [exported(By::Mcs).object(), agent, Object::EndpointSliceExport(changed.clone()), distributed];
    (hub_view(objects.into_iter().chain(others)), changed)
}

/// Describes what a plan does with the slice that member-2 has.
fn done(view: &Planner, export: &HubSlice) -> &'static str {
    match &writes(view, &key(export))[..] {
        [] => "nothing",
        [Write { action: Action::Patch { .. }, .. }] => "update",
        [Write { action: Action::Delete { .. }, .. }] => "delete",
        other => panic!("{other:?}"),
    }
}

/// Also rule D17.
#[test]
fn slices_of_merged_imports_stay_while_something_is_unknown() {
    let (view, changed) = with_distributed([used_by("member-2").object()]);
    assert_eq!(done(&view, &changed), "update");
    let (view, changed) = with_distributed([]);
    assert_eq!(done(&view, &changed), "delete");
    let (mut view, changed) = with_distributed([]);
    view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(done(&view, &changed), "nothing", "not listed");
    view.watch_state(Kind::MergedServiceImport, WatchState::Absent, NOW, &mut Vec::new());
    assert_eq!(done(&view, &changed), "nothing", "perhaps the hub agent has no right to list them");
    observe_change(&mut view, exported(By::Fleet).version(2).object());
    assert_eq!(done(&view, &changed), "delete", "the standard API does not export the slice");
    let (mut view, changed) = with_distributed([]);
    view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
    view.watch_state(Kind::InternalServiceExport, WatchState::Incomplete, NOW, &mut Vec::new());
    observe_removal(&mut view, &exported(By::Mcs).object());
    assert_eq!(done(&view, &changed), "nothing", "perhaps the standard API exports the slice");
    let (mut view, changed) = with_distributed([]);
    undecodable(&mut view, Kind::MergedServiceImport, &in_hub_of("member-2", "of-another-service"));
    assert_eq!(done(&view, &changed), "delete");
    let (mut view, changed) = with_distributed([]);
    undecodable(&mut view, Kind::MergedServiceImport, &used_by("member-2").meta.name);
    assert_eq!(done(&view, &changed), "nothing", "undecodable");
    observe_change(&mut view, namespace("work").imported_from_by("member-3").object());
    assert_eq!(done(&view, &changed), "delete", "a denial counts all the same");
    let (mut view, changed) = with_distributed([used_by("member-2").object()]);
    observe_removal(&mut view, &exported(By::Mcs).object());
    assert_eq!(done(&view, &changed), "update", "the Service is created again");
    for (right, expected) in [("member-2", "update"), ("member-3", "delete")] {
        let (view, changed) =
            with_distributed([used_by("member-2").object(), namespace("work").imported_from_by(right).object()]);
        assert_eq!(done(&view, &changed), expected, "{right} may import");
    }
    let (mut view, changed) = with_distributed([used_by("member-2").object()]);
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(done(&view, &changed), "update", "perhaps it may import");
    let name: Text = changed.meta.name.name.clone();
    observe_removal(&mut view, &Object::EndpointSliceImport(distributed_slice("member-2", &changed)));
    assert_eq!(writes(&view, &Key::Slice(name)), [], "but it gets no new slice");
    let import = service_import("work/app").showing(resolved(&["member-1"])).object();
    observe_change(&mut view, exported(By::Both).version(9).object());
    observe_change(&mut view, import);
    assert_eq!(writes(&view, &key(&changed)), [], "also from an exporter that keeps its right");
}

/// Also rule D17.
#[test]
fn an_export_that_becomes_one_of_the_mcs_api_only_ends_the_slices_of_claims() {
    let (export, distributed) = (export(), distributed_slice("member-2", &export()).marked());
    let slices = [Object::EndpointSliceExport(export.clone()), Object::EndpointSliceImport(distributed.clone())];
    let objects = importing(By::Fleet, &["member-9"]).into_iter().chain(slices);
    let mut view = hub_view(objects.chain([exported(By::Fleet).object()]));
    // Nothing is merged, because the right of the exporter is unknown.
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    observe_change(&mut view, Object::EndpointSliceExport(export.clone().version(2)));
    assert_eq!(writes(&view, &key(&export)), []);
    assert!(observe_change(&mut view, exported(By::Mcs).version(2).object()).contains(&key(&export)));
    assert_eq!(writes(&view, &key(&export)), [deletes(&distributed)]);
}

/// Also rule D17.
#[test]
fn of_two_exports_of_one_slice_that_of_a_merged_export_is_distributed() {
    let source = slice("work/app-1");
    let [first, second] = ["member-1", "member-3"].map(|cluster| slice_export(cluster, &source).marked());
    let second = second.created(seconds(9));
    let younger = internal_export("member-3", &service("work/app")).mcs(mcs_part());
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let slices = [&first, &second].map(|slice| Object::EndpointSliceExport(slice.clone()));
    let objects = [exported(By::Mcs).object(), younger.object(), agent, used_by("member-2").object()];
    let mut view = hub_view(objects.into_iter().chain(slices));
    assert_eq!(writes(&view, &key(&first)), [creates(&first, "member-2")]);
    assert!(!writes(&view, &key(&second)).contains(&creates(&second, "member-2")));
    let requeued = observe_change(&mut view, exported(By::Mcs).deleting().version(2).object());
    assert!(requeued.contains(&key(&second)), "{requeued:?}");
    assert_eq!(writes(&view, &key(&second)), [creates(&second, "member-2")]);
}

/// Also rule D17.
#[test]
fn endpoints_that_move_to_another_slice_stay_until_its_importer_has_it() {
    let (mut view, changed) = with_distributed([used_by("member-2").object()]);
    let second = slice_export("member-1", &slice("work/app-2")).marked();
    let moved: Vec<String> = changed.spec.content.endpoints.iter().map(|it| it.addresses[0].to_string()).collect();
    let second = second.with_addresses(&moved.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    observe_change(&mut view, Object::EndpointSliceExport(second.clone()));
    let present = Object::EndpointSliceImport(distributed_slice("member-2", &changed).marked().version(2));
    observe_change(&mut view, present);
    let emptied = changed.with_addresses(&[], 3);
    observe_change(&mut view, Object::EndpointSliceExport(emptied.clone().version(2)));
    assert_eq!(done(&view, &emptied), "nothing");
    observe_change(&mut view, Object::EndpointSliceImport(distributed_slice("member-2", &second).marked()));
    assert_eq!(done(&view, &emptied), "update");
}

/// Rule MC10: A Service is created again in an exporting cluster, so its InternalServiceExport is replaced
/// Then: The cluster stays in the MergedServiceImports at its place while slices of the Service from this cluster are
/// in the hub, and there are fewer than 1,000 other clusters
#[test]
fn a_merged_import_stays_while_an_exporter_creates_its_service_again() {
    let import_key = Key::MergedImport { service: named("work/app"), importer: names::member_namespace("member-2") };
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let slice = Object::EndpointSliceExport(export());
    let mut view = hub_view([exported(By::Mcs).object(), agent, used_by("member-2").object(), slice.clone()]);
    observe_change(&mut view, exported(By::Mcs).marked().deleting().version(2).object());
    assert_eq!(writes(&view, &import_key), [], "its slices are still in the hub");
    observe_removal(&mut view, &exported(By::Mcs).object());
    assert_eq!(writes(&view, &import_key), [], "its slices are still in the hub");
    let mut restarted =
        hub_view([member_agent("member-2", Features::ALL, Features::ALL).object(), used_by("member-2").object()]);
    restarted.watch_state(Kind::EndpointSliceExport, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(writes(&restarted, &import_key), [], "its slices may be in the hub");
    let other = internal_export("member-3", &service("work/app")).mcs(mcs_part());
    observe_change(&mut view, other.clone().object());
    let [Write { action: Action::Patch { patch: Patch::MergedServiceImport { import, .. }, .. }, .. }] =
        &writes(&view, &import_key)[..]
    else {
        panic!("another cluster joins")
    };
    let clusters: Vec<&str> = import.clusters.iter().map(|part| &*part.cluster).collect();
    assert_eq!(clusters, ["member-1", "member-3"], "and the first keeps its place");
    observe_removal(&mut view, &other.object());
    let removed = observe_removal(&mut view, &slice);
    assert!(removed.contains(&import_key));
    let deletion = Write::delete(Kind::MergedServiceImport, &used_by("member-2").meta);
    assert_eq!(writes(&view, &import_key), std::slice::from_ref(&deletion));
    observe_change(&mut view, slice);
    observe_change(&mut view, namespace("work").exported_from_by("").object());
    assert_eq!(writes(&view, &import_key), [deletion], "it may not export any more");
}

/// Also rules D17, MC10.
#[test]
fn a_deleted_export_of_the_mcs_api_brings_no_new_slices() {
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let dying = exported(By::Mcs).marked().deleting();
    let objects = [dying.object(), agent, used_by("member-2").object(), Object::EndpointSliceExport(export())];
    assert!(!writes(&hub_view(objects), &key(&export())).contains(&creates(&export(), "member-2")));
}

/// Also rule MC10.
#[test]
fn a_merged_import_never_has_more_clusters_than_a_server_accepts() {
    let import_key = Key::MergedImport { service: named("work/app"), importer: names::member_namespace("member-2") };
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    // The slices of member-1 are in the hub, its export is not.
    let mut objects = vec![agent, used_by("member-2").object(), Object::EndpointSliceExport(export())];
    let exporters = (2..=MERGED_CLUSTERS_MAX + 1).map(|number| format!("member-{number}"));
    objects.extend(exporters.map(|id| internal_export(&id, &service("work/app")).mcs(mcs_part()).object()));
    let view = hub_view(objects);
    let [Write { action: Action::Patch { patch: Patch::MergedServiceImport { import, .. }, .. }, .. }] =
        &writes(&view, &import_key)[..]
    else {
        panic!("the other clusters join")
    };
    assert_eq!(import.clusters.len(), MERGED_CLUSTERS_MAX);
    assert!(import.clusters.iter().all(|part| &*part.cluster != "member-1"), "it has no place");
}

/// Rule MC9: A user changes the Service in a MergedServiceImport
/// Then: The hub agent restores the object of the Service that its name belongs to. It deletes the object if nobody
/// exports this Service any more, and removes the finalizer of the member agent, which does not know the Service any
/// more
#[test]
fn a_merged_import_of_another_service_under_this_name_is_deleted() {
    let other = MergedServiceImport { service: named("work/other"), ..used_by("member-2") };
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let view = hub_view([agent, other.clone().object()]);
    let importer = names::member_namespace("member-2");
    let of_other = Key::MergedImport { service: named("work/other"), importer };
    assert_eq!(writes(&view, &of_other), [Write::delete(Kind::MergedServiceImport, &other.meta)]);
    let mut view = view;
    let source = slice_export("member-1", &slice("work/other-1")).marked();
    let of_source = service("work/other");
    observe_change(&mut view, internal_export("member-1", &of_source).mcs(mcs_part()).object());
    observe_change(&mut view, Object::EndpointSliceExport(source.clone()));
    assert!(!writes(&view, &key(&source)).contains(&creates(&source, "member-2")), "it gives no slices");
    observe_change(&mut view, other.clone().deleting().version(2).object());
    let released = Write::remove_finalizer(Kind::MergedServiceImport, &other.deleting().version(2).meta);
    assert!(writes(&view, &of_other).contains(&released), "its member does not know what it was for");
}

/// Also rule MC9.
#[test]
fn a_deleted_merged_import_of_another_service_is_unmarked_once() {
    let mut dying = MergedServiceImport { service: named("work/other"), ..used_by("member-2") }.deleting();
    dying.meta.finalizers.ours = false;
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let importer = names::member_namespace("member-2");
    let of_other = Key::MergedImport { service: named("work/other"), importer };
    assert_eq!(writes(&hub_view([agent, dying.object()]), &of_other), [], "the server removes it");
}

/// Also rule D13.
#[test]
fn a_merged_import_is_unmarked_when_its_member_namespace_is_deleted() {
    let import_key = Key::MergedImport { service: named("work/app"), importer: names::member_namespace("member-2") };
    let dying = used_by("member-2").deleting();
    let own = |dying: bool| {
        let namespace = namespace("fleet-member-member-2");
        if dying { namespace.deleting().object() } else { namespace.object() }
    };
    let plan = |namespace: Object| -> Plan {
        let view = hub_view([dying.clone().object(), namespace]);
        crate::support::view::planned(&view, &import_key)
    };
    assert_eq!(plan(own(false)).writes, [], "its member removes the finalizer");
    assert_eq!(plan(own(true)).writes, [Write::remove_finalizer(Kind::MergedServiceImport, &dying.meta)]);
}
