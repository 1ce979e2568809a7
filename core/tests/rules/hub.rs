//! Tests of the hub agent: it merges exports into one ServiceImport, grants claims of importers, and distributes slices
//! to importers.

use crate::support::agent::View as _;
use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildNamespace, BuildService, IntoObject,
    claim, condition, conflict, content, distributed_slice, finalizers_of, in_hub_of, internal_export, named,
    namespace, no_conflict, port, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{NOW, claimed_hub_view, hub_view, observe_change, observe_removal, planned, writes};
use fleetnet_core::hub::Key;
use fleetnet_core::model::{
    Condition, HubSlice, ImportStatus, InternalServiceExport, InternalServiceImport, Kind, MemberCluster, Object,
    PortSetStamp, ServiceImport, ServicePort,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_types::{ClusterId, MemberNamespace, Timestamp, WatchState};
use std::collections::BTreeMap;

fn app() -> Key {
    Key::Service(named("work/app"))
}

/// Returns a cluster's export of `work/app` with these ports.
fn export_of(cluster: &str, ports: &[ServicePort]) -> InternalServiceExport {
    internal_export(cluster, &service("work/app").ports(ports))
}

fn stamped(export: &InternalServiceExport, since: Timestamp) -> Write {
    let stamp = PortSetStamp { since, ports: names::ports_fingerprint(&export.ports) };
    let patch = Patch::InternalServiceExportStamp { finalizers: export.meta.finalizers.with_ours(), stamp };
    Write::patch(&export.meta, patch)
}

fn set_outcome(export: &InternalServiceExport, set_outcome: Condition) -> Write {
    let updated = Condition { last_transition: seconds(20), ..set_outcome };
    Write::patch(&export.meta, Patch::InternalServiceExportConditions(vec![updated]))
}

fn http() -> Vec<ServicePort> {
    vec![port("http", 80)]
}

// === The hub agent resolves conflicts between exports ===

/// Rule H1: A member agent creates an InternalServiceExport in the hub
/// Then: The hub agent adds the finalizer to the InternalServiceExport. In the same write, the hub agent writes the
/// start time of the current port set to the stamp (annotation `ports-offered-since`)
#[test]
fn a_new_export_is_marked_and_stamped_in_one_write() {
    let fresh = export_of("member-1", &http()).with_finalizer("theirs");
    let view = hub_view([fresh.clone().object()]);
    assert_eq!(writes(&view, &app()), [stamped(&fresh, NOW)]);
}

/// Rule H5: The ports in an InternalServiceExport change
/// Then: If the port set differs from before, the hub agent writes a new start time to the stamp (annotation
/// `ports-offered-since`). If the port set is the same, the InternalServiceExport keeps its stamp and its place in the
/// order of exports (rule H3)
#[test]
fn an_export_with_other_ports_gets_a_new_stamp_and_one_with_the_same_keeps_its_stamp() {
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let standing = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let mut reordered = standing.clone();
    reordered.ports = vec![ServicePort { target_port: None, ..port("http", 80) }];
    let shown = ImportStatus { ports: reordered.ports.clone(), ..resolved(&["member-1"]) };
    let view = hub_view([reordered.object(), import.clone().showing(shown).object()]);
    assert_eq!(writes(&view, &app()), [], "where its pods listen is its own business");

    let mut changed = standing;
    changed.ports = vec![port("http", 81)];
    let view = hub_view([changed.clone().object(), import.object()]);
    assert_eq!(writes(&view, &app()), [stamped(&changed, NOW)]);
}

/// Rule H7: A Go hub agent accepted an export before the fleetnet hub agent started
/// Then: The export keeps its place in the order of exports. The age of its port set starts at the creationTimestamp of
/// the export. If a fleetnet hub agent wrote a stamp (annotation `ports-offered-since`) for earlier ports, the age
/// starts at the time in this stamp. The fleetnet hub agent writes the stamp of the export before it updates the
/// ServiceImport, because only the ServiceImport records the acceptance
#[test]
fn an_export_that_a_go_hub_had_accepted_keeps_its_place() {
    let of_go = export_of("member-1", &http()).created(seconds(3)).marked();
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let view = hub_view([of_go.clone().object(), import.object()]);
    assert_eq!(writes(&view, &app()), [stamped(&of_go, seconds(3))]);
}

/// Also rule H7.
#[test]
fn an_export_that_turned_under_a_go_hub_and_was_accepted_keeps_its_place() {
    // Our hub agent wrote `ports-offered-since` for earlier ports. Then a Go hub agent was the leader: it accepted the
    // current ports and put other exports in conflict. So the start time in the annotation now counts for the current
    // ports.
    let turned = InternalServiceExport {
        stamp: export_of("member-2", &[port("http", 79)]).port_set_since(seconds(4)).stamp,
        ..export_of("member-2", &http()).created(seconds(3)).marked().judged(no_conflict("work/app"))
    };
    let loser = export_of("member-1", &[port("http", 81)]).created(seconds(2)).marked();
    let import = service_import("work/app").showing(resolved(&["member-2"]));
    let view = hub_view([turned.clone().object(), loser.clone().object(), import.object()]);
    let planned = writes(&view, &app());
    assert_eq!(planned[..2], [stamped(&loser, NOW), stamped(&turned, seconds(4))]);

    // The status of this export has no such outcome of conflict resolution, so no hub agent has accepted its current
    // ports. The start time of these ports is now, although the ServiceImport lists the cluster of the export.
    let import = service_import("work/app").showing(resolved(&["member-2"]));
    for (why, unreported) in [
        ("no outcome", InternalServiceExport { conditions: Vec::new(), ..turned.clone() }),
        ("in conflict", turned.clone().judged(conflict("work/app"))),
        ("of an earlier generation", turned.generation(2)),
    ] {
        let view = hub_view([unreported.clone().object(), import.clone().object()]);
        assert_eq!(writes(&view, &app()), [stamped(&unreported, NOW)], "{why}");
    }
}

/// Also rule H12.
#[test]
fn a_dying_export_goes_at_once_if_its_cluster_exports_the_service_again() {
    let dying = export_of("member-1", &http()).port_set_since(seconds(2)).deleting();
    let mut again = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    again.meta.name = in_hub_of("member-1", "work-app-zzzzz");
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let view = hub_view([dying.clone().object(), again.uid("again").object(), import.object()]);
    assert_eq!(writes(&view, &app()), [Write::remove_finalizer(Kind::InternalServiceExport, &dying.meta)]);
}

/// Also rule H11.
#[test]
fn a_second_export_of_a_cluster_gets_an_outcome_but_no_stamp() {
    let first = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let mut second = export_of("member-1", &[port("http", 81)]).uid("second");
    second.meta.name = in_hub_of("member-1", "work-app-zzzzz");
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let view = hub_view([first.object(), second.clone().object(), import.object()]);
    assert_eq!(writes(&view, &app()), [set_outcome(&second, conflict("work/app"))]);
}

/// Also rule R9.
#[test]
fn an_event_about_another_winner_goes_to_those_that_stay_in_conflict() {
    let loses = || export_of("member-2", &[port("http", 82)]).port_set_since(seconds(3)).judged(conflict("work/app"));
    let winner = export_of("member-1", &[port("http", 81)]).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let unstamped = InternalServiceExport { ports: vec![port("http", 83)], ..loses() };
    let joins = export_of("member-2", &[port("http", 81)]).port_set_since(seconds(3)).judged(conflict("work/app"));
    let table = [
        ("other ports", loses(), 1),
        ("its ports are new", unstamped, 0),
        ("it has the ports of the winner now", joins, 0),
        ("it was not in conflict", loses().judged(no_conflict("work/app")), 0),
    ];
    let import = service_import("work/app").showing(resolved(&["member-1"])).object();
    for (why, other, number) in table {
        let view = hub_view([winner.clone().object(), other.object(), import.clone()]);
        let plan = planned(&view, &app());
        let is_import = |write: &&Write| write.kind() == Kind::ServiceImport;
        let update = plan.writes.iter().find(is_import).expect("the ports of the winner change");
        let conflicts = update.events.iter().filter(|event| event.reason.as_str() == "ConflictFound");
        assert_eq!(conflicts.count(), number, "{why}");
    }
}

/// Also rule R9.
#[test]
fn an_accepted_export_that_was_not_in_conflict_gets_no_event() {
    let message = "service work/app is pending";
    let pending = condition("Conflict", "Unknown", "ServicePendingConflictResolution", message, 1);
    let export = export_of("member-1", &http()).port_set_since(seconds(2)).judged(pending);
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let plan = planned(&hub_view([export.object(), import.object()]), &app());
    assert_eq!(plan.writes.iter().map(|write| write.events.len()).collect::<Vec<_>>(), [0]);
}

/// Rule H2: The first InternalServiceExport of a Service is created
/// Then: The hub agent creates the ServiceImport. Then the hub agent writes the exporting members to the ServiceImport.
/// Then the hub agent sets the outcome (accepted or conflicted) of the exports of these members
#[test]
fn the_import_is_created_then_lists_its_exporters_then_they_get_their_outcome() {
    let export = export_of("member-1", &http()).port_set_since(seconds(2));
    let view = hub_view([export.clone().object()]);
    let desired = Desired::ServiceImport { controller: None, finalizer: false };
    assert_eq!(writes(&view, &app()), [Write::create(named("work/app"), desired)]);

    let import = service_import("work/app");
    let view = hub_view([export.clone().object(), import.clone().object()]);
    let status = Patch::ServiceImportStatus(resolved(&["member-1"]));
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, status)]);

    let view = hub_view([export.clone().object(), import.showing(resolved(&["member-1"])).object()]);
    assert_eq!(writes(&view, &app()), [set_outcome(&export, no_conflict("work/app"))]);
}

/// Returns the accepted clusters and their ports. Each export is given as cluster, start time of its port set in
/// seconds, and ports.
fn resolution(exports: &[(&str, i64, &[ServicePort])]) -> (Vec<ClusterId>, Vec<ServicePort>) {
    let exports =
        exports.iter().map(|(cluster, since, ports)| export_of(cluster, ports).port_set_since(seconds(*since)));
    let view = hub_view(exports.map(IntoObject::object).chain([service_import("work/app").object()]));
    let planned = writes(&view, &app());
    let [Write { action: Action::Patch { patch: Patch::ServiceImportStatus(status), .. }, .. }] = &planned[..] else {
        panic!("one status, not {planned:#?}");
    };
    (status.clusters.clone(), status.ports.clone())
}

/// Rule H3: Several members export the Service
/// Then: The export with the oldest port set wins. If two port sets have the same age, the export of the cluster with
/// the first id in alphabetical order wins. Exports with the same port set as the winner are accepted too. The
/// ServiceImport lists the exporting members by the age of their port sets
#[test]
fn the_oldest_port_set_wins_and_exports_with_equal_ports_are_accepted_too() {
    let (http, admin) = (http(), vec![port("admin", 81)]);
    let both = vec![port("http", 80), port("admin", 81)];
    let turned = vec![port("admin", 81), port("http", 80)];
    let hinted = vec![ServicePort { app_protocol: Some("h2c".into()), ..port("http", 80) }];
    let udp = vec![ServicePort { protocol: "UDP".into(), ..port("http", 80) }];
    type Exports<'a> = Vec<(&'a str, i64, &'a [ServicePort])>;
    let table: Vec<(&str, Exports<'_>, &[&str], &[ServicePort])> = vec![
        ("alone", vec![("b", 5, &http)], &["b"], &http),
        ("the same", vec![("b", 5, &http), ("a", 6, &http)], &["b", "a"], &http),
        ("others", vec![("b", 5, &http), ("a", 6, &admin)], &["b"], &http),
        ("older wins, whatever its name", vec![("a", 6, &admin), ("b", 5, &http), ("c", 9, &admin)], &["b"], &http),
        ("at one time the name decides", vec![("b", 5, &http), ("a", 5, &admin)], &["a"], &admin),
        ("in any order", vec![("a", 5, &both), ("b", 6, &turned)], &["a", "b"], &both),
        ("another appProtocol", vec![("a", 5, &http), ("b", 6, &hinted)], &["a"], &http),
        ("another protocol", vec![("a", 5, &http), ("b", 6, &udp)], &["a"], &http),
    ];
    for (case, exports, clusters, ports) in table {
        let (accepted, shown) = resolution(&exports);
        assert_eq!(accepted.iter().map(|cluster| &**cluster).collect::<Vec<_>>(), clusters, "{case}");
        assert_eq!(shown, ports, "{case}");
    }
}

/// Rule H6: An InternalServiceExport has no finalizer, or no stamp (annotation `ports-offered-since`) for its current
/// ports
/// Then: The hub agent writes the finalizer and the stamp before conflict resolution
#[test]
fn an_export_without_mark_and_current_stamp_is_stamped_before_its_outcome() {
    let standing = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let stamped_once = export_of("member-2", &http()).port_set_since(seconds(3));
    let mut unmarked = stamped_once.clone();
    unmarked.meta.finalizers.ours = false;
    let mut of_other_ports = stamped_once;
    of_other_ports.ports = vec![port("http", 81)];
    let table = [
        ("fresh", export_of("member-2", &http()), NOW),
        ("marked only", export_of("member-2", &http()).marked(), NOW),
        ("stamped only", unmarked, seconds(3)),
        ("stamped for other ports", of_other_ports, NOW),
    ];
    for (case, export, since) in table {
        let view = hub_view([standing.clone().object(), export.clone().object(), import.clone().object()]);
        assert_eq!(writes(&view, &app()), [stamped(&export, since)], "{case}");
    }
}

/// Rule H8: An export is conflicted
/// Then: The hub agent sets `Conflict=True` on the InternalServiceExport, and emits an Event whose message contains the
/// ports, the clusters and the winner (bug B18)
///
/// Also rule R9.
#[test]
fn a_conflicted_export_shows_what_differs_and_from_which_cluster() {
    let winner = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let loser = export_of("member-2", &[port("http", 81)]).port_set_since(seconds(3)).judged(no_conflict("work/app"));
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let view = hub_view([winner.object(), loser.clone().object(), import.object()]);
    assert_eq!(writes(&view, &app()), [set_outcome(&loser, conflict("work/app"))]);
    let plan = planned(&view, &app());
    let updated: Vec<(&str, &str)> = plan
        .writes
        .iter()
        .flat_map(|write| &write.events)
        .map(|event| (event.reason.as_str(), &*event.message))
        .collect();
    assert_eq!(
        updated,
        [(
            "ConflictFound",
            "service work/app of cluster member-2 is in conflict with the export of cluster member-1, which has \
             exported its ports for longer: only member-2 exports http 81/TCP; only member-1 exports http 80/TCP. \
             Export the same ports, or export under another name"
        )]
    );
}

/// Also rule R9.
#[test]
fn a_conflict_that_stays_in_the_next_generation_of_an_export_emits_another_event() {
    let winner = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let mut loser = export_of("member-2", &[port("http", 81)]).port_set_since(seconds(3)).judged(conflict("work/app"));
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    for (generation, events) in [(1, 0), (2, 1)] {
        loser.meta.generation = generation;
        let view = hub_view([winner.clone().object(), loser.clone().object(), import.clone().object()]);
        let emitted = planned(&view, &app()).writes.iter().map(|write| write.events.len()).sum::<usize>();
        assert_eq!(emitted, events, "generation {generation}");
    }
}

/// Rule H11: An InternalServiceExport contains the id of a wrong cluster, or a cluster has two InternalServiceExports
/// of one Service
/// Then: The hub agent reads the cluster id from the name of the member namespace. If a cluster has two
/// InternalServiceExports of one Service, the hub agent uses only the one whose name is first in alphabetical order
///
/// Rule T1: An object in a member namespace contains the id of a cluster other than its member
/// Then: The hub agent uses the cluster id of the member namespace, and ignores the id in the object. The hub agent
/// uses the id of the member namespace for exports, for claims, and for the cluster id in distributed slices
/// (EndpointSliceImports)
#[test]
fn the_cluster_is_read_from_the_namespace_not_from_the_object() {
    let mut liar = export_of("member-1", &http()).port_set_since(seconds(2));
    liar.reference.cluster = "member-9".into();
    let mut second = export_of("member-1", &[port("http", 81)]).port_set_since(seconds(1)).uid("second");
    second.meta.name = in_hub_of("member-1", "work-app-zzzzz");
    let mut stranger = export_of("member-1", &http()).port_set_since(seconds(1)).uid("stranger");
    stranger.meta.name = named("default/work-app");
    let import = service_import("work/app");
    let view = hub_view([liar.object(), second.object(), stranger.object(), import.clone().object()]);
    let status = Patch::ServiceImportStatus(resolved(&["member-1"]));
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, status)]);
}

/// Rule H12: An InternalServiceExport is deleted
/// Then: The hub agent removes the cluster from the ServiceImport. Then the hub agent removes the finalizer of the
/// InternalServiceExport. The hub agent does not wait for conflict resolution (bug B15)
#[test]
fn a_dying_export_goes_once_the_import_does_not_name_its_cluster() {
    let stays = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let dying = export_of("member-2", &http()).port_set_since(seconds(3)).deleting();
    let import = service_import("work/app").showing(resolved(&["member-1", "member-2"]));
    let view = hub_view([stays.clone().object(), dying.clone().object(), import.clone().object()]);
    let status = Patch::ServiceImportStatus(resolved(&["member-1"]));
    assert_eq!(writes(&view, &app()), [Write::patch(&import.meta, status)]);
    let view = hub_view([stays.object(), dying.clone().object(), import.showing(resolved(&["member-1"])).object()]);
    assert_eq!(writes(&view, &app()), [Write::remove_finalizer(Kind::InternalServiceExport, &dying.meta)]);
}

/// Rule H13: The last InternalServiceExport of a Service is deleted
/// Then: The hub agent deletes the ServiceImport
#[test]
fn the_import_goes_with_its_last_export() {
    let dying = export_of("member-1", &http()).port_set_since(seconds(2)).deleting();
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let view = hub_view([dying.clone().object(), import.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::delete(Kind::ServiceImport, &import.meta)]);
    let view = hub_view([dying.clone().object()]);
    assert_eq!(writes(&view, &app()), [Write::remove_finalizer(Kind::InternalServiceExport, &dying.meta)]);
}

// === The hub agent grants claims ===

/// Returns the objects of a Service that member-1 exports, with this ServiceImport.
fn exported(import: &ServiceImport) -> Vec<Object> {
    let export = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    vec![export.object(), import.clone().object()]
}

fn claims_of(clusters: &[&str]) -> BTreeMap<MemberNamespace, ClusterId> {
    clusters.iter().map(|cluster| (names::member_namespace(cluster), ClusterId::from(*cluster))).collect()
}

fn recorded(import: &ServiceImport, clusters: &[&str]) -> Write {
    let finalizers = finalizers_of(&import.meta, !clusters.is_empty());
    let patch = Patch::Claims { importers: claims_of(clusters), load_balancer: None, finalizers };
    Write::patch(&import.meta, patch)
}

fn mark(claim: &InternalServiceImport, ours: bool) -> Write {
    if ours {
        Write::add_finalizer(Kind::InternalServiceImport, &claim.meta)
    } else {
        Write::remove_finalizer(Kind::InternalServiceImport, &claim.meta)
    }
}

fn answer(claim: &InternalServiceImport, status: ImportStatus) -> Write {
    Write::patch(&claim.meta, Patch::InternalServiceImportStatus(status))
}

/// Returns the planned writes for a ServiceImport and these claims.
fn claimed(import: &ServiceImport, claims: &[&InternalServiceImport]) -> Vec<Write> {
    let claims = claims.iter().map(|claim| (*claim).clone().object());
    writes(&hub_view(exported(import).into_iter().chain(claims)), &app())
}

fn claim_of(cluster: &str) -> InternalServiceImport {
    claim(cluster, &service_import("work/app"))
}

/// Rule C1: A claim (InternalServiceImport) is created
/// Then: The hub agent adds the finalizer to the claim. Then the hub agent records the claim in `service-in-use-by` of
/// the ServiceImport. Then the hub agent copies the status of the ServiceImport to the claim
#[test]
fn a_claim_is_marked_then_recorded_then_answered() {
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let fresh = claim_of("member-2");
    assert_eq!(claimed(&import, &[&fresh]), [mark(&fresh, true)]);
    let marked = fresh.marked();
    assert_eq!(claimed(&import, &[&marked]), [recorded(&import, &["member-2"])]);
    let granted = import.claimed_by(&["member-2"]);
    assert_eq!(claimed(&granted, &[&marked]), [answer(&marked, resolved(&["member-1"]))]);
    assert_eq!(claimed(&granted, &[&marked.with_status(resolved(&["member-1"]))]), []);
}

/// Rule C2: Several members claim a Service
/// Then: The hub agent grants only one exclusive claim (InternalServiceImport) at a time: the first one. The hub agent
/// grants any number of shared claims. Shared claims and exclusive claims do not block each other
#[test]
fn one_loadbalancer_claimer_holds_and_any_number_of_clusterip_ones_beside_it() {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let status = || resolved(&["member-1"]);
    let holder = claim_of("member-2").created(seconds(9)).marked().with_status(status());
    let older = claim_of("member-3").created(seconds(1));
    assert_eq!(claimed(&import, &[&holder, &older]), [], "who holds it keeps it");
    let shared = claim_of("member-4").east_west();
    assert_eq!(claimed(&import, &[&holder, &older, &shared]), [mark(&shared, true)]);
    let shared = shared.marked();
    let both = claims_of(&["member-2", "member-4"]);
    let patch = Patch::Claims {
        importers: both,
        load_balancer: Some(names::member_namespace("member-2")),
        finalizers: import.meta.finalizers.clone(),
    };
    let both = Write::patch(&import.meta, patch);
    assert_eq!(claimed(&import, &[&holder, &older, &shared]), [both], "neither blocks the other");

    let free = service_import("work/app").showing(status());
    let (first, second) = (claim_of("member-3").created(seconds(1)), claim_of("member-2").created(seconds(2)));
    assert_eq!(claimed(&free, &[&first, &second]), [mark(&first, true)], "first come, first served");
    let (a, b) = (claim_of("member-3"), claim_of("member-2"));
    assert_eq!(claimed(&free, &[&a, &b]), [mark(&b, true)], "of the same second, the first by name");
}

/// Rule C3: An importing member deletes its claim (InternalServiceImport), or claims another Service
/// Then: The hub agent removes the member from `service-in-use-by`. Then the hub agent removes the finalizer of the
/// claim. Then the hub agent grants the oldest pending claim, and the member of this claim gets all slices of the
/// Service
#[test]
fn a_deleted_claim_leaves_the_record_then_is_unmarked_and_the_next_claim_is_granted() {
    let status = || resolved(&["member-1"]);
    let import = service_import("work/app").showing(status()).claimed_by(&["member-2"]);
    let dying = claim_of("member-2").marked().with_status(status()).deleting();
    let next = claim_of("member-3");
    let planned = claimed(&import, &[&dying, &next]);
    assert_eq!(planned, [mark(&next, true), recorded(&import, &[])]);
    let struck = service_import("work/app").showing(status());
    assert_eq!(claimed(&struck, &[&dying, &next.marked()])[0], mark(&dying, false));
}

/// Rule C5: A claim (InternalServiceImport) was granted and loses the grant
/// Then: The hub agent empties the status of the claim. Then the hub agent removes the finalizer of the claim
#[test]
fn a_claim_that_lost_its_grant_gets_an_empty_status() {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-3"]);
    let holder = claim_of("member-3").marked().with_status(resolved(&["member-1"]));
    let loser = claim_of("member-2").marked().with_status(resolved(&["member-1"]));
    assert_eq!(claimed(&import, &[&holder, &loser]), [answer(&loser, ImportStatus::default())]);
    let updated = loser.with_status(ImportStatus::default());
    assert_eq!(claimed(&import, &[&holder, &updated]), [mark(&updated, false)]);
}

/// Rule C14: The exclusive claim (InternalServiceImport) of one member loses its grant, and the exclusive claim of
/// another member gets it
/// Then: The hub agent empties the status of the first claim before it sets the status of the second claim. So the
/// exclusive claims of two members never show a grant for one Service at the same time
#[test]
fn an_exclusive_claim_is_answered_when_no_other_one_shows_a_grant() {
    let status = || resolved(&["member-1"]);
    let import = service_import("work/app").showing(status()).claimed_by(&["member-3"]);
    let winner = claim_of("member-3").marked();
    let loser = claim_of("member-2").marked().with_status(status());
    assert_eq!(claimed(&import, &[&winner, &loser]), [answer(&loser, ImportStatus::default())]);
    let revoked = loser.clone().with_status(ImportStatus::default());
    assert_eq!(claimed(&import, &[&winner, &revoked]), [mark(&revoked, false), answer(&winner, status())]);

    let mut elsewhere = loser.clone();
    elsewhere.meta.name = named("elsewhere/work-app");
    let answered = winner.clone().with_status(resolved(&["member-4"]));
    for (why, winner, other) in [
        ("the other claim is deleted", &winner, loser.clone().deleting()),
        ("the other claim is shared", &winner, loser.clone().east_west()),
        ("the other claim is in no member namespace", &winner, elsewhere),
        ("the granted claim is shared", &winner.clone().east_west(), loser.clone()),
        ("the granted claim has an older answer", &answered, loser),
    ] {
        let writes = claimed(&import, &[winner, &other]);
        assert!(writes.contains(&answer(winner, status())), "{why}: {writes:?}");
    }
}

/// Rule C9: The ServiceImport in the hub is deleted and created again
/// Then: The claims (InternalServiceImports) stay unchanged until the ServiceImport exists again. Then the hub agent
/// grants the claim that was granted before
#[test]
fn claims_wait_for_an_import_whose_namespace_was_deleted_and_the_same_one_gets_it_again() {
    let status = || resolved(&["member-1"]);
    let holder = claim_of("member-3").created(seconds(9)).marked().with_status(status());
    let waits = claim_of("member-2").created(seconds(1));
    let export = export_of("member-1", &http()).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let gone = hub_view([export.object(), holder.clone().object(), waits.clone().object()]);
    let planned = writes(&gone, &app());
    assert!(
        matches!(&planned[..], [Write { action: Action::Create(Desired::ServiceImport { .. }), .. }]),
        "{planned:?}"
    );

    let dying = service_import("work/app").showing(status()).claimed_by(&["member-3"]).deleting();
    assert_eq!(claimed(&dying, &[&holder, &waits]), [recorded(&dying, &[])], "it is let go, and nobody is told of it");

    let fresh = claimed(&service_import("work/app"), &[&holder, &waits]);
    assert!(matches!(&fresh[..], [write] if write.kind() == Kind::ServiceImport), "it is resolved first: {fresh:?}");
    let recreated = service_import("work/app").showing(status());
    assert_eq!(claimed(&recreated, &[&holder, &waits]), [recorded(&recreated, &["member-3"])]);

    let leaving = holder.with_status(ImportStatus::default()).deleting();
    let gone = hub_view([leaving.clone().object()]);
    assert_eq!(writes(&gone, &app()), [mark(&leaving, false)], "who leaves is let go");
}

/// Rule C6: The Service has no exporting member
/// Then: The hub agent grants no new claim (InternalServiceImport). Granted claims stay granted
#[test]
fn a_claim_waits_for_exporters_and_is_kept_without_them() {
    let unresolved = service_import("work/app");
    let fresh = claim_of("member-2");
    let view = hub_view([unresolved.object(), export_of("member-1", &http()).object(), fresh.clone().object()]);
    let kinds: Vec<Kind> = writes(&view, &app()).iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::InternalServiceExport], "only the stamp");

    // The only exporter changes its ports, so for a moment no export is accepted. The importer keeps its claim.
    let recorded_import = service_import("work/app").claimed_by(&["member-2"]);
    let holder = fresh.marked();
    let view = hub_view([recorded_import.object(), export_of("member-1", &http()).object(), holder.object()]);
    let kinds: Vec<Kind> = writes(&view, &app()).iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::InternalServiceExport]);
}

/// Rule C8: The annotation `service-in-use-by` cannot be parsed
/// Then: The hub agent writes the annotation `service-in-use-by` again from the claims (InternalServiceImports)
#[test]
fn a_record_that_cannot_be_decoded_is_rewritten() {
    let mut import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&[]);
    assert!(import.claims.present);
    assert_eq!(claimed(&import, &[]), [recorded(&import, &[])], "nobody claims: the annotation goes");
    let mut unmarked = import.clone();
    unmarked.meta.finalizers.ours = false;
    assert_eq!(claimed(&unmarked, &[]), [recorded(&unmarked, &[])], "also where it was never marked");
    import.claims.importers.clear();
    let marked = claim_of("member-2").marked();
    assert_eq!(claimed(&import, &[&marked]), [recorded(&import, &["member-2"])]);
}

// === The hub agent distributes slices to importers ===

fn slice_key(object: &HubSlice) -> Key {
    Key::Slice(object.meta.name.name.clone())
}

/// Rule D1: A source slice is exported, and members claim the Service of the slice
/// Then: The hub agent adds the finalizer to the EndpointSliceExport once. Then the hub agent creates a distributed
/// slice (EndpointSliceImport) for each member with a granted claim (InternalServiceImport). The distributed slices
/// have the name of the EndpointSliceExport
#[test]
fn a_slice_is_marked_once_then_distributed_to_every_importer() {
    let export = slice_export("member-1", &slice("work/app-1"));
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2", "member-3"]);
    let view = claimed_hub_view([Object::EndpointSliceExport(export.clone()), import.clone().object()]);
    let key = slice_key(&export);
    assert_eq!(writes(&view, &key), [Write::add_finalizer(Kind::EndpointSliceExport, &export.meta)]);

    let marked = export.marked();
    let view = claimed_hub_view([Object::EndpointSliceExport(marked.clone()), import.clone().object()]);
    let create = |cluster: &str| {
        let at = in_hub_of(cluster, &marked.meta.name.name);
        Write::create(at, Desired::EndpointSliceImport(marked.spec.clone()))
    };
    assert_eq!(writes(&view, &key), [create("member-2"), create("member-3")]);

    let distributed = distributed_slice("member-2", &marked);
    let changed = marked.clone().with_addresses(&["10.0.0.9"], 2);
    let objects = [Object::EndpointSliceExport(changed.clone()), Object::EndpointSliceImport(distributed.clone())];
    let view = claimed_hub_view(objects.into_iter().chain([import.object()]));
    let patch = Write::patch(&distributed.meta, Patch::EndpointSliceImport(changed.spec.clone()));
    let at = in_hub_of("member-3", &marked.meta.name.name);
    let create = Write::create(at, Desired::EndpointSliceImport(changed.spec));
    assert_eq!(writes(&view, &key), [patch, create]);
}

/// Rule D2: A source slice is exported and no member claims its Service
/// Then: The hub agent writes nothing for this slice
#[test]
fn a_slice_that_nobody_imports_costs_nothing() {
    let export = slice_export("member-1", &slice("work/app-1"));
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let view = hub_view([Object::EndpointSliceExport(export.clone()), import.object()]);
    assert_eq!(writes(&view, &slice_key(&export)), []);
}

/// Rule D3: A claim (InternalServiceImport) is deleted or loses the grant
/// Then: The hub agent deletes the distributed slices (EndpointSliceImports) of the claim. When an EndpointSliceExport
/// has no distributed slice any more, the hub agent removes the finalizer of the EndpointSliceExport
///
/// Rule D6: The ServiceImport in the hub is missing for a short time, so the hub agent does not know which claims
/// (InternalServiceImports) it has granted
/// Then: The hub agent does not delete the distributed slices (EndpointSliceImports) of members that still have a claim
#[test]
fn a_distributed_slice_goes_with_its_claim_and_the_mark_with_the_last_slice() {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let distributed = distributed_slice("member-2", &export).marked();
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let both = [Object::EndpointSliceExport(export.clone()), Object::EndpointSliceImport(distributed.clone())];
    let view = hub_view(both.iter().cloned().chain([import.clone().object()]));
    let key = slice_key(&export);
    assert_eq!(writes(&view, &key), [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
    let dying = Object::EndpointSliceImport(distributed.clone().deleting());
    let view = hub_view([both[0].clone(), dying, import.object()]);
    assert_eq!(writes(&view, &key), [Write::remove_finalizer(Kind::EndpointSliceExport, &export.meta)]);

    let waiting = claim_of("member-2").marked();
    let view = hub_view(both.iter().cloned().chain([waiting.clone().object()]));
    assert_eq!(writes(&view, &key), [], "without the import nothing is known of who holds a claim");
    let view = hub_view(both.iter().cloned());
    let withdrawn = [Write::delete(Kind::EndpointSliceImport, &distributed.meta)];
    assert_eq!(writes(&view, &key), withdrawn, "and nobody there wants it any more");
    let recreated = service_import("work/app");
    let view = hub_view(both.into_iter().chain([recreated.object(), waiting.object()]));
    assert_eq!(writes(&view, &key), [], "a claim that is about to be granted again keeps its slices");
}

/// Rule D4: An EndpointSliceExport is deleted
/// Then: The hub agent deletes the distributed slices (EndpointSliceImports) of the EndpointSliceExport. Then the hub
/// agent removes the finalizer of the EndpointSliceExport
#[test]
fn a_slice_that_goes_takes_its_distributed_slices_with_it_then_its_mark() {
    let dying = slice_export("member-1", &slice("work/app-1")).marked().deleting();
    let distributed_slices = ["member-2", "member-3"].map(|importer| distributed_slice(importer, &dying));
    let mut objects: Vec<Object> = distributed_slices
        .iter()
        .map(|distributed| {
            let mut distributed = distributed.clone();
            (distributed.meta.deleting, distributed.meta.finalizers.ours) = (false, false);
            Object::EndpointSliceImport(distributed)
        })
        .collect();
    let delete =
        distributed_slices.each_ref().map(|distributed| Write::delete(Kind::EndpointSliceImport, &distributed.meta));
    let key = slice_key(&dying);
    assert_eq!(writes(&hub_view(objects.clone()), &key), delete, "gone already");
    objects.push(Object::EndpointSliceExport(dying.clone()));
    assert_eq!(writes(&hub_view(objects), &key), delete);
    let view = hub_view([Object::EndpointSliceExport(dying.clone())]);
    assert_eq!(writes(&view, &key), [Write::remove_finalizer(Kind::EndpointSliceExport, &dying.meta)]);
}

/// Also rule D4.
#[test]
fn a_distributed_slice_that_appears_without_an_export_goes() {
    // A create of a leader that was killed arrives late.
    let distributed = distributed_slice("member-2", &slice_export("member-1", &slice("work/app-1")));
    let mut view = hub_view([]);
    let requeue = observe_change(&mut view, Object::EndpointSliceImport(distributed.clone()));
    let written: Vec<_> = requeue.iter().flat_map(|key| writes(&view, key)).collect();
    assert_eq!(written, [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
}

/// Rule L9: Two values of `exportedSince` differ only because one of the two is cut to the whole second
/// Then: The agents treat the two values as equal, because a Go hub agent cuts `exportedSince` to the whole second
///
/// Also rule D12.
#[test]
fn stamps_that_differ_below_the_second_are_equal() {
    let mut export = slice_export("member-1", &slice("work/app-1")).marked();
    export.spec.reference.exported_since = Some(Timestamp(5_400_000));
    let mut distributed = distributed_slice("member-2", &export);
    distributed.spec.reference.exported_since = Some(seconds(5)); // a Go hub agent cuts the time to seconds
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let with = |distributed: &HubSlice| {
        claimed_hub_view([
            Object::EndpointSliceExport(export.clone()),
            Object::EndpointSliceImport(distributed.clone()),
            import.clone().object(),
        ])
    };
    assert_eq!(writes(&with(&distributed), &slice_key(&export)), []);
    distributed.spec.reference.exported_since = Some(seconds(6));
    assert_eq!(writes(&with(&distributed), &slice_key(&export)).len(), 1);
}

/// Also rules D8, T6.
#[test]
fn the_holder_of_a_name_is_the_oldest_export_and_at_equal_age_the_first_namespace() {
    let made = |cluster: &str, endpoint: &str, at: i64| {
        let source = slice("work/app-1").uid(&format!("uid-in-{cluster}"));
        let export = slice_export(cluster, &source).called("app-1").with_addresses(&[endpoint], 1);
        export.marked().created(seconds(at))
    };
    let both = resolved(&["member-1", "member-2"]);
    let import = service_import("work/app").showing(both).claimed_by(&["member-3"]);
    let key = Key::Slice("app-1".into());
    for (of_first, of_second, holder) in [(2, 3, "10.0.1.1"), (3, 2, "10.0.2.2"), (2, 2, "10.0.1.1")] {
        let exports = [made("member-1", "10.0.1.1", of_first), made("member-2", "10.0.2.2", of_second)];
        let view =
            claimed_hub_view(exports.map(Object::EndpointSliceExport).into_iter().chain([import.clone().object()]));
        let planned = writes(&view, &key);
        let [Write { action: Action::Create(Desired::EndpointSliceImport(spec)), .. }] = &planned[..] else {
            panic!("one distributed slice, not {planned:#?}");
        };
        assert_eq!(*spec.content, content(&[holder]), "made at second {of_first} and {of_second}");
    }
}

/// Rule D9: A distributed slice (EndpointSliceImport) is being deleted, but its importing member still needs it
/// Then: The hub agent makes no write to this distributed slice, and creates a new distributed slice when the old one
/// is removed
#[test]
fn a_distributed_slice_being_deleted_is_left_alone_and_recreated_when_it_is_gone() {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let dying = Object::EndpointSliceImport(distributed_slice("member-2", &export).deleting());
    let changed = export.with_addresses(&["10.0.0.9"], 2);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let mut view = claimed_hub_view([Object::EndpointSliceExport(changed.clone()), dying.clone(), import.object()]);
    let key = slice_key(&changed);
    assert_eq!(writes(&view, &key), []);
    assert_eq!(observe_removal(&mut view, &dying), std::slice::from_ref(&key));
    let at = in_hub_of("member-2", &changed.meta.name.name);
    let create = Write::create(at, Desired::EndpointSliceImport(changed.spec));
    assert_eq!(writes(&view, &key), [create]);
}

/// Rule O13: A MemberCluster is deleted, and then its member namespace
/// Then: The member agent has `--force-delete-wait-time` after the deletion of the MemberCluster to remove its
/// finalizers. Then the hub agent removes them, as in rule D13. If the kind MemberCluster is removed, the last known
/// MemberClusters count
#[test]
fn after_the_deletion_of_a_membercluster_its_agent_has_time_to_remove_its_finalizers() {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let distributed = distributed_slice("member-2", &export).marked().deleting();
    let key = Key::DistributedSlice {
        slice: distributed.meta.name.name.clone(),
        importer: distributed.meta.name.member_namespace(),
    };
    let namespace = namespace("fleet-member-member-2").deleting();
    let mut meta = namespace.meta.clone();
    (meta.name.name, meta.uid) = ("member-2".into(), "uid-of-member-2".into());
    let member = |deleted| MemberCluster { meta: meta.clone(), deleted };
    let distributed = Object::EndpointSliceImport(distributed);
    let mut view = hub_view([Object::EndpointSliceExport(export), distributed.clone(), namespace.object()]);
    let released = [Write::remove_finalizer(Kind::EndpointSliceImport, distributed.meta())];
    view.force_delete_micros = Some(120_000_000);
    view.watch_state(Kind::MemberCluster, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, NOW), Plan::default(), "perhaps it has time");
    let mut requeue = Vec::new();
    view.watch_state(Kind::MemberCluster, WatchState::Absent, NOW, &mut requeue);
    assert!(requeue.contains(&key));
    assert_eq!(writes(&view, &key), released, "nobody defines members");
    view.watch_state(Kind::MemberCluster, WatchState::Complete, NOW, &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, NOW).writes, released, "the member is unknown");

    let requeue = observe_change(&mut view, member(Some(NOW)).object());
    assert_eq!(requeue, [Key::Slice(distributed.meta().name.name.clone())]);
    let until = NOW.plus_micros(120_000_000);
    assert_eq!(view.decide_and_record(&key, NOW), Plan { again: Some(until), ..Plan::default() });
    assert_eq!(view.decide_and_record(&key, until).writes, released);
    view.watch_state(Kind::MemberCluster, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, NOW).again, Some(until), "the manager was removed in between");
    assert_eq!(view.decide_and_record(&key, until).writes, released);
    observe_change(&mut view, member(None).object());
    assert_eq!(writes(&view, &key), released, "somebody else deleted the namespace");
    view.force_delete_micros = None;
    assert_eq!(writes(&view, &key), released);
}

/// Rule D13: A member namespace is deleted in the hub
/// Then: The hub agent removes the member agent's finalizer from the distributed slices (EndpointSliceImports) and
/// MergedServiceImports of this namespace. The member agent may be unable to remove the finalizer, because Kubernetes
/// also deletes the account and role of the member agent, in any order
#[test]
fn a_deleted_distributed_slice_is_unmarked_when_its_namespace_is_deleted() {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let key = slice_key(&export);
    let distributed = distributed_slice("member-2", &export).marked();
    let dying = distributed.clone().deleting();
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let objects = |distributed: &HubSlice, others: &[Object]| {
        let distributed = Object::EndpointSliceImport(distributed.clone());
        claimed_hub_view(
            [Object::EndpointSliceExport(export.clone()), distributed, import.clone().object()]
                .into_iter()
                .chain(others.to_vec()),
        )
    };
    let [stays, goes] = [namespace("fleet-member-member-2"), namespace("fleet-member-member-2").deleting()];
    let released = [Write::remove_finalizer(Kind::EndpointSliceImport, &dying.meta)];
    // The agent may see the deletion of the slice before or after that of the namespace. The result is the same.
    let mut view = objects(&dying, &[stays.clone().object()]);
    assert_eq!(writes(&view, &key), [], "its agent lets it go");
    assert!(observe_change(&mut view, goes.clone().object()).contains(&key));
    assert_eq!(writes(&view, &key), released);
    // Kubernetes deletes the claim together with the namespace. So the claim may be gone first, and the agent must
    // requeue the slice even without it.
    let distributed_alone = [Object::EndpointSliceExport(export.clone()), Object::EndpointSliceImport(dying.clone())];
    let mut view = hub_view(distributed_alone.into_iter().chain([import.clone().object(), stays.object()]));
    assert!(observe_change(&mut view, goes.clone().object()).contains(&key));
    let mut view = objects(&distributed, &[goes.clone().object()]);
    assert_eq!(writes(&view, &key), [], "it is not deleted yet");
    assert_eq!(observe_change(&mut view, Object::EndpointSliceImport(dying.clone())), std::slice::from_ref(&key));
    assert_eq!(writes(&view, &key), released);
    // While the state of the namespace is unknown, the hub agent does not remove the finalizer: the member agent may
    // still do so.
    view.watch_state(Kind::Namespace, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &key), []);
    let others = dying.with_finalizer("example.com/other");
    let view = objects(&others, &[goes.clone().object()]);
    assert_eq!(writes(&view, &key), [Write::remove_finalizer(Kind::EndpointSliceImport, &others.meta)]);
    let unmarked = distributed_slice("member-2", &export).deleting();
    assert_eq!(writes(&objects(&unmarked, &[goes.object()]), &key), []);
}

/// Rule D15: A ServiceImport is being deleted and another controller holds it, or it was created again and does not
/// record the claims yet
/// Then: The hub agent creates no distributed slice for its Service. The existing distributed slices of importers whose
/// claim will be granted again stay, and get the changes of their EndpointSliceExport
#[test]
fn a_distributed_slice_is_updated_while_its_service_import_records_no_claims() {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let key = slice_key(&export);
    let importer_has = distributed_slice("member-2", &export).marked();
    let export = export.with_addresses(&["10.0.0.9"], 2);
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let of_importer = claim("member-2", &import).east_west().marked().with_status(import.status.clone());
    // Another controller holds the deletion of the first one. The second one was created again.
    for import in [import.clone().deleting(), import] {
        for (claimed, right, updates) in [(true, None, 1), (true, Some(""), 0), (false, None, 0)] {
            let of_importer = of_importer.clone().object();
            let namespace = right.map(|right| namespace("work").imported_from_by(right).object());
            let objects = [Object::EndpointSliceExport(export.clone()), import.clone().object()];
            let objects = objects.into_iter().chain(namespace).chain(claimed.then_some(of_importer));
            let view = hub_view(objects.chain([Object::EndpointSliceImport(importer_has.clone())]));
            let writes = writes(&view, &key);
            let is_update = |write: &&Write| matches!(&write.action, Action::Patch { patch: Patch::EndpointSliceImport(spec), .. } if spec.content == export.spec.content);
            assert_eq!(writes.iter().filter(is_update).count(), updates, "{claimed} {right:?} {writes:?}");
        }
    }
}

#[test]
fn an_importer_without_a_record_keeps_endpoints_that_move_to_a_slice_that_it_has_not() {
    let first = slice_export("member-1", &slice("work/app-1")).marked();
    let importer_has = distributed_slice("member-2", &first).marked();
    let moved: Vec<String> = first.spec.content.endpoints.iter().map(|it| it.addresses[0].to_string()).collect();
    let second = slice_export("member-1", &slice("work/app-2")).marked();
    let second = second.with_addresses(&moved.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    let emptied = first.with_addresses(&[], 2);
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let of_importer = claim("member-2", &import).east_west().marked().with_status(import.status.clone());
    let exports = [emptied.clone(), second].map(Object::EndpointSliceExport);
    let others = [import.deleting().object(), of_importer.object(), Object::EndpointSliceImport(importer_has)];
    let view = hub_view(exports.into_iter().chain(others));
    assert_eq!(writes(&view, &slice_key(&emptied)), [], "it gets the other slice when it is recorded again");
}

/// Also rule H18.
#[test]
fn a_created_namespace_requeues_what_waits_for_it() {
    let export = slice_export("member-1", &slice("work/app-1"));
    let mut view = hub_view([export_of("member-1", &http()).port_set_since(seconds(2)).object()]);
    assert_eq!(observe_change(&mut view, namespace("work").object()), [app()]);

    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let mut view = claimed_hub_view([Object::EndpointSliceExport(export.clone().marked()), import.object()]);
    assert_eq!(observe_change(&mut view, namespace("work").object()), [], "the ServiceImport exists");
    assert_eq!(observe_change(&mut view, namespace("fleet-member-member-2").object()), [slice_key(&export)]);
    assert_eq!(observe_change(&mut view, namespace("other").object()), []);
}
