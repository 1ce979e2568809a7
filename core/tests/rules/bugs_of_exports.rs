//! Tests that fleetnet does not have the known bugs of the Go agents in weights, conflicts and outcomes of conflict
//! resolution. docs/contributors/behaviour.md lists the bugs by number.

use crate::fleet::{
    count, edit_service, export, export_condition, export_of, hold, import_in_hub, imported, set_endpoints,
    status_and_reason, weigh,
};
use crate::oracle::assert_settled;
use crate::support::agent::Agent;
use crate::support::build::{
    Build, BuildExport, BuildImport, BuildInternalExport, BuildService, BuildSlice, IntoObject, condition, in_hub_of,
    internal_export, named, no_conflict, port, request, resolved, seconds, service, service_export, service_import,
    slice,
};
use crate::support::view::{hub_view, member_view, planned, writes};
use crate::support::world::{Entry, Who, World, fleet, settings};
use fleetnet_core::model::{ConsumerType, ImportStatus, Kind, Object, ServicePort, TargetPort};
use fleetnet_core::plan::{Action, Patch, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::ObjectName;

const EXPORTED: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// Rule S4: The weight of a ServiceExport is 0
/// Then: The condition `Valid` of the ServiceExport stays `True`. The member agent withdraws the export and its slices,
/// so that the Service gets no traffic (bug B8)
#[test]
fn b8_weight_zero_withdraws_the_slices_too() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    weigh(&mut world, 0, Some("0"));
    world.run();
    assert_eq!(imported(&world, 1), [""; 0], "no traffic");
    for kind in [Kind::InternalServiceExport, Kind::EndpointSliceExport, Kind::EndpointSliceImport] {
        assert_eq!(count(&world, Who::Hub, kind), 0, "{kind:?}");
    }
    let valid = export_of(&world, 0, "work/app").and_then(|export| status_and_reason(&export.conditions, "Valid"));
    assert_eq!(valid, Some(("True".to_owned(), "ServiceIsValid".to_owned())), "it is as its user wants it");
    assert_settled(&world);
}

/// Rule S5: The weight of a ServiceExport is invalid
/// Then: The member agent sets `Valid=False` (reason `ServiceExportInvalidWeightAnnotation`) on the ServiceExport. An
/// existing export stays in the hub, and the member agent still updates this export when the Service changes. If the
/// Service has no export, the member agent starts none (bug B8). If a restored hub has an export again that was
/// withdrawn, it is an existing one. If it is of an earlier Service with this name, the agent withdraws it
#[test]
fn b8_an_invalid_weight_interrupts_nothing() {
    for weight in ["many", "-1", "1001", "1.5", ""] {
        let mut world = fleet(1, ConsumerType::LoadBalancer);
        let mark = world.ledger.len();
        weigh(&mut world, 0, Some(weight));
        world.run();
        assert_eq!(world.lines_since(mark), ["member-1 patches conditions of ServiceExport"], "{weight:?}");
        assert_eq!(export_condition(&world, 0, "Valid"), "ServiceExportInvalidWeightAnnotation", "{weight:?}");
        assert_eq!(imported(&world, 1), EXPORTED, "{weight:?}");
        // While the weight is invalid, the agent still updates the existing export, even after a restart.
        world.restart(Who::Member(0));
        set_endpoints(&mut world, "work/app-1", &["10.0.0.7"]);
        edit_service(&mut world, 0, &named("work/app"), |service| service.ports = vec![port("http", 81)]);
        world.run();
        assert_eq!(imported(&world, 1), ["10.0.0.7"], "{weight:?}");
        let shown = import_in_hub(&world, "work/app").map(|import| import.status.ports.clone());
        assert_eq!(shown, Some(vec![port("http", 81)]), "{weight:?}");
        weigh(&mut world, 0, Some("3"));
        world.run();
        assert_eq!(export_condition(&world, 0, "Valid"), "ServiceIsValid", "{weight:?}");
        assert_settled(&world);
    }
}

/// Returns the writes, after the first `mark` writes, that create EndpointSliceExports or change their content.
fn slices_exported(world: &World, mark: usize) -> Vec<String> {
    let written = world.ledger[mark..].iter().filter(|entry| entry.write.kind() == Kind::EndpointSliceExport);
    written.map(Entry::line).filter(|line| !line.contains("deletes") && !line.contains("finalizers")).collect()
}

/// Also rule S10.
#[test]
fn b9_a_service_recreated_with_other_ports_exports_no_slices_before_its_outcome() {
    for seed in 0..60 {
        let mut world = fleet(2, ConsumerType::LoadBalancer);
        export(&mut world, 2, "work/app", 80, &["10.0.2.1"]);
        world.run();
        let mut world = world.in_any_order(seed);
        let mark = world.ledger.len();
        world.delete(Who::Member(0), Kind::Service, &named("work/app"));
        world.delete(Who::Member(0), Kind::EndpointSlice, &named("work/app-1"));
        for _ in 0..seed / 2 {
            world.step();
        }
        world.create(Who::Member(0), service("work/app").ports(&[port("http", 81)]).object());
        world.create(Who::Member(0), slice("work/app-9").endpoints(&["10.0.0.9"]).object());
        world.run();
        assert_eq!(export_condition(&world, 0, "Conflict"), "ConflictFound", "seed {seed}");
        assert_eq!(slices_exported(&world, mark), [""; 0], "seed {seed}: the old outcome was for the old ports");
        assert_eq!(imported(&world, 1), ["10.0.2.1"], "seed {seed}");
        assert_settled(&world);
    }
}

/// Also rule S10.
#[test]
fn b9_a_service_that_is_eligible_again_with_other_ports_exports_no_slices_before_its_outcome() {
    let mut world = fleet(2, ConsumerType::LoadBalancer);
    export(&mut world, 2, "work/app", 80, &["10.0.2.1"]);
    world.run();
    edit_service(&mut world, 0, &named("work/app"), |service| service.headless = true);
    world.run();
    let mark = world.ledger.len();
    edit_service(&mut world, 0, &named("work/app"), |service| {
        service.headless = false;
        service.ports = vec![port("http", 81)];
    });
    world.run();
    assert_eq!(export_condition(&world, 0, "Conflict"), "ConflictFound");
    assert_eq!(slices_exported(&world, mark), [""; 0]);
    assert_settled(&world);
}

/// Rule D5: A claim (InternalServiceImport) is granted, or the last exporting member of a Service stops exporting
/// Then: The hub agent creates or withdraws distributed slices (EndpointSliceImports) when its watch delivers the
/// change. No agent polls (bug B13)
#[test]
fn b13_slices_are_distributed_and_withdrawn_when_their_import_changes_without_polling() {
    let mut world = World::new(2);
    world.tick_micros = 0; // no time passes, so no timer fires
    export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
    world.run();
    assert_eq!(count(&world, Who::Hub, Kind::EndpointSliceImport), 0);
    world.create(Who::Member(1), request("work/app").object());
    world.run();
    assert_eq!(imported(&world, 1), ["10.0.0.1"]);
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run();
    assert_eq!(imported(&world, 1), [""; 0], "the last exporter left");
    assert_eq!(count(&world, Who::Hub, Kind::ServiceImport), 0);
    assert_eq!(count(&world, Who::Hub, Kind::EndpointSliceImport), 0);
    assert_eq!(world.hub_agent.again.len(), 0, "the hub looks at nothing again by itself");
}

/// Rule D7: The hub agent cannot write to the member namespace of one importing member
/// Then: The hub agent writes the distributed slices (EndpointSliceImports) of the other importing members without
/// delay (bug B14)
#[test]
fn b14_an_importer_that_cannot_be_written_to_delays_no_other() {
    for (broken, others) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
        let mut world = fleet(3, ConsumerType::ClusterIp);
        world.hub.missing_namespaces.insert(format!("fleet-member-member-{}", broken + 1));
        world.create(Who::Member(0), slice("work/app-2").endpoints(&["10.0.0.3"]).object());
        world.run();
        assert_eq!(imported(&world, broken), EXPORTED);
        for other in others {
            assert_eq!(imported(&world, other), ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "beside {broken}");
        }
        set_endpoints(&mut world, "work/app-2", &["10.0.0.4"]);
        world.run();
        for other in others {
            assert_eq!(imported(&world, other), ["10.0.0.1", "10.0.0.2", "10.0.0.4"], "changes too, beside {broken}");
        }
    }
}

/// Also rule H12.
#[test]
fn b15_an_export_that_goes_does_not_wait_for_the_import_to_be_resolved() {
    let dying = internal_export("member-1", &service("work/app")).port_set_since(seconds(2)).deleting();
    let release = [Write::remove_finalizer(Kind::InternalServiceExport, &dying.meta)];
    let of_another = internal_export("member-2", &service("work/app"));
    let view = hub_view([dying.object(), of_another.object(), service_import("work/app").object()]);
    let planned = writes(&view, &hub::Key::Service(named("work/app")));
    let about = in_hub_of("member-1", "work-app");
    let of_it: Vec<&Write> = planned.iter().filter(|write| write.at == about).collect();
    assert_eq!(of_it, release.iter().collect::<Vec<_>>());
}

/// Also rule S11.
#[test]
fn b16_a_recreated_service_waits_without_writes_for_the_removal_of_its_old_export() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let in_hub = in_hub_of("member-1", "work-app");
    hold(&mut world, Who::Hub, Kind::InternalServiceExport, &in_hub, true);
    world.run();
    let mark = world.ledger.len();
    world.delete(Who::Member(0), Kind::Service, &named("work/app"));
    world.create(Who::Member(0), service("work/app").object());
    world.run_for(3_600_000_000);
    let of_member: Vec<String> = world
        .lines_since(mark)
        .into_iter()
        .filter(|line| line.contains("member-1") && !line.contains("Slice"))
        .collect();
    assert_eq!(
        of_member,
        ["member-1 patches conditions of ServiceExport", "member-1 deletes InternalServiceExport"],
        "one outcome that is open again and one withdrawal in an hour"
    );
    hold(&mut world, Who::Hub, Kind::InternalServiceExport, &in_hub, false);
    world.run();
    assert_eq!(imported(&world, 1), EXPORTED);
    assert_settled(&world);
}

fn app() -> hub::Key {
    hub::Key::Service(named("work/app"))
}

/// Also rule H3.
#[test]
fn b18_the_winner_is_the_same_in_any_order_of_arrival() {
    for seed in 0..60 {
        let mut world = World::new(3).in_any_order(seed);
        world.tick_micros = 0;
        for (member, number) in [(2, 81), (1, 80), (0, 81)] {
            export(&mut world, member, "work/app", number, &[]);
        }
        world.run();
        let status_and_reason: Vec<String> =
            (0..3).map(|member| export_condition(&world, member, "Conflict")).collect();
        assert_eq!(status_and_reason, ["NoConflictFound", "ConflictFound", "NoConflictFound"], "seed {seed}");
        assert_settled(&world);
    }
}

/// Rule H4: The hub agent compares the ports of two exports
/// Then: The hub agent compares sets of name, protocol, port and appProtocol. Order and target ports do not matter (bug
/// B18)
#[test]
fn b18_neither_the_order_of_ports_nor_their_targets_are_a_conflict() {
    let (http, admin) = (port("http", 80), port("admin", 81));
    let elsewhere = ServicePort { target_port: Some(TargetPort::Name("web".into())), ..http.clone() };
    let nowhere = ServicePort { target_port: None, ..http.clone() };
    let first = internal_export("member-1", &service("work/app").ports(&[http, admin.clone()]));
    for (case, ports) in [
        ("another order", [admin.clone(), port("http", 80)]),
        ("another target", [elsewhere, admin.clone()]),
        ("no target", [nowhere, admin]),
    ] {
        let second = internal_export("member-2", &service("work/app").ports(&ports)).port_set_since(seconds(3));
        let import = service_import("work/app");
        let view =
            hub_view([first.clone().port_set_since(seconds(2)).object(), second.object(), import.clone().object()]);
        let status = ImportStatus { ports: first.ports.clone(), ..resolved(&["member-1", "member-2"]) };
        let shows = Write::patch(&import.meta, Patch::ServiceImportStatus(status));
        assert_eq!(writes(&view, &app()), [shows], "{case}");
    }
}

/// Also rule H8.
#[test]
fn b18_the_event_of_a_conflict_names_what_differs_and_who_wins() {
    let hinted = ServicePort { app_protocol: Some("h2c".into()), ..port("", 80) };
    let udp = ServicePort { protocol: "UDP".into(), ..port("dns", 53) };
    let table: [(&str, Vec<ServicePort>, &str); 4] = [
        (
            "another number",
            vec![port("http", 81)],
            "only member-2 exports http 81/TCP; only member-1 exports http 80/TCP",
        ),
        ("one more", vec![port("http", 80), udp], "only member-2 exports dns 53/UDP; only member-1 exports nothing"),
        ("none", vec![], "only member-2 exports nothing; only member-1 exports http 80/TCP"),
        (
            "a hint",
            vec![hinted],
            "only member-2 exports (unnamed) 80/TCP appProtocol h2c; only member-1 exports http 80/TCP",
        ),
    ];
    for (case, ports, differs) in table {
        let winner = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
        let loser = internal_export("member-2", &service("work/app").ports(&ports)).port_set_since(seconds(3));
        let import = service_import("work/app").showing(resolved(&["member-1"]));
        let view = hub_view([winner.object(), loser.clone().object(), import.object()]);
        let plan = planned(&view, &app());
        let reported: Vec<_> = plan.writes.iter().flat_map(|write| &write.events).collect();
        let [event] = reported[..] else { panic!("{case}: one event, not {reported:#?}") };
        assert_eq!((&event.name, event.reason.is_warning()), (&loser.meta.name, true), "{case}");
        assert!(event.message.contains(differs), "{case}: {}", event.message);
        assert!(event.message.contains("the export of cluster member-1"), "{case}: {}", event.message);
    }
}

/// Rule S19: A Service is exported
/// Then: The agents never write to the source Service or to the source slices (bug B22)
#[test]
fn b22_nobody_writes_to_the_objects_that_he_exports() {
    let mut world = fleet(2, ConsumerType::ClusterIp);
    set_endpoints(&mut world, "work/app-1", &["10.0.0.7"]);
    edit_service(&mut world, 0, &named("work/app"), |service| service.ports = vec![port("http", 81)]);
    world.run();
    let exported = world.hub.list(Kind::EndpointSliceExport).next().cloned();
    let Some(Object::EndpointSliceExport(exported)) = exported else { panic!("one export") };
    let source = world.cluster(Who::Member(0)).get(Kind::EndpointSlice, &named("work/app-1")).expect("its source");
    let carried = (&*exported.spec.reference.resource_version, exported.spec.reference.generation);
    assert_eq!(carried, (&*source.meta().resource_version.to_string(), source.meta().generation), "nothing is stale");
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run_for(3_600_000_000);
    let users: Vec<(Kind, &ObjectName)> = world
        .ledger
        .iter()
        .filter(|entry| matches!(entry.write.kind(), Kind::EndpointSlice | Kind::Service))
        .map(|entry| (entry.write.kind(), &entry.write.at))
        .filter(|(_, at)| &*at.namespace != "fleet-system")
        .collect();
    assert_eq!(users, []);
    assert_settled(&world);
}

/// Also rules S10, S24.
#[test]
fn b9_a_service_that_comes_back_while_its_export_is_being_withdrawn_is_resolved_again() {
    let weight_of_zero = condition("Valid", "True", "ServiceIsValid", "exported service work/app with 0 weight", 1);
    let because_of_it = condition("Withdrawn", "True", "WeightIsZero", "its weight is 0", 1);
    let missing = condition("Valid", "False", "ServiceNotFound", "service work/app is not found", 1);
    let unfit = condition("Valid", "False", "ServiceIneligible", "service work/app is not eligible for export", 1);
    for withdrawn in [vec![weight_of_zero, because_of_it], vec![missing], vec![unfit]] {
        let case = withdrawn[0].message.clone();
        // The InternalServiceExport is gone from the hub. The ServiceExport still has our finalizer, and the outcome of
        // conflict resolution for the removed InternalServiceExport.
        let expected: Vec<_> = withdrawn.into_iter().chain([no_conflict("work/app")]).collect();
        let export = service_export("work/app").marked().with_conditions(&expected);
        let view = member_view([service("work/app").object(), export.object(), slice("work/app-1").object()]);
        assert_eq!(writes(&view, &member::Key::SliceExport(named("work/app-1"))), [], "{case}");
        let planned = writes(&view, &member::Key::Export(named("work/app")));
        let [Write { action: Action::Patch { patch: Patch::ServiceExportConditions(list), .. }, .. }, export_write] =
            &planned[..]
        else {
            panic!("{case}: {planned:#?}");
        };
        let reported: Vec<_> =
            ["Valid", "Conflict"].map(|condition| status_and_reason(list, condition)).into_iter().flatten().collect();
        let expected = [("True", "ServiceIsValid"), ("Unknown", "ServicePendingConflictResolution")];
        assert_eq!(reported, expected.map(|(status, reason)| (status.to_owned(), reason.to_owned())), "{case}");
        assert_eq!(export_write.kind(), Kind::InternalServiceExport, "{case}");
    }
}

/// Returns a fleet in which member-1 and member-2 export the same ports. Then the Service of member-2 is deleted and
/// created again with other ports: at once if `at_once` is true, otherwise after the crash. The agent of member-2
/// crashes after `writes` writes, and restarts at the end.
fn crashed_while_its_service_was_recreated(writes: usize, at_once: bool, seed: u64) -> World {
    let recreated = || service("work/app").ports(&[port("http", 99)]).object();
    let mut world = World::new(2).in_any_order(seed);
    export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
    export(&mut world, 1, "work/app", 80, &["10.1.0.1"]);
    world.run();
    world.delete(Who::Member(1), Kind::Service, &named("work/app"));
    if at_once {
        world.create(Who::Member(1), recreated());
    }
    let mark = world.ledger.len();
    let written = |world: &World| world.ledger[mark..].iter().filter(|entry| entry.who == Who::Member(1)).count();
    while written(&world) < writes && world.step() {}
    world.members[1].agent = Agent::new(member::Planner::new(settings(1))); // the agent crashes before it has listed anything
    world.run();
    if !at_once {
        world.create(Who::Member(1), recreated());
    }
    world.restart(Who::Member(1));
    world
}

/// Rule E16: The member agent starts, and has not listed the InternalServiceExports yet
/// Then: The agent neither exports nor withdraws slices: the outcome in the ServiceExport may be of a Service that was
/// deleted and created again while the agent was down (B9)
///
/// Also rule S10.
#[test]
fn b9_no_outcome_outlives_its_export_wherever_the_agent_crashes() {
    let cases = (0..6).flat_map(|writes| [(writes, true), (writes, false)]);
    for ((writes, at_once), seed) in cases.flat_map(|case| (0..12).map(move |seed| (case, seed))) {
        let mut world = crashed_while_its_service_was_recreated(writes, at_once, seed);
        let mark = world.ledger.len();
        world.run();
        let exported =
            world.lines_since(mark).into_iter().filter(|line| line == "member-2 creates EndpointSliceExport");
        assert_eq!(exported.count(), 0, "after {writes} writes, at once: {at_once}, seed {seed}");
        assert_eq!(export_condition(&world, 1, "Conflict"), "ConflictFound");
    }
}
