//! Tests of the annotations of a hub namespace that list which clusters may export its Services and which may import
//! them.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildNamespace, IntoObject, claim, condition,
    distributed_slice, in_hub_of, internal_export, named, namespace, no_conflict, resolved, seconds, service,
    service_import, slice, slice_export,
};
use crate::support::view::{
    NOW, SEEN, claimed_hub_view, events, hub_view, listed_hub_view, observe_change, planned, strict_hub_view,
    undecodable, writes,
};
use crate::support::world::{Who, World, fleet};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::model::{
    Condition, ConsumerType, HubSlice, ImportStatus, InternalServiceExport, InternalServiceImport, Kind, Namespace,
    Object, PortSetStamp, ServiceImport,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_types::{ClusterId, ObjectName, Text, WatchState};
use std::collections::BTreeSet;

fn app() -> Key {
    Key::Service(named("work/app"))
}

fn fresh_export(cluster: &str) -> InternalServiceExport {
    internal_export(cluster, &service("work/app"))
}

fn accepted_export(cluster: &str) -> InternalServiceExport {
    fresh_export(cluster).port_set_since(seconds(2)).judged(no_conflict("work/app"))
}

fn import_of(clusters: &[&str]) -> ServiceImport {
    service_import("work/app").showing(resolved(clusters))
}

fn exporters(clusters: &str) -> Object {
    namespace("work").exported_from_by(clusters).object()
}

fn importers(clusters: &str) -> Object {
    namespace("work").imported_from_by(clusters).object()
}

const EXPORT_DENIED: &str = "cluster member-2 may not export from namespace work of the hub: the annotation \
                              networking.fleet.azure.com/exporters does not list it. Add member-2 there, or remove the annotation so that \
                              every cluster may";

fn denied() -> Condition {
    condition("Valid", "False", "ExporterNotAllowed", EXPORT_DENIED, 1)
}

fn shows_denied(export: &InternalServiceExport) -> Write {
    let mut list = export.conditions.clone();
    list.push(Condition { last_transition: seconds(20), ..denied() });
    Write::patch(&export.meta, Patch::InternalServiceExportConditions(list))
}

// === Parsing the annotations of a hub namespace ===

/// Rule T9: An annotation on a namespace of the hub lists the clusters that may export Services of this namespace.
/// Another annotation lists the clusters that may import these Services
/// Then: Each of the two annotations contains cluster ids, separated by commas. An empty list allows no cluster.
/// Without the annotation, every cluster is allowed
#[test]
fn an_annotation_lists_clusters_and_one_that_names_nobody_means_nobody() {
    let set = |clusters: &[&str]| clusters.iter().map(|cluster| ClusterId::from(*cluster)).collect::<BTreeSet<_>>();
    assert_eq!(Namespace::clusters("member-1, member-2 ,,member-1"), set(&["member-1", "member-2"]));
    assert_eq!(Namespace::clusters(" , "), set(&[]));
    let view = hub_view([fresh_export("member-2").object(), exporters("")]);
    assert_eq!(writes(&view, &app()), [shows_denied(&fresh_export("member-2"))]);
}

// === Clusters that may export ===

/// Rule T10: A cluster exports a Service, but the list of exporters of the namespace (rule T9) does not contain the
/// cluster
/// Then: The hub agent ignores the export in conflict resolution. The hub agent sets `Valid=False` (reason
/// `ExporterNotAllowed`) on the InternalServiceExport, once
#[test]
fn a_denied_export_does_not_count_and_emits_one_event() {
    let export = fresh_export("member-2");
    let view = hub_view([export.clone().object(), exporters("member-1")]);
    assert_eq!(writes(&view, &app()), [shows_denied(&export)], "neither stamped nor resolved");
    assert_eq!(events(&view, &app()), ["ExporterNotAllowed"]);
    let mut second = export.clone().uid("second");
    second.meta.name = in_hub_of("member-2", "work-app-zzzzz");
    let view = hub_view([export.clone().object(), second.object(), exporters("member-1")]);
    assert_eq!(writes(&view, &app()), [shows_denied(&export)], "only the first export of a cluster counts");

    let updated = export.judged(denied());
    let view = hub_view([updated.clone().object(), exporters("member-1")]);
    assert_eq!(writes(&view, &app()), []);
    let other_ports = hub_view([updated.clone().generation(2).object(), exporters("member-1")]);
    assert_eq!(writes(&other_ports, &app()), [], "whatever it offers by then");

    let dying = updated.marked().deleting();
    let view = hub_view([dying.clone().object(), exporters("member-1")]);
    let unmark = Write::remove_finalizer(Kind::InternalServiceExport, &dying.meta);
    assert_eq!(writes(&view, &app()), [unmark], "nothing holds up its end");
}

/// Rule T11: The list of exporters of the namespace (rule T9) no longer contains an accepted exporter
/// Then: The hub agent removes the cluster from the ServiceImport. The hub agent and the member agent withdraw the
/// slices of the cluster. The ServiceExport shows the reason `ExporterNotAllowed`. The member's InternalServiceExport
/// stays in the hub
#[test]
fn an_accepted_export_that_is_not_allowed_any_more_leaves() {
    let (stays, leaves) = (accepted_export("member-1"), accepted_export("member-2"));
    let import = import_of(&["member-2", "member-1"]);
    let view = hub_view([stays.object(), leaves.clone().object(), import.clone().object(), exporters("member-1")]);
    let status = Patch::ServiceImportStatus(resolved(&["member-1"]));
    let shown = Write::patch(&import.meta, status);
    assert_eq!(writes(&view, &app()), [shown, shows_denied(&leaves)]);

    let alone = import_of(&["member-2"]);
    let view = hub_view([leaves.clone().object(), alone.clone().object(), exporters("member-1")]);
    assert_eq!(writes(&view, &app()), [Write::delete(Kind::ServiceImport, &alone.meta), shows_denied(&leaves)]);
}

/// Also rule T10.
#[test]
fn an_export_that_is_not_allowed_wins_no_conflict() {
    let older = fresh_export("member-2").port_set_since(seconds(1));
    let view = hub_view([
        accepted_export("member-1").object(),
        InternalServiceExport { ports: Vec::new(), ..older }.judged(denied()).object(),
        import_of(&["member-1"]).object(),
        exporters("member-1"),
    ]);
    assert_eq!(writes(&view, &app()), []);
}

/// Rule T12: The list of exporters of the namespace (rule T9) contains the exporter again
/// Then: The hub agent sets `Valid=True` (reason `ExporterAllowed`) and the outcome in one write, and emits an Event.
/// The member exports its slices again
#[test]
fn an_export_that_is_allowed_again_gets_its_outcome() {
    let mut back = accepted_export("member-2");
    back.conditions.push(denied());
    let view = hub_view([back.clone().object(), import_of(&["member-2"]).object(), exporters("member-2")]);
    let allowed = Condition {
        last_transition: seconds(20),
        ..condition("Valid", "True", "ExporterAllowed", "service work/app may be exported by this cluster", 1)
    };
    let list = vec![no_conflict("work/app"), allowed];
    let patch = Patch::InternalServiceExportConditions(list.clone());
    assert_eq!(writes(&view, &app()), [Write::patch(&back.meta, patch)]);
    assert_eq!(events(&view, &app()), ["ExporterAllowed"]);
    back.conditions = list;
    let view = hub_view([back.object(), import_of(&["member-2"]).object(), exporters("member-2")]);
    assert_eq!(writes(&view, &app()), []);
}

fn marked_slice(cluster: &str) -> HubSlice {
    slice_export(cluster, &slice("work/app-1")).marked()
}

fn slice_key(slice: &HubSlice) -> Key {
    Key::Slice(slice.meta.name.name.clone())
}

/// Also rule T11.
#[test]
fn the_slices_of_a_cluster_that_may_not_export_are_not_distributed() {
    let export = marked_slice("member-2");
    let key = slice_key(&export);
    let import = import_of(&["member-1"]).claimed_by(&["member-3"]);
    let distributed = distributed_slice("member-3", &export);
    let objects = [Object::EndpointSliceExport(export.clone()), import.object(), exporters("member-1")];
    let unmark = Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta);
    assert_eq!(writes(&hub_view(objects.clone()), &key), std::slice::from_ref(&unmark));
    let view = hub_view(objects.into_iter().chain([Object::EndpointSliceImport(distributed.clone())]));
    assert_eq!(writes(&view, &key), [Write::delete(Kind::EndpointSliceImport, &distributed.meta), unmark]);
}

/// Also rule T11.
#[test]
fn the_slices_of_a_cluster_that_may_not_export_block_no_other() {
    let mut squatter = marked_slice("member-2").created(seconds(1));
    let holder = marked_slice("member-1").created(seconds(2));
    squatter.meta.name.name = holder.meta.name.name.clone();
    squatter.spec.owner = named("closed/app");
    let closed = namespace("closed").exported_from_by("").object();
    let view = claimed_hub_view([
        Object::EndpointSliceExport(squatter),
        Object::EndpointSliceExport(holder.clone()),
        import_of(&["member-1"]).claimed_by(&["member-3"]).object(),
        closed,
    ]);
    let planned = writes(&view, &slice_key(&holder));
    assert!(planned.iter().any(|write| matches!(write.action, Action::Create(_))), "{planned:#?}");
}

// === Clusters that may import ===

fn claim_of(cluster: &str) -> InternalServiceImport {
    claim(cluster, &service_import("work/app"))
}

fn claimed(import: &ServiceImport, claims: &[&InternalServiceImport], namespace: Object) -> Planner {
    let claims = claims.iter().map(|claim| (*claim).clone().object());
    hub_view([accepted_export("member-1").object(), import.clone().object(), namespace].into_iter().chain(claims))
}

/// Rule T14: A member has a claim (InternalServiceImport), but the list of importers of the namespace (rule T9) does
/// not contain the member
/// Then: The hub agent does not grant the claim. The hub agent removes the member from the record of importers
/// (`service-in-use-by`), then empties the status of the claim. The hub agent emits `ImporterNotAllowed` once. The
/// finalizer of the claim records that the Event was emitted, so the Event is not repeated
#[test]
fn a_denied_claim_is_not_granted_and_emits_one_event() {
    let import = import_of(&["member-1"]);
    let (first, next) = (claim_of("member-2").created(seconds(1)), claim_of("member-3").created(seconds(2)));
    let view = claimed(&import, &[&first, &next], importers("member-3"));
    let mark = |claim: &InternalServiceImport| Write::add_finalizer(Kind::InternalServiceImport, &claim.meta);
    assert_eq!(writes(&view, &app()), [mark(&first), mark(&next)], "the next one gets it");
    let plan = planned(&view, &app());
    let updated: Vec<(&str, &str)> = plan
        .writes
        .iter()
        .flat_map(|write| &write.events)
        .map(|event| (event.reason.as_str(), &*event.message))
        .collect();
    let message = "cluster member-2 may not import from namespace work of the hub: the annotation networking.fleet.azure.com/importers does \
                   not list it. Add member-2 there, or remove the annotation so that every cluster may";
    assert_eq!(updated, [("ImporterNotAllowed", message)]);

    let updated = first.marked();
    assert_eq!(writes(&claimed(&import, &[&updated], importers("member-3")), &app()), [], "its mark remembers it");
    let dying = updated.deleting();
    let unmark = Write::remove_finalizer(Kind::InternalServiceImport, &dying.meta);
    assert_eq!(writes(&claimed(&import, &[&dying], importers("member-3")), &app()), [unmark]);
}

/// Also rule T14.
#[test]
fn a_claim_that_is_denied_later_leaves_the_record_then_shows_the_denial() {
    let import = import_of(&["member-1"]).claimed_by(&["member-2"]);
    let holder = claim_of("member-2").marked().with_status(resolved(&["member-1"]));
    let view = claimed(&import, &[&holder], importers(""));
    let patch = Patch::Claims {
        importers: Default::default(),
        load_balancer: None,
        finalizers: import.meta.finalizers.without_ours(),
    };
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, patch)]);
    assert_eq!(events(&view, &app()), ["ImportersChanged"]);

    let struck = import_of(&["member-1"]);
    let view = claimed(&struck, &[&holder], importers(""));
    let emptied = Patch::InternalServiceImportStatus(ImportStatus::default());
    assert_eq!(writes(&view, &app()), [Write::patch(&holder.meta, emptied)]);
    assert_eq!(events(&view, &app()), ["ImporterNotAllowed"]);

    let updated = holder.with_status(ImportStatus::default());
    assert_eq!(writes(&claimed(&struck, &[&updated], importers("")), &app()), []);
    let allowed = claimed(&struck, &[&updated], importers("member-2"));
    assert_eq!(writes(&allowed, &app()).len(), 1, "allowed again, it is recorded");
}

/// Also rule T2.
#[test]
fn only_members_claim() {
    let import = import_of(&["member-1"]);
    let mut stranger = claim_of("member-2").created(seconds(1)).uid("stranger");
    stranger.meta.name = named("default/work-app");
    let next = claim_of("member-3").created(seconds(2));
    let view = claimed(&import, &[&stranger, &next], namespace("work").object());
    assert_eq!(writes(&view, &app()), [Write::add_finalizer(Kind::InternalServiceImport, &next.meta)]);
}

// === Undecodable objects of a cluster that may not export or import ===

/// Rule T18: An object of a denied cluster is undecodable
/// Then: The hub agent denies the cluster in the same way as if the object were decodable
#[test]
fn a_denied_member_is_not_kept_by_an_undecodable_object() {
    let import = import_of(&["member-2", "member-1"]);
    let mut view = hub_view([accepted_export("member-1").object(), import.clone().object(), exporters("member-1")]);
    undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of("member-2", "work-app"));
    let shown = Patch::ServiceImportStatus(resolved(&["member-1"]));
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, shown)]);

    let import = import_of(&["member-1"]).claimed_by(&["member-2"]);
    let mut view = claimed(&import, &[], importers(""));
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-2", "work-app"));
    let struck = Patch::Claims {
        importers: Default::default(),
        load_balancer: None,
        finalizers: import.meta.finalizers.without_ours(),
    };
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, struck)]);

    let export = marked_slice("member-1");
    let distributed = distributed_slice("member-2", &export);
    let objects = [Object::EndpointSliceExport(export.clone()), Object::EndpointSliceImport(distributed.clone())];
    let mut view = hub_view(objects.into_iter().chain([import_of(&["member-1"]).object(), importers("")]));
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-2", "work-app"));
    assert_eq!(writes(&view, &slice_key(&export)), [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
}

// === While the annotations of a namespace are unknown ===

/// Returns copies of the view in which the annotations of the namespace `work` are unknown, with a different cause in
/// each copy.
fn unknown(view: &Planner) -> Vec<(&'static str, Planner)> {
    let in_state = |state| {
        let mut view = view.clone();
        view.watch_state(Kind::Namespace, state, SEEN, &mut Vec::new());
        view
    };
    let mut beyond_reading = view.clone();
    undecodable(&mut beyond_reading, Kind::Namespace, &ObjectName::new("", "work"));
    vec![
        ("incomplete", in_state(WatchState::Incomplete)),
        ("forbidden from the start", in_state(WatchState::Absent)),
        ("vanished", in_state(WatchState::Unknown)),
        ("undecodable", beyond_reading),
    ]
}

/// Rule T15: The hub agent does not know which clusters a namespace allows: the watch of namespaces is incomplete, the
/// right to list namespaces is missing (at the start or later), or the namespace is undecodable
/// Then: The hub agent accepts no new exporters or importers of the namespace, and removes no existing exporters or
/// importers. The hub agent still updates distributed slices (EndpointSliceImports)
#[test]
fn while_rights_to_export_are_unknown_nothing_is_granted_and_nothing_revoked() {
    let accepted = hub_view([accepted_export("member-1").object(), import_of(&["member-1"]).object()]);
    let fresh = hub_view([fresh_export("member-1").object()]);
    let import = import_of(&[]).showing(ImportStatus::default());
    let stamp_only = fresh_export("member-1").port_set_since(seconds(2));
    let stamped = hub_view([stamp_only.clone().object(), import.clone().object()]);
    let answered = claim_of("member-2").marked().with_status(resolved(&["member-1"]));
    let lost_import = hub_view([accepted_export("member-1").object(), answered.clone().object()]);
    let recreated = hub_view([stamp_only.object(), import.object(), answered.object()]);
    let without_answer = [("no import", lost_import), ("an import made anew", recreated)];
    for (case, view) in
        [("accepted", accepted), ("fresh", fresh), ("stamped", stamped)].into_iter().chain(without_answer)
    {
        for (how, view) in unknown(&view) {
            assert_eq!(writes(&view, &app()), [], "{case}, {how}");
        }
    }
    let without_outcome = fresh_export("member-1").port_set_since(seconds(2));
    let import = import_of(&["member-1"]);
    let view = hub_view([without_outcome.object(), fresh_export("member-3").object(), import.object()]);
    for (how, view) in unknown(&view) {
        assert_eq!(writes(&view, &app()), [], "an accepted one beside a fresh one, {how}");
    }
}

/// Also rule T15.
#[test]
fn while_rights_to_export_are_unknown_accepted_exports_stay_accepted() {
    let changed = accepted_export("member-1");
    let leaving = accepted_export("member-2").deleting();
    let import = import_of(&["member-1", "member-2"]);
    let view = hub_view([changed.object(), leaving.object(), import.clone().object()]);
    let shown = Write::patch(&import.meta, Patch::ServiceImportStatus(resolved(&["member-1"])));
    for (how, view) in unknown(&view) {
        assert_eq!(writes(&view, &app()), std::slice::from_ref(&shown), "{how}");
    }
}

/// Also rule T15.
#[test]
fn while_the_right_of_a_new_exporter_is_unknown_the_import_stays_as_it_is() {
    let leaving = accepted_export("member-2").deleting();
    let fresh = fresh_export("member-3").port_set_since(seconds(2));
    let import = import_of(&["member-1", "member-2"]);
    let view = hub_view([accepted_export("member-1").object(), leaving.object(), fresh.object(), import.object()]);
    for (how, view) in unknown(&view) {
        assert_eq!(writes(&view, &app()), [], "{how}");
    }
}

/// Also rule T15.
#[test]
fn while_rights_to_export_are_unknown_distributed_slices_stay_current() {
    let exported = marked_slice("member-1");
    let distributed = distributed_slice("member-2", &exported);
    let changed = exported.with_addresses(&["10.0.0.9"], 2);
    let key = slice_key(&changed);
    let at = in_hub_of("member-3", &changed.meta.name.name);
    let update = Write::patch(&distributed.meta, Patch::EndpointSliceImport(changed.spec.clone()));
    let create = Write::create(at, Desired::EndpointSliceImport(changed.spec.clone()));
    let claimed = |clusters: &[&str]| {
        let import = import_of(clusters).claimed_by(&["member-2", "member-3"]).object();
        let [export, distributed] =
            [Object::EndpointSliceExport(changed.clone()), Object::EndpointSliceImport(distributed.clone())];
        claimed_hub_view([export, distributed, import])
    };
    for (how, view) in unknown(&claimed(&["member-1"])) {
        assert_eq!(writes(&view, &key), [update.clone(), create.clone()], "of an accepted exporter, {how}");
    }
    for (how, view) in unknown(&claimed(&["member-9"])) {
        assert_eq!(writes(&view, &key), std::slice::from_ref(&update), "of another, {how}");
    }
    let fresh = slice_export("member-1", &slice("work/app-1"));
    let import = import_of(&["member-9"]).claimed_by(&["member-2"]).object();
    for (how, view) in unknown(&claimed_hub_view([Object::EndpointSliceExport(fresh), import])) {
        assert_eq!(writes(&view, &key), [], "nor is a new one marked, {how}");
    }
}

/// Also rule T15.
#[test]
fn while_rights_to_import_are_unknown_claims_stay_as_they_are() {
    let import = import_of(&["member-1"]).claimed_by(&["member-2"]);
    let holder = claim_of("member-2").marked().with_status(resolved(&["member-1"]));
    let (fresh, marked) = (claim_of("member-3").east_west(), claim_of("member-4").east_west().marked());
    let view = claimed(&import, &[&holder, &fresh, &marked], namespace("work").object());
    for (how, view) in unknown(&view) {
        assert_eq!(writes(&view, &app()), [], "{how}");
    }
}

/// Rule T16: The hub agent runs with `--namespace-policy=off`
/// Then: Every member may export and import. At its start, the hub agent logs the warning `RightsNotEnforced`
#[test]
fn where_namespaces_decide_nothing_everybody_may_do_everything() {
    let export = fresh_export("member-2");
    let mut view = hub_view([export.clone().object(), exporters("member-1")]);
    view.namespace_policy = NamespacePolicy::Off;
    let stamp = PortSetStamp { since: NOW, ports: names::ports_fingerprint(&export.ports) };
    let patch = Patch::InternalServiceExportStamp { finalizers: export.meta.finalizers.with_ours(), stamp };
    let stamped = [Write::patch(&export.meta, patch)];
    assert_eq!(writes(&view, &app()), stamped);
    for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
        view.watch_state(Kind::Namespace, state, SEEN, &mut Vec::new());
        assert_eq!(writes(&view, &app()), stamped, "{state:?}");
    }
}

// === Namespaces that do not exist in the hub ===

/// Rule T39: The hub agent runs with `--namespace-policy=strict`
/// Then: The rules T9 to T19 apply. In addition, in a namespace that does not exist in the hub, the hub agent denies
/// every exporter and importer. If the namespace is created or deleted, the hub agent requeues its Services and their
/// slices. So the rules C9, D11 and H19 do not apply to a namespace that disappears: the hub agent withdraws its
/// exports and imports, of both APIs. When the namespace exists again, an exclusive claim is granted to the oldest
/// claim. A claim that was denied before gets no second Event if the reason changes
#[test]
fn with_the_strict_policy_nobody_exports_from_a_namespace_that_the_hub_does_not_have() {
    let export = accepted_export("member-2");
    let message = "cluster member-2 may not export from namespace work: the hub has no namespace work, and its agent runs \
                   with --namespace-policy=strict. Create the namespace in the hub";
    let mut list = export.conditions.clone();
    list.push(Condition {
        last_transition: seconds(20),
        ..condition("Valid", "False", "ExporterNotAllowed", message, 1)
    });
    let denied = Write::patch(&export.meta, Patch::InternalServiceExportConditions(list));
    let import = import_of(&["member-2"]);
    let without = [export.object(), import.clone().object()];
    let view = strict_hub_view(without.clone());
    assert_eq!(writes(&view, &app()), [Write::delete(Kind::ServiceImport, &import.meta), denied]);
    assert_eq!(writes(&hub_view(without.clone()), &app()), [], "by default, a missing namespace denies nobody");
    for (how, view) in unknown(&view) {
        assert_eq!(writes(&view, &app()), [], "{how}");
    }
    let with = strict_hub_view(without.into_iter().chain([namespace("work").object()]));
    assert_eq!(writes(&with, &app()), [], "a namespace without annotations denies nobody");
    let listed = strict_hub_view([fresh_export("member-2").object(), exporters("member-1")]);
    assert_eq!(writes(&listed, &app()), [shows_denied(&fresh_export("member-2"))], "annotations deny as usual");
}

/// Also rule T39.
#[test]
fn with_the_strict_policy_nobody_imports_from_a_namespace_that_the_hub_does_not_have() {
    let (import, holder) =
        (import_of(&["member-1"]), claim_of("member-2").marked().with_status(resolved(&["member-1"])));
    let view = strict_hub_view([accepted_export("member-1").object(), import.object(), holder.clone().object()]);
    let plan = planned(&view, &app());
    let emptied = Write::patch(&holder.meta, Patch::InternalServiceImportStatus(ImportStatus::default()));
    assert!(writes(&view, &app()).contains(&emptied), "{plan:#?}");
    let message = "cluster member-2 may not import from namespace work: the hub has no namespace work, and its agent runs \
                   with --namespace-policy=strict. Create the namespace in the hub";
    let events = plan.writes.iter().flat_map(|write| &write.events);
    let denials: Vec<_> = events.filter(|event| event.reason.as_str() == "ImporterNotAllowed").collect();
    assert_eq!(denials.iter().map(|event| &*event.message).collect::<Vec<_>>(), [message]);
}

/// Also rule T39.
#[test]
fn with_the_strict_policy_a_new_namespace_requeues_its_services() {
    let exported = marked_slice("member-1");
    let objects = [Object::EndpointSliceExport(exported.clone()), fresh_export("member-1").object()];
    let mut view = strict_hub_view(objects);
    let observed = namespace("work");
    let requeued = observe_change(&mut view, observed.clone().object());
    assert!(requeued.contains(&app()) && requeued.contains(&slice_key(&exported)), "{requeued:?}");
    assert_eq!(observe_change(&mut view, observed.clone().version(2).object()), [], "its rights did not change");
    let gone = crate::support::view::observe_removal(&mut view, &observed.object());
    assert!(gone.contains(&app()) && gone.contains(&slice_key(&exported)), "{gone:?}");
}

// === Only listed members ===

/// Rule T40: The hub agent runs with `--namespace-policy=listed`
/// Then: Rule T39 applies. In addition, a namespace without the annotation `networking.fleet.azure.com/exporters`
/// denies every exporter, and a namespace without the annotation `networking.fleet.azure.com/importers` denies every
/// importer, of both APIs. So a new namespace is closed until its annotations list clusters
#[test]
fn with_the_listed_policy_only_clusters_in_the_annotation_of_an_existing_namespace_export() {
    let export = accepted_export("member-2");
    let import = import_of(&["member-2"]);
    let shown = |namespaces: Vec<Object>| {
        let objects = [export.clone().object(), import.clone().object()];
        listed_hub_view(objects.into_iter().chain(namespaces))
    };
    let denial = |why: &str| {
        let message = format!(
            "cluster member-2 may not export from namespace work of the hub: its agent runs with \
             --namespace-policy=listed, and the namespace {why}. Add member-2 to the annotation \
             networking.fleet.azure.com/exporters of the namespace in the hub"
        );
        let mut list = export.conditions.clone();
        let denied = condition("Valid", "False", "ExporterNotAllowed", &message, 1);
        list.push(Condition { last_transition: seconds(20), ..denied });
        [
            Write::delete(Kind::ServiceImport, &import.meta),
            Write::patch(&export.meta, Patch::InternalServiceExportConditions(list)),
        ]
    };
    let missing = shown(Vec::new());
    assert_eq!(writes(&missing, &app()), denial("does not exist in the hub"));
    for open in [namespace("work").object(), importers("member-2")] {
        assert_eq!(writes(&shown(vec![open]), &app()), denial("has no such annotation"));
    }
    let of_other = writes(&shown(vec![exporters("member-1")]), &app());
    assert_eq!(of_other, [Write::delete(Kind::ServiceImport, &import.meta), shows_denied(&export)]);
    assert_eq!(writes(&shown(vec![exporters("member-2")]), &app()), [], "the annotation lists it");
    for (how, view) in unknown(&missing) {
        assert_eq!(writes(&view, &app()), [], "{how}");
    }
}

/// Also rule T40.
#[test]
fn with_the_listed_policy_only_clusters_in_the_annotation_of_an_existing_namespace_import() {
    let holder = claim_of("member-2").marked().with_status(resolved(&["member-1"]));
    let shown = |namespaces: Vec<Object>| {
        let objects = [accepted_export("member-1").object(), import_of(&["member-1"]).object()];
        listed_hub_view(objects.into_iter().chain([holder.clone().object()]).chain(namespaces))
    };
    let emptied = Write::patch(&holder.meta, Patch::InternalServiceImportStatus(ImportStatus::default()));
    for (why, namespaces) in
        [("does not exist in the hub", Vec::new()), ("has no such annotation", vec![exporters("member-1")])]
    {
        let view = shown(namespaces);
        assert!(writes(&view, &app()).contains(&emptied), "{why}");
        let message = format!(
            "cluster member-2 may not import from namespace work of the hub: its agent runs with \
             --namespace-policy=listed, and the namespace {why}. Add member-2 to the annotation \
             networking.fleet.azure.com/importers of the namespace in the hub"
        );
        let plan = planned(&view, &app());
        let events = plan.writes.iter().flat_map(|write| &write.events);
        let denials: Vec<_> = events.filter(|event| event.reason.as_str() == "ImporterNotAllowed").collect();
        assert_eq!(denials.iter().map(|event| &*event.message).collect::<Vec<_>>(), [message]);
    }
    let both = namespace("work").exported_from_by("member-1").imported_from_by("member-2").object();
    assert!(!writes(&shown(vec![both]), &app()).contains(&emptied));
}

/// Also rule T40.
#[test]
fn with_the_listed_policy_a_new_namespace_requeues_its_services() {
    let exported = marked_slice("member-1");
    let mut view = listed_hub_view([Object::EndpointSliceExport(exported.clone()), fresh_export("member-1").object()]);
    let requeued = observe_change(&mut view, namespace("work").object());
    assert!(requeued.contains(&app()) && requeued.contains(&slice_key(&exported)), "the message changes: {requeued:?}");
    let listed = namespace("work").exported_from_by("member-1").version(2);
    let requeued = observe_change(&mut view, listed.object());
    assert!(requeued.contains(&app()) && requeued.contains(&slice_key(&exported)), "{requeued:?}");
}

// === Changes of a namespace's annotations ===

/// Rule T17: The lists of exporters or importers of a namespace (rule T9) change
/// Then: The hub agent requeues the Services of the namespace and their slices, and no other key
#[test]
fn a_namespace_requeues_its_services_and_their_slices_only_when_its_rights_change() {
    let (mine, theirs) = (marked_slice("member-1"), slice_export("member-1", &slice("other/app-1").uid("other")));
    let objects = [mine.clone(), theirs].map(Object::EndpointSliceExport);
    let mut view = hub_view(objects.into_iter().chain([
        service_import("work/app").object(),
        service_import("other/app").object(),
        claim_of("member-2").object(),
    ]));
    assert_eq!(observe_change(&mut view, namespace("work").object()), [], "who names nobody lets everybody");
    let named = namespace("work").exported_from_by("member-1");
    assert_eq!(observe_change(&mut view, named.clone().version(2).object()), [app(), slice_key(&mine)]);
    assert_eq!(observe_change(&mut view, named.clone().version(3).object()), []);
    assert_eq!(
        observe_change(&mut view, named.clone().deleting().version(4).object()),
        [],
        "it goes, and says what it said"
    );
    let gone = crate::support::view::observe_removal(&mut view, &named.object());
    assert_eq!(gone, [app(), slice_key(&mine)]);
}

// === A whole fleet ===

fn annotate(world: &mut World, annotated: Namespace) {
    let name = annotated.meta.name.clone();
    let rights = (annotated.exporters.clone(), annotated.importers.clone());
    if !world.create(Who::Hub, annotated.object()) {
        world.edit(Who::Hub, Kind::Namespace, &name, |object| {
            let Object::Namespace(namespace) = object else { return };
            (namespace.exporters, namespace.importers) = rights;
        });
    }
    world.run_for(600_000_000);
}

fn counts(world: &World) -> [usize; 4] {
    let hub = |kind: Kind| world.hub.list(kind).count();
    let imported = world.members[1].cluster.list(Kind::EndpointSlice).count();
    [hub(Kind::InternalServiceExport), hub(Kind::EndpointSliceExport), hub(Kind::EndpointSliceImport), imported]
}

fn valid_of(world: &World) -> (Text, Text) {
    let export = world.members[0].cluster.get(Kind::ServiceExport, &named("work/app"));
    let Some(Object::ServiceExport(export)) = export else { panic!("no ServiceExport") };
    let valid = export.conditions.iter().find(|condition| &*condition.condition_type == "Valid").expect("told");
    (valid.status.as_str().into(), valid.reason.clone())
}

fn events_since(world: &World, mark: usize) -> Vec<&'static str> {
    world.ledger[mark..].iter().flat_map(|entry| &entry.write.events).map(|event| event.reason.as_str()).collect()
}

/// Returns the writes after the first `mark` writes, as text. Writes of conditions of ServiceExports are left out.
fn beside_status(world: &World, mark: usize) -> Vec<String> {
    let updated = "member-1 patches conditions of ServiceExport";
    world.lines_since(mark).into_iter().filter(|line| line != updated).collect()
}

/// Also rules T11, T12.
#[test]
fn a_denied_exporter_withdraws_its_slices_and_exports_them_again_when_it_is_allowed() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    assert_eq!((counts(&world), valid_of(&world)), ([1, 1, 1, 1], ("True".into(), "ServiceIsValid".into())));
    let mark = world.ledger.len();
    annotate(&mut world, namespace("work").exported_from_by("member-2"));
    assert_eq!((counts(&world), valid_of(&world)), ([1, 0, 0, 0], ("False".into(), "ExporterNotAllowed".into())));
    let updated = events_since(&world, mark);
    assert_eq!(
        updated.iter().filter(|reason| **reason == "ExporterNotAllowed").count(),
        2,
        "on both sides once: {updated:?}"
    );

    world.restart_all();
    assert_eq!(world.run_for(600_000_000), 0, "refused, a settled fleet costs nothing");
    let mark = world.ledger.len();
    world.edit(Who::Member(0), Kind::Service, &named("work/app"), |object| {
        let Object::Service(service) = object else { return };
        service.ports[0].port = 81.into();
    });
    world.run();
    assert_eq!(beside_status(&world, mark), ["member-1 patches content of InternalServiceExport"]);
    assert_eq!(valid_of(&world), ("False".into(), "ExporterNotAllowed".into()));

    annotate(&mut world, namespace("work").exported_from_by("member-2, member-1"));
    assert_eq!((counts(&world), valid_of(&world)), ([1, 1, 1, 1], ("True".into(), "ServiceIsValid".into())));
    world.restart_all();
    assert_eq!(world.run_for(600_000_000), 0);
}

/// Rule T13: The InternalServiceExport of a denied exporter is deleted in the hub
/// Then: The conditions of the ServiceExport still show the denial until the hub agent sets a condition on the new
/// InternalServiceExport
#[test]
fn a_denied_exporter_whose_internal_export_was_deleted_withdraws_nothing_twice() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    annotate(&mut world, namespace("work").exported_from_by("member-2"));
    let mark = world.ledger.len();
    world.delete(Who::Hub, Kind::InternalServiceExport, &in_hub_of("member-1", "work-app"));
    world.run();
    assert_eq!(
        beside_status(&world, mark),
        [
            "hub patches finalizers of InternalServiceExport",
            "member-1 creates InternalServiceExport",
            "hub patches conditions of InternalServiceExport",
        ]
    );
    let updated = ["ServicePendingConflictResolution", "ExporterNotAllowed"];
    assert_eq!(events_since(&world, mark), updated, "of the new one, by the member and by the hub");
    annotate(&mut world, namespace("work"));
    assert_eq!((counts(&world), valid_of(&world)), ([1, 1, 1, 1], ("True".into(), "ServiceIsValid".into())));
}

/// Also rule T14.
#[test]
fn a_denied_importer_gets_no_slices_and_all_slices_again_when_it_is_allowed() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    annotate(&mut world, namespace("work").imported_from_by("member-1"));
    assert_eq!(counts(&world), [1, 1, 0, 0]);
    world.restart_all();
    assert_eq!(world.run_for(600_000_000), 0, "refused, a settled fleet costs nothing");
    annotate(&mut world, namespace("work").imported_from_by("member-2"));
    assert_eq!(counts(&world), [1, 1, 1, 1]);
}

/// Rule T19: The lists of exporters and importers of every namespace (rule T9) contain every member
/// Then: The agents make no more writes than in a fleet without these lists
#[test]
fn a_fleet_whose_namespaces_name_everybody_costs_no_more_than_one_that_names_nobody() {
    let open = fleet(2, ConsumerType::ClusterIp);
    let mut named = World::new(3);
    let everybody = "member-1,member-2,member-3";
    let annotated = namespace("work").exported_from_by(everybody).imported_from_by(everybody);
    named.create(Who::Hub, annotated.object());
    named.run();
    crate::support::world::populate(&mut named, 2, ConsumerType::ClusterIp);
    let sorted = |world: &World| {
        let mut lines = world.lines_since(0);
        lines.sort();
        lines
    };
    assert_eq!(sorted(&named), sorted(&open));
}
