//! Tests of the number of writes: each write of an export, an import and a change, with its writer and kind.

use crate::oracle::assert_settled;
use crate::support::build::{
    BuildRequest, BuildSlice, IntoObject, address, content, derived_service, named, pending, request, service,
    service_export, slice,
};
use crate::support::world::{Who, World, fleet};
use fleetnet_core::model::{ConsumerType, Endpoint, Kind, Object};
use fleetnet_types::ObjectName;
use std::collections::BTreeMap;

/// Returns the different lines, sorted. Each line names a write, and a write that occurs more than once has its count
/// at the end of the line.
fn sorted(lines: Vec<String>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    counts.into_iter().map(|(line, count)| if count == 1 { line } else { format!("{line} x{count}") }).collect()
}

fn set_endpoints(world: &mut World, endpoints: &[&str]) {
    world.edit(Who::Member(0), Kind::EndpointSlice, &named("work/app-1"), |object| {
        let Object::EndpointSlice(slice) = object else { return };
        slice.content = content(endpoints);
    });
}

/// Rule W1: A Service is exported for the first time
/// Then: The export costs 3 writes in the member and 5 writes in the hub, and 1 more write in the hub for each slice
#[test]
fn the_first_export_costs_three_writes_in_the_member_five_in_the_hub_and_one_for_each_slice() {
    let mut world = World::new(1);
    world.run();
    world.create(Who::Member(0), service("work/app").object());
    world.create(Who::Member(0), slice("work/app-1").object());
    world.run();
    assert_eq!(world.ledger, [], "what nobody exports costs nothing");
    world.create(Who::Member(0), service_export("work/app").object());
    world.run();
    assert_eq!(
        world.lines_since(0),
        [
            "member-1 patches conditions of ServiceExport", // valid, and pending
            "member-1 patches finalizers of ServiceExport",
            "member-1 creates InternalServiceExport",
            "hub patches stamp of InternalServiceExport", // with the finalizer
            "hub creates ServiceImport",
            "hub patches status of ServiceImport",
            "hub patches conditions of InternalServiceExport", // no conflict
            "member-1 patches conditions of ServiceExport",    // no conflict
            "member-1 creates EndpointSliceExport",
        ]
    );
    assert_settled(&world);
}

/// Rule W2: An exported Service gets one more slice
/// Then: The export of the new slice costs 1 write
#[test]
fn each_further_slice_of_an_export_costs_one_write() {
    let mut world = fleet(0, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    world.create(Who::Member(0), slice("work/app-2").object());
    world.run();
    assert_eq!(world.lines_since(mark), ["member-1 creates EndpointSliceExport"]);
}

/// Rule W3: A Service is imported by K members
/// Then: The import costs 10 writes in each importing member. For each importing member, the import costs 4 writes in
/// the hub, and 1 more write in the hub for each exported slice. The exporting member makes no write
#[test]
fn the_first_import_costs_each_importer_the_same() {
    for importers in [1, 2, 3] {
        let exporter = fleet(0, ConsumerType::ClusterIp);
        let mut grown = World::new(1 + importers);
        grown.hub = exporter.hub;
        grown.members[0].cluster = exporter.members[0].cluster.clone();
        grown.restart_all();
        assert_eq!(grown.run(), 0);
        for importer in 1..=importers {
            let request = request("work/app").consumed_as(ConsumerType::ClusterIp);
            grown.create(Who::Member(importer), request.object());
            grown.run();
        }
        let lines = grown.lines_since(0);
        let of = |who: &str| sorted(lines.iter().filter(|line| line.starts_with(who)).cloned().collect());
        for importer in 2..=1 + importers {
            let expected = [
                "creates EndpointSlice",
                "creates InternalServiceImport",
                "creates Service",
                "creates ServiceImport",
                "patches finalizers of EndpointSliceImport",
                "patches labels of MultiClusterService x2", // finalizer added; derived Service named
                "patches status of MultiClusterService x2", // not found yet; found
                "patches status of ServiceImport",
            ];
            let who = format!("member-{importer}");
            assert_eq!(of(&who), expected.map(|line| format!("{who} {line}")));
        }
        assert_eq!(of("member-1"), [""; 0], "the exporter writes nothing");
        let each = if importers == 1 { String::new() } else { format!(" x{importers}") };
        let expected = [
            format!("creates EndpointSliceImport{each}"),
            format!("patches claims of ServiceImport{each}"),
            "patches finalizers of EndpointSliceExport".to_owned(), // once for any number of importers
            format!("patches finalizers of InternalServiceImport{each}"),
            format!("patches status of InternalServiceImport{each}"),
        ];
        assert_eq!(of("hub"), expected.map(|line| format!("hub {line}")));
        assert_settled(&grown);
    }
}

/// Rule W4: The endpoints of a slice with K importing members change
/// Then: The change costs 1 + 2K writes. The exporting member makes no write
#[test]
fn a_change_of_endpoints_costs_1_plus_2k_writes() {
    for importers in 0..=3 {
        let mut world = fleet(importers, ConsumerType::ClusterIp);
        for endpoints in [&["10.0.0.9"][..], &[], &["10.0.0.1", "10.0.0.2", "10.0.0.3"]] {
            let mark = world.ledger.len();
            set_endpoints(&mut world, endpoints);
            world.run();
            let mut expected = vec!["member-1 patches content of EndpointSliceExport".to_owned()];
            for importer in 1..=importers {
                expected.push("hub patches content of EndpointSliceImport".to_owned());
                expected.push(format!("member-{} patches content of EndpointSlice", importer + 1));
            }
            assert_eq!(sorted(world.lines_since(mark)), sorted(expected));
        }
        assert_settled(&world);
    }
}

/// Rule W5: A slice changes only in a field that importing members cannot see
/// Then: The change costs no write
#[test]
fn changes_that_importers_cannot_see_cost_nothing() {
    let mut world = fleet(2, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    let app = named("work/app");
    let slice = named("work/app-1");
    let derived = ObjectName::new("fleet-system", "work-app");
    // A pod that is not ready is added: the generation of the slice rises, but the ready endpoints are the same.
    world.edit(Who::Member(0), Kind::EndpointSlice, &slice, |object| object.meta_mut().generation += 1);
    // The server gives each edited object a new resourceVersion. Nothing else changes, as if another controller had
    // changed an annotation or another field that no view stores.
    world.edit(Who::Member(0), Kind::Service, &app, |object| object.meta_mut().resource_version = 0);
    world.edit(Who::Member(0), Kind::EndpointSlice, &slice, |object| object.meta_mut().resource_version = 0);
    world.edit(Who::Member(0), Kind::ServiceExport, &app, |object| object.meta_mut().resource_version = 0);
    world.edit(Who::Member(1), Kind::MultiClusterService, &app, |object| object.meta_mut().resource_version = 0);
    world.edit(Who::Member(1), Kind::Service, &derived, |object| object.meta_mut().resource_version = 0);
    world.edit(Who::Hub, Kind::ServiceImport, &app, |object| object.meta_mut().resource_version = 0);
    // The weight changes to another valid value, which changes no exported object, and another writer adds a condition.
    world.edit(Who::Member(0), Kind::ServiceExport, &app, |object| {
        let Object::ServiceExport(export) = object else { return };
        export.weight = Some("7".into());
        export
            .conditions
            .push(fleetnet_core::model::Condition { condition_type: "Theirs".into(), ..pending("work/app") });
    });
    // A user creates a Service and a slice that are not exported.
    world.create(Who::Member(0), service("work/web").object());
    world.create(Who::Member(0), crate::support::build::slice("work/web-1").object());
    world.run();
    assert_eq!(world.lines_since(mark), [""; 0]);
}

/// Rule W6: A change of a slice is undone before the agent exports the change, or a Service has a burst of changes
/// Then: An undone change costs no write. A burst of changes costs only the writes of its last change
#[test]
fn a_change_that_is_undone_before_it_is_exported_costs_nothing() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    set_endpoints(&mut world, &["10.0.0.9"]);
    set_endpoints(&mut world, &["10.0.0.1", "10.0.0.2"]);
    world.run();
    assert_eq!(world.lines_since(mark), [""; 0]);
}

/// Also rule W6.
#[test]
fn a_burst_of_changes_costs_no_more_than_its_last() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    for last in 3..23 {
        set_endpoints(&mut world, &[&format!("10.0.0.{last}")]);
    }
    world.run();
    assert_eq!(world.ledger.len() - mark, 3, "{:#?}", world.lines_since(mark));
}

/// Rule W7: All agents restart in a fleet without pending changes
/// Then: The restart costs no write
#[test]
fn a_restart_of_everyone_costs_nothing() {
    for consumer in [ConsumerType::LoadBalancer, ConsumerType::ClusterIp] {
        let mut world = fleet(2, consumer);
        world.restart_all();
        assert_eq!(world.run(), 0);
        world.restart_all();
        let mut world = world.in_any_order(7);
        assert_eq!(world.run(), 0);
    }
}

/// Also rule M3.
#[test]
fn an_address_of_the_load_balancer_costs_one_write() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let mark = world.ledger.len();
    let derived = derived_service("work-app", "work/app").meta.name;
    world.edit(Who::Member(1), Kind::Service, &derived, |object| {
        let Object::Service(service) = object else { return };
        service.load_balancer = address("192.0.2.1");
    });
    world.run();
    assert_eq!(world.lines_since(mark), ["member-2 patches status of MultiClusterService"]);
}

/// Rule W8: A Service is no longer exported
/// Then: For a Service with one slice and one importing member, the withdrawal of the export costs 16 writes. Each
/// write of the withdrawal undoes an earlier write
#[test]
fn an_unexport_costs_each_side_what_it_must_undo() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run_for(3_600_000_000);
    assert_eq!(
        sorted(world.lines_since(mark)),
        [
            "hub deletes EndpointSliceImport",
            "hub deletes ServiceImport",
            "hub patches claims of ServiceImport",
            "hub patches finalizers of EndpointSliceExport",
            "hub patches finalizers of InternalServiceExport",
            "hub patches finalizers of InternalServiceImport",
            "hub patches status of InternalServiceImport",
            "member-1 deletes EndpointSliceExport",
            "member-1 deletes InternalServiceExport",
            "member-1 patches finalizers of ServiceExport",
            "member-2 deletes EndpointSlice",
            "member-2 deletes Service", // after the Service's grace period
            "member-2 patches finalizers of EndpointSliceImport",
            "member-2 patches labels of MultiClusterService",
            "member-2 patches status of MultiClusterService",
            "member-2 patches status of ServiceImport",
        ]
    );
    assert_settled(&world);
}

/// Rule W9: A MultiClusterService is deleted
/// Then: For an imported Service with one slice, the end of the import costs 11 writes
#[test]
fn an_import_that_ends_costs_what_it_must_undo() {
    let mut world = fleet(1, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
    world.run();
    assert_eq!(
        sorted(world.lines_since(mark)),
        [
            "hub deletes EndpointSliceImport",
            "hub patches claims of ServiceImport",
            "hub patches finalizers of EndpointSliceExport",
            "hub patches finalizers of InternalServiceImport",
            "member-2 deletes EndpointSlice",
            "member-2 deletes InternalServiceImport",
            "member-2 deletes Service",
            "member-2 deletes ServiceImport",
            "member-2 patches finalizers of EndpointSliceImport",
            "member-2 patches finalizers of ServiceImport",
            "member-2 patches labels of MultiClusterService",
        ]
    );
    assert_settled(&world);
}

/// Also rule W4.
#[test]
fn a_large_slice_is_one_write_at_each_step() {
    let addresses: Vec<String> = (0..100).map(|last| format!("10.0.1.{last}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let mut world = fleet(1, ConsumerType::ClusterIp);
    let mark = world.ledger.len();
    world.create(Who::Member(0), slice("work/app-2").endpoints(&addresses).object());
    world.run();
    assert_eq!(world.ledger.len() - mark, 5, "{:#?}", world.lines_since(mark));
    let endpoints = |object: &Object| match object {
        Object::EndpointSlice(slice) => slice.content.endpoints.clone(),
        _ => Vec::<Endpoint>::new(),
    };
    let imported = world.members[1].cluster.list(Kind::EndpointSlice).map(endpoints).max_by_key(Vec::len);
    assert_eq!(imported, Some(content(&addresses).endpoints));
}
