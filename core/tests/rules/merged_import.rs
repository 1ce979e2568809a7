//! Tests of MergedServiceImports: which members get the merged import of a Service, and what the exports show.

use crate::support::build::{
    Build, BuildImport, BuildInternalExport, BuildNamespace, BuildService, IntoObject, condition, in_hub_of,
    internal_export, mcs_part, member_agent, merged_service_import, named, namespace, no_conflict, port, resolved,
    seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{
    NOW, blocking_reasons, events, hub_view, observe_change, observe_removal, planned, strict_hub_view, undecodable,
    writes,
};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::model::{
    ClusterSelection, Condition, ExportedBy, InternalServiceExport, Kind, McsExport, MergedImport, MergedServiceImport,
    Object, Place, Reference,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_types::WatchState;
use std::sync::Arc;

/// Returns the export of a cluster by the standard API. Clusters with a higher number have younger exports.
fn export(number: i64) -> InternalServiceExport {
    let service = service("work/app").ports(&[port("http", 80)]);
    internal_export(&format!("member-{number}"), &service).created(seconds(number)).mcs(mcs_part())
}

fn with_port(number: i64, port_number: i32) -> InternalServiceExport {
    InternalServiceExport { ports: vec![port("http", port_number)], ..export(number) }
}

fn agent(number: i64) -> Object {
    member_agent(&format!("member-{number}"), Features::ALL, Features::ALL).object()
}

fn key(number: i64) -> Key {
    let importer = names::member_namespace(&format!("member-{number}"));
    Key::MergedImport { service: named("work/app"), importer }
}

fn app() -> Key {
    Key::Service(named("work/app"))
}

/// Returns the import that a plan creates or sets.
fn written(plan: &Plan) -> Option<Arc<MergedImport>> {
    plan.writes.iter().find_map(|write| match &write.action {
        Action::Create(Desired::MergedServiceImport { import, .. })
        | Action::Patch { patch: Patch::MergedServiceImport { import, .. }, .. } => Some(Arc::clone(import)),
        _ => None,
    })
}

/// Returns the import that the hub agent gives to the first member.
fn import_of(exports: &[InternalServiceExport]) -> Arc<MergedImport> {
    let view = hub_view(exports.iter().cloned().map(IntoObject::object).chain([agent(1)]));
    written(&planned(&view, &key(1))).expect("a MergedServiceImport")
}

fn given(number: i64, import: &Arc<MergedImport>) -> MergedServiceImport {
    merged_service_import(&format!("member-{number}"), "work/app", import)
}

fn deletes(object: &MergedServiceImport) -> Vec<Write> {
    vec![Write::delete(Kind::MergedServiceImport, &object.meta)]
}

/// Also rule T39.
#[test]
fn with_the_strict_policy_a_service_of_a_namespace_that_the_hub_does_not_have_is_not_imported() {
    let given = given(2, &import_of(&[export(1)]));
    let mut view = strict_hub_view([export(1).object(), agent(1), agent(2), given.clone().object()]);
    assert_eq!(writes(&view, &key(1)), []);
    assert_eq!(writes(&view, &key(2)), deletes(&given));
    assert_eq!(events(&view, &app()), ["ExporterNotAllowed"]);
    observe_change(&mut view, namespace("work").object());
    assert_eq!(writes(&view, &key(1)).len(), 1);
    assert_eq!(writes(&view, &key(2)), []);
}

/// Rule MC5: The standard API exports a Service, or a member announces the feature `MulticlusterApi`
/// Then: The hub agent creates a MergedServiceImport for each Service in the namespace of each member with the feature.
/// The namespace of the Service need not exist in the hub, unless the hub agent runs with `--namespace-policy=strict`
/// or `listed` (rules T39 and T40). It updates the objects after each change of the merged import, and deletes them
/// after the last export or without the feature
#[test]
fn members_with_the_feature_get_the_merged_import_also_without_a_namespace_in_the_hub() {
    let without = member_agent("member-3", Features::ALL.without(Feature::McsApi), Features::ALL);
    let view = hub_view([export(1).object(), agent(1), agent(2), without.object()]);
    for number in [1, 2] {
        let at = in_hub_of(&format!("member-{number}"), &names::merged_import_name(&named("work/app")));
        let import = import_of(&[export(1)]);
        let desired =
            Desired::MergedServiceImport { service: named("work/app"), import, selection: ClusterSelection::default() };
        assert_eq!(writes(&view, &key(number)), [Write::create(at, desired)], "exporters import too");
    }
    assert_eq!(writes(&view, &key(3)), [], "its agent does not announce the feature");
    assert_eq!(writes(&view, &key(4)), [], "it has no agent");
    let import = import_of(&[export(1)]);
    assert_eq!(import.clusters.len(), 1);
    let view = hub_view([export(1).object(), agent(2), given(2, &import).object()]);
    assert_eq!(writes(&view, &key(2)), [], "it has it");
    let fleet_only = internal_export("member-1", &service("work/app"));
    assert_eq!(writes(&hub_view([fleet_only.object(), agent(2)]), &key(2)), [], "only the fleet's API exports it");
    let strange = InternalServiceExport {
        reference: Reference { source: named("work/a.b"), ..export(1).reference },
        ..export(1)
    };
    let Key::MergedImport { importer, .. } = key(2) else { unreachable!() };
    let of_strange = Key::MergedImport { service: named("work/a.b"), importer };
    assert_eq!(writes(&hub_view([strange.object(), agent(2)]), &of_strange), [], "no Service has this name");
}

/// Also rules H11, MC5.
#[test]
fn only_the_first_export_of_a_cluster_is_part_of_the_merged_import() {
    let mut second = with_port(1, 81).uid("second");
    second.meta.name = in_hub_of("member-1", "work-app-zzzzz");
    assert_eq!(import_of(&[export(1), second.clone()]), import_of(&[export(1)]));
    let agrees = verdict("False", "NoConflicts", "all exports of service work/app agree");
    let view = hub_view([export(1), second].map(IntoObject::object));
    assert_eq!(writes(&view, &app()), [shows(&export(1), &agrees)]);
}

/// Also rule MC5.
#[test]
fn a_merged_import_follows_the_exports_and_is_deleted_with_the_last() {
    let first = import_of(&[export(1)]);
    let mut view = hub_view([export(1).object(), agent(2), given(2, &first).object()]);
    assert!(observe_change(&mut view, with_port(3, 81).object()).contains(&key(2)));
    let both = import_of(&[export(1), with_port(3, 81)]);
    assert_eq!(written(&planned(&view, &key(2))), Some(Arc::clone(&both)));
    assert_eq!(both.clusters.len(), 2);
    observe_change(&mut view, given(2, &both).object());
    assert!(observe_removal(&mut view, &export(1).object()).contains(&key(2)));
    let second = written(&planned(&view, &key(2))).expect("a change");
    assert_eq!(second.ports[0].port, 81.into(), "the other one is the oldest now");
    observe_change(&mut view, given(2, &second).object());
    assert_eq!(observe_removal(&mut view, &with_port(3, 81).object()).last(), Some(&key(2)));
    assert_eq!(writes(&view, &key(2)), deletes(&given(2, &second)));
    let dying = given(2, &second).deleting();
    observe_change(&mut view, dying.object());
    assert_eq!(writes(&view, &key(2)), [], "its member removes the finalizer");
    assert!(observe_change(&mut view, export(1).object()).contains(&key(2)));
    assert_eq!(writes(&view, &key(2)), [], "it is created again when it is gone");
    observe_removal(&mut view, &given(2, &second).object());
    assert_eq!(written(&planned(&view, &key(2))), Some(first));
}

/// Rule MC8: An export of the standard API is denied, or the standard API does not export the Service from its cluster
/// any more
/// Then: The condition `multicluster.x-k8s.io/Conflict` of the export becomes Unknown
#[test]
fn an_export_that_is_no_part_of_the_import_any_more_shows_no_outcome() {
    let condition = verdict("True", "PortConflict", "they disagree");
    let left = InternalServiceExport { conditions: vec![condition], mcs: None, ..export(1) };
    let view =
        hub_view([left.clone().port_set_since(seconds(2)).object(), namespace("work").exported_from_by("").object()]);
    let shown = |view: &Planner| {
        let list = writes(view, &app()).into_iter().rev().find_map(|write| match write.action {
            Action::Patch { patch: Patch::InternalServiceExportConditions(list), .. }
            | Action::Patch { patch: Patch::InternalServiceExportMerge { conditions: list, precedence: _ }, .. } => {
                Some(list)
            }
            _ => None,
        });
        let list = list.into_iter().flatten().find(|it| &*it.condition_type == "multicluster.x-k8s.io/Conflict");
        list.map(|it| it.status.as_str())
    };
    assert_eq!(shown(&view), Some("True"), "the denial is written first");
    let denied = InternalServiceExport { mcs: Some(Arc::new(mcs_part())), ..left };
    let mut view = hub_view([denied.clone().object(), namespace("work").exported_from_by("").object()]);
    let Action::Patch { patch: Patch::InternalServiceExportConditions(list), .. } = &writes(&view, &app())[0].action
    else {
        panic!("the denial is written first")
    };
    let denied = InternalServiceExport { conditions: list.clone(), ..denied }.version(2);
    observe_change(&mut view, denied.object());
    assert_eq!(shown(&view), Some("Unknown"));
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(shown(&view), None, "perhaps it may export");
}

/// Also rule MC5.
#[test]
fn an_announcement_of_the_feature_is_enough_to_get_all_services_and_its_end_takes_them() {
    let mut view = hub_view([agent(2)]);
    assert!(observe_change(&mut view, export(1).object()).contains(&key(2)), "the Service is new");
    let mut view = hub_view([export(1).object()]);
    assert!(observe_change(&mut view, agent(2)).contains(&key(2)));
    let import = written(&planned(&view, &key(2))).expect("a MergedServiceImport");
    observe_change(&mut view, given(2, &import).object());
    let without = member_agent("member-2", Features::ALL.without(Feature::McsApi), Features::ALL).version(2);
    assert!(observe_change(&mut view, without.object()).contains(&key(2)));
    assert_eq!(writes(&view, &key(2)), deletes(&given(2, &import)));
    // The hub agent starts again, and finds the object of a Service that nobody exports.
    let mut view = hub_view([agent(2)]);
    assert_eq!(observe_change(&mut view, given(2, &import).object()), [key(2)]);
    assert_eq!(writes(&view, &key(2)), deletes(&given(2, &import)));
}

/// Rule MC2: InternalServiceExports or MergedServiceImports are not listed, or their kind is absent, or an object is
/// undecodable
/// Then: MergedServiceImports stay as they are. If the export of one cluster of a merged import may be undecodable,
/// this cluster stays in the import at its place, with those of its ports that other clusters serve too. The rest of
/// the import follows the exports
///
/// Also rule MC3.
#[test]
fn nothing_is_decided_while_something_is_unknown() {
    let import = import_of(&[export(1)]);
    let stale = given(2, &import_of(&[with_port(1, 81)]));
    let objects = || [with_port(3, 82).object(), agent(2), stale.clone().object()];
    assert_eq!(writes(&hub_view(objects()), &key(2)).len(), 1);
    for kind in [Kind::InternalServiceExport, Kind::MergedServiceImport] {
        for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
            let mut view = hub_view(objects());
            view.watch_state(kind, state, NOW, &mut Vec::new());
            assert_eq!(writes(&view, &key(2)), [], "{kind:?} {state:?}");
        }
    }
    let mut view = hub_view(objects());
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &key(2)), [], "perhaps nobody may export or import");
    let mut view = hub_view(objects());
    undecodable(&mut view, Kind::MergedServiceImport, &stale.meta.name);
    assert_eq!(writes(&view, &key(2)), []);
    let mut view = hub_view([export(1).object(), agent(2), given(2, &import).object()]);
    undecodable(&mut view, Kind::InternalServiceExport, &export(1).meta.name);
    assert_eq!(writes(&view, &key(2)), [], "its last state counts");
    let mut view = hub_view([export(1).object(), given(2, &import).object()]);
    view.watch_state(Kind::MemberAgent, WatchState::Absent, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &key(2)), [], "the member may have the feature");
    let mut view = hub_view(objects());
    view.watch_state(Kind::MemberAgent, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &key(2)), [], "the features of the members are not listed");
    let mut view = hub_view([agent(2), given(2, &import).object()]);
    undecodable(&mut view, Kind::EndpointSliceExport, &in_hub_of("member-1", "of-an-unknown-service"));
    assert_eq!(writes(&view, &key(2)), [], "perhaps it is a slice of the Service, which is created again");
    let mut view = hub_view([export(1).object()]);
    view.watch_state(Kind::InternalServiceExport, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &app()), [], "other exports may disagree");
    let agrees = verdict("False", "NoConflicts", "all exports of service work/app agree");
    let mut view = hub_view([InternalServiceExport { conditions: vec![agrees], ..export(1) }.object()]);
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &app()), [], "perhaps the cluster may export");
}

/// Rule MC3: The namespace of a Service in the hub limits its exporters or importers
/// Then: The merged import leaves out the exports of denied clusters, and their InternalServiceExports show the denial.
/// A denied importer loses its MergedServiceImport. While rights are unknown, MergedServiceImports and outcomes stay as
/// they are
#[test]
fn the_namespace_of_a_service_limits_exporters_and_importers() {
    let (one, both) = (import_of(&[export(1)]), import_of(&[export(1), export(3)]));
    let mut view = hub_view([export(1).object(), export(3).object(), agent(2), given(2, &both).object()]);
    assert_eq!(writes(&view, &key(2)), []);
    let limited = namespace("work").exported_from_by("member-1");
    assert!(observe_change(&mut view, limited.object()).contains(&key(2)));
    assert_eq!(written(&planned(&view, &key(2))), Some(one));
    let nobody = namespace("work").exported_from_by("").version(2);
    assert!(observe_change(&mut view, nobody.object()).contains(&key(2)));
    assert_eq!(writes(&view, &key(2)), deletes(&given(2, &both)), "no export is left");
    assert!(observe_change(&mut view, namespace("work").version(3).object()).contains(&key(2)));
    assert_eq!(writes(&view, &key(2)), [], "all may export again");
    undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of("member-3", "other"));
    let others = namespace("work").imported_from_by("member-1").version(4);
    assert!(observe_change(&mut view, others.object()).contains(&key(2)));
    assert_eq!(writes(&view, &key(2)), deletes(&given(2, &both)));
}

/// Also rule MC3.
#[test]
fn a_denied_importer_loses_its_merged_import_also_while_an_export_is_undecodable() {
    let given = given(2, &import_of(&[export(1)]));
    let limited = namespace("work").imported_from_by("member-1");
    let mut view = hub_view([agent(2), given.clone().object(), limited.object()]);
    undecodable(&mut view, Kind::InternalServiceExport, &export(1).meta.name);
    assert_eq!(writes(&view, &key(2)), deletes(&given));
}

/// Also rule U14.
#[test]
fn a_merged_import_is_planned_again_when_its_member_must_have_announced_its_features() {
    let view = hub_view([export(1).object(), given(2, &import_of(&[export(1)])).object()]);
    let plan = planned(&view, &key(2));
    assert_eq!((plan.writes, plan.again), (Vec::new(), Some(seconds(370))));
}

/// Also rule MC9.
#[test]
fn the_service_in_a_merged_import_is_restored() {
    let import = import_of(&[export(1)]);
    let edited = MergedServiceImport { service: named("work/other"), ..given(2, &import) };
    let view = hub_view([export(1).object(), agent(2), edited.clone().object()]);
    let patch =
        Patch::MergedServiceImport { service: named("work/app"), import, selection: ClusterSelection::default() };
    assert_eq!(writes(&view, &key(2)), [Write::patch(&edited.meta, patch)]);
}

/// Also rule MC10.
#[test]
fn a_cluster_that_exports_by_the_other_api_only_leaves_the_import_at_once() {
    let (slice, given) = (slice_export("member-1", &slice("work/app-1")), given(2, &import_of(&[export(1)])));
    let objects = [agent(2), given.clone().object(), Object::EndpointSliceExport(slice.clone())];
    assert_eq!(writes(&hub_view(objects.clone()), &key(2)), [], "its Service is created again");
    let going = [agent(2), given.clone().object(), Object::EndpointSliceExport(slice.deleting())];
    assert_eq!(writes(&hub_view(going), &key(2)), deletes(&given), "its slices go too");
    let fleet_only = internal_export("member-1", &service("work/app")).object();
    assert_eq!(writes(&hub_view(objects.into_iter().chain([fleet_only])), &key(2)), deletes(&given));
}

/// Also rule MC2.
#[test]
fn a_cluster_with_an_undecodable_export_keeps_the_ports_that_others_serve_too() {
    let (http, extra) = (port("http", 80), port("extra", 90));
    let lost = InternalServiceExport { ports: vec![port("http", 81), extra.clone()], ..export(3) };
    for (others, kept) in [(vec![http.clone(), extra], 1), (vec![http], 0)] {
        let other = InternalServiceExport { ports: others, ..export(5) };
        let all = import_of(&[export(1), lost.clone(), other.clone()]);
        let part = |import: &MergedImport| import.clusters[1].ports.as_ref().map(Vec::len);
        assert_eq!(part(&all), Some(1), "it serves the second port only");
        let mut view = hub_view([export(1).object(), other.object(), agent(2), given(2, &all).object()]);
        undecodable(&mut view, Kind::InternalServiceExport, &lost.meta.name);
        let import = written(&planned(&view, &key(2))).unwrap_or(all);
        assert_eq!((import.clusters.len(), part(&import)), (3, Some(kept)));
    }
}

fn clusters(import: &MergedImport) -> Vec<&str> {
    import.clusters.iter().map(|part| &*part.cluster).collect()
}

/// Also rules MC2, MC10.
#[test]
fn a_cluster_with_an_undecodable_export_stays_in_the_import_and_keeps_its_place() {
    let all = [export(1), with_port(3, 81), export(5)];
    let both_ports = import_of(&all);
    for lost in [1, 3, 5] {
        let others = all
            .iter()
            .filter(|it| it.meta.name.member_namespace() != names::member_namespace(&format!("member-{lost}")));
        let objects = others.cloned().map(IntoObject::object).chain([agent(2), given(2, &both_ports).object()]);
        let mut view = hub_view(objects);
        let without = written(&planned(&view, &key(2))).expect("a change");
        assert!(!clusters(&without).contains(&&*format!("member-{lost}")), "{lost}");
        undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of(&format!("member-{lost}"), "work-app"));
        let kept = written(&planned(&view, &key(2)));
        let Some(kept) = kept else {
            assert_ne!(lost, 1, "the next one is the oldest now");
            continue;
        };
        assert_eq!(lost, 1, "nothing changes without another one");
        assert_eq!(clusters(&kept), ["member-1", "member-3", "member-5"], "{lost}");
        assert_eq!(kept.ports, without.ports, "{lost}");
        let names = |part: &fleetnet_core::model::MergedCluster| part.ports.as_ref().map(Vec::len);
        assert!(kept.clusters.iter().all(|part| names(part).is_none_or(|number| number <= kept.ports.len())), "{lost}");
    }
}

/// Rule MC11: The InternalServiceExport of a cluster that is a part of the merge is undecodable
/// Then: Exports of the same Service that have an outcome of the merge keep it. New exports get an outcome. Undecodable
/// exports of other clusters hold nothing back
#[test]
fn an_outcome_stays_while_an_export_of_the_service_is_undecodable() {
    let judged = |number, condition: Condition| InternalServiceExport { conditions: vec![condition], ..export(number) };
    let disagrees = verdict("True", "PortConflict", "they disagree");
    let mut all = given(2, &import_of(&[export(1), with_port(3, 81), export(5)]));
    all.meta.finalizers.ours = true;
    let mut view = hub_view([judged(1, disagrees).object(), export(3).object(), all.object()]);
    assert_eq!(writes(&view, &app()).len(), 2);
    undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of("member-4", "work-app"));
    assert_eq!(writes(&view, &app()).len(), 2, "of a cluster that is no part of the import");
    undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of("member-5", "work-other"));
    assert_eq!(writes(&view, &app()).len(), 2, "of another Service");
    undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of("member-5", "work-app"));
    let written = writes(&view, &app());
    assert_eq!(written.iter().map(|write| &write.at).collect::<Vec<_>>(), [&export(3).meta.name], "a new export");
}

fn verdict(status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        last_transition: seconds(20),
        ..condition("multicluster.x-k8s.io/Conflict", status, reason, message, 1)
    }
}

/// Returns the places that an export records: its own, and those of older clusters.
fn places(export: &InternalServiceExport) -> Vec<Place> {
    let own = names::cluster_of(&export.meta.name.namespace).expect("a member");
    let number: i64 = own.trim_start_matches("member-").parse().expect("a number");
    let place = |number| Place {
        cluster: format!("member-{number}").into(),
        export_created: seconds(number),
        since: seconds(number),
    };
    (1..=number).map(place).collect()
}

/// Returns the write of the outcome of an export.
fn shows(export: &InternalServiceExport, condition: &Condition) -> Write {
    let mut list = export.conditions.clone();
    list.retain(|existing| existing.condition_type != condition.condition_type);
    list.push(condition.clone());
    let patch = Patch::InternalServiceExportMerge { conditions: list, precedence: places(export) };
    Write::patch(&export.meta, patch)
}

/// Also rule MC7.
#[test]
fn all_exports_show_the_outcome_with_all_reasons_the_oldest_one_too() {
    let agrees = verdict("False", "NoConflicts", "all exports of service work/app agree");
    let view = hub_view([export(1).object(), export(2).object()]);
    assert_eq!(writes(&view, &app()), [shows(&export(1), &agrees), shows(&export(2), &agrees)], "and no ServiceImport");
    assert_eq!(events(&view, &app()), [] as [&str; 0]);
    let other = InternalServiceExport { headless: true, ..with_port(2, 81) };
    let message = "the exports of service work/app disagree about ports, type. The export of cluster member-1 decides: its \
                   ServiceExport is the oldest, or the hub knew it before the others. Export the same in all clusters, or export \
                   under another name";
    let disagrees = verdict("True", "PortConflict,TypeConflict", message);
    let agreed = InternalServiceExport { conditions: vec![agrees.clone()], ..export(1) };
    let view = hub_view([agreed.clone().object(), other.clone().object()]);
    assert_eq!(writes(&view, &app()), [shows(&agreed, &disagrees), shows(&other, &disagrees)]);
    assert_eq!(events(&view, &app()), ["ConflictFound", "ConflictFound"]);
    let in_conflict = InternalServiceExport { conditions: vec![disagrees], ..export(1) };
    let view = hub_view([in_conflict.clone().object()]);
    assert_eq!(writes(&view, &app()), [shows(&in_conflict, &agrees)]);
    assert_eq!(events(&view, &app()), ["NoConflictFound"], "it was in conflict");
    let settled = InternalServiceExport { conditions: vec![agrees], ..export(1) };
    assert_eq!(writes(&hub_view([settled.object()]), &app()), []);
    assert_eq!(blocking_reasons(&planned(&view, &app())), [] as [(&str, &str); 0]);
}

/// Rule MC1: Only the standard API exports a Service from a cluster (`spec.multicluster.only` of the
/// InternalServiceExport)
/// Then: The export takes no part in the conflict resolution of the fleet's API. A Service that both APIs export takes
/// part in both
#[test]
fn an_export_of_the_mcs_api_only_takes_no_part_in_the_fleets_api() {
    let both = McsExport { exported_by: ExportedBy::Both, ..mcs_part() };
    let accepted = internal_export("member-2", &service("work/app").ports(&[port("http", 80)]));
    let accepted = accepted.created(seconds(2)).mcs(both).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let import = service_import("work/app").showing(resolved(&["member-2"]));
    // The export of member-1 has other ports, and is older. The fleet's API exported it before.
    let was_of_both = with_port(1, 81).port_set_since(seconds(1));
    let view = hub_view([was_of_both.object(), accepted.clone().object(), import.clone().object()]);
    assert_eq!(writes(&view, &app()).len(), 2);
    let view = hub_view([with_port(1, 81).object(), accepted.object(), import.clone().object()]);
    let written = writes(&view, &app());
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written.iter().all(|write| write.kind() == Kind::InternalServiceExport), "the ServiceImport stays");
    let Action::Patch { patch: Patch::InternalServiceExportMerge { conditions: list, .. }, .. } = &written[0].action
    else {
        panic!()
    };
    let types: Vec<&str> = list.iter().map(|condition| &*condition.condition_type).collect();
    assert_eq!(types, ["multicluster.x-k8s.io/Conflict"], "it has no outcome by the fleet's API");
    let Action::Patch { patch: Patch::InternalServiceExportMerge { conditions: list, .. }, .. } = &written[1].action
    else {
        panic!()
    };
    let statuses: Vec<(&str, &str)> =
        list.iter().map(|condition| (&*condition.condition_type, condition.status.as_str())).collect();
    assert_eq!(statuses, [("Conflict", "False"), ("multicluster.x-k8s.io/Conflict", "True")]);
    let view = hub_view([with_port(1, 81).object(), import.clone().object()]);
    assert!(
        writes(&view, &app()).contains(&Write::delete(Kind::ServiceImport, &import.meta)),
        "it exports nothing there"
    );
}

/// Also rule MC3.
#[test]
fn a_denied_export_shows_the_denial_and_then_its_end() {
    let denied = hub_view([export(1).object(), namespace("work").exported_from_by("").object()]);
    let written = writes(&denied, &app());
    let [write] = &written[..] else { panic!("{written:?}") };
    let Action::Patch { patch: Patch::InternalServiceExportConditions(list), .. } = &write.action else { panic!() };
    let shown = |list: &[Condition]| -> Vec<(String, String)> {
        list.iter().map(|it| (it.condition_type.to_string(), it.reason.to_string())).collect()
    };
    assert_eq!(shown(list), [("Valid".to_owned(), "ExporterNotAllowed".to_owned())]);
    let was_denied = InternalServiceExport { conditions: list.clone(), ..export(1) };
    let allowed: Planner = hub_view([was_denied.object()]);
    let written = writes(&allowed, &app());
    let [write] = &written[..] else { panic!("{written:?}") };
    let Action::Patch { patch: Patch::InternalServiceExportMerge { conditions: list, .. }, .. } = &write.action else {
        panic!()
    };
    let expected = [("Valid", "ExporterAllowed"), ("multicluster.x-k8s.io/Conflict", "NoConflicts")];
    assert_eq!(shown(list), expected.map(|(kind, reason)| (kind.to_owned(), reason.to_owned())));
}

/// Also rules MC3, MC8.
#[test]
fn beside_a_denied_export_the_others_show_the_outcome() {
    let agrees = verdict("False", "NoConflicts", "all exports of service work/app agree");
    let limited = || namespace("work").exported_from_by("member-1").object();
    let disagrees = verdict("True", "PortConflict", "they disagree");
    let denied = InternalServiceExport { conditions: vec![disagrees], ..export(3) };
    let view = hub_view([export(1).object(), denied.clone().object(), limited()]);
    let written = writes(&view, &app());
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written.contains(&shows(&export(1), &agrees)), "{written:?}");
    let set = |view: &Planner, at: &InternalServiceExport| {
        let at = &at.meta.name;
        writes(view, &app()).into_iter().find(|write| write.at == *at).map(|write| match write.action {
            Action::Patch { patch: Patch::InternalServiceExportConditions(list), .. } => list,
            other => panic!("only conditions, not {other:?}"),
        })
    };
    let statuses = |list: &[Condition]| -> Vec<&'static str> { list.iter().map(|it| it.status.as_str()).collect() };
    let denied = InternalServiceExport { conditions: set(&view, &denied).expect("the denial"), ..denied };
    assert_eq!(statuses(&denied.conditions), ["True", "False"]);
    let view = hub_view([export(1).object(), denied.clone().object(), limited()]);
    let pending = InternalServiceExport { conditions: set(&view, &denied).expect("no outcome"), ..denied };
    assert_eq!(statuses(&pending.conditions), ["Unknown", "False"]);
    let later = pending.generation(2);
    let view = hub_view([export(1).object(), later.clone().object(), limited()]);
    assert_eq!(set(&view, &later), None, "a new generation of it changes nothing");
}

/// Rule MC6: Many members import a Service
/// Then: The hub agent stores the merged import of the Service once, in any order of arrival. Of each
/// MergedServiceImport it keeps only the UID, the version, the finalizers and the deletion
#[test]
fn all_importers_of_a_service_share_its_merged_import_in_memory() {
    let apart = || Arc::new((*import_of(&[export(1), with_port(3, 81)])).clone());
    let objects = [given(2, &apart()), given(3, &apart()), given(4, &apart())].map(IntoObject::object);
    let exports = [export(1), with_port(3, 81)].map(IntoObject::object);
    let places = |objects: Vec<Object>| {
        let view = hub_view(objects);
        let places = view.merged_imports.iter().map(|object| Arc::as_ptr(&object.import));
        places.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(places(exports.clone().into_iter().chain(objects.clone()).collect()), 1);
    assert_eq!(places(objects.into_iter().chain(exports).collect()), 1, "in any order");
}
