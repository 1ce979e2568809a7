//! Tests of MultiClusterServices in whole fleets: users create, change and delete MultiClusterServices, and several
//! MultiClusterServices compete for one Service.

use crate::fleet::{
    bound, count, derived, edit_request, edit_service, export, import_in_hub, imported, names, reappear, request_of,
    request_reason, vanish,
};
use crate::oracle::{assert_settled, state};
use crate::support::build::{BuildRequest, IntoObject, address, in_system, named, port, request, service_export};
use crate::support::world::{GRACE_MICROS, Who, World, fleet};
use fleetnet_core::model::{ConsumerType, Kind, Object, ServiceType};
use fleetnet_types::ClusterId;

const EXPORTED: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
const NONE: [&str; 0] = [];

/// Returns the cluster ids of the members with a granted claim of `work/app`.
fn claimers(world: &World) -> Vec<ClusterId> {
    import_in_hub(world, "work/app").into_iter().flat_map(|import| import.claims.importers.values().cloned()).collect()
}

fn give_address(world: &mut World, member: usize, name: &str) {
    edit_service(world, member, &in_system(name), |service| service.load_balancer = address("192.0.2.1"));
    world.run();
}

/// Also rule C3.
#[test]
fn when_the_claimer_leaves_the_one_that_waits_takes_over_with_all_slices() {
    type Leave = fn(&mut World);
    let ways: [(&str, Leave); 3] = [
        ("deletes its MultiClusterService", |world| {
            world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
        }),
        ("wants another import", |world| edit_request(world, 1, "work/app", |it| it.import_name = "web".into())),
        ("wants none any more", |world| edit_request(world, 1, "work/app", |request| request.import_name = "".into())),
    ];
    for (way, leave) in ways {
        for seed in 0..20 {
            let mut world = fleet(3, ConsumerType::LoadBalancer).in_any_order(seed);
            assert_eq!(claimers(&world), ["member-2".into()]);
            assert_eq!(imported(&world, 2), NONE);
            assert_eq!(request_reason(&world, 2, "work/app"), "UnknownServiceImport");
            leave(&mut world);
            world.run_for(2 * GRACE_MICROS);
            assert_eq!(claimers(&world), ["member-3".into()], "{way}, seed {seed}: who waited first");
            assert_eq!(imported(&world, 1), NONE, "{way}, seed {seed}");
            assert_eq!(imported(&world, 2), EXPORTED, "{way}, seed {seed}");
            assert_eq!(request_reason(&world, 2, "work/app"), "FoundServiceImport", "{way}, seed {seed}");
            assert_settled(&world);
        }
    }
}

/// Rule C4: A granted exclusive claim (InternalServiceImport) changes to ClusterIP, and later back to LoadBalancer
/// Then: At the first change, the member keeps its slices, and another member may get the exclusive claim. After the
/// second change, the claim is pending as long as another member has the exclusive claim. While the claim is pending,
/// the member imports as before (rule I6)
#[test]
fn a_claimer_that_turns_to_share_keeps_its_slices_and_frees_the_claim() {
    let mut world = fleet(2, ConsumerType::LoadBalancer);
    edit_request(&mut world, 1, "work/app", |request| request.consumer_type = ConsumerType::ClusterIp);
    world.run();
    assert_eq!(claimers(&world), ["member-2".into(), "member-3".into()]);
    assert_eq!(
        (imported(&world, 1), imported(&world, 2)),
        (EXPORTED.map(Into::into).to_vec(), EXPORTED.map(Into::into).to_vec())
    );
    assert_eq!(derived(&world, 1, "work-app").map(|service| service.service_type), Some(ServiceType::ClusterIp));
    // The user changes the type back to LoadBalancer while another cluster has the exclusive claim. The import stays as
    // it is.
    edit_request(&mut world, 1, "work/app", |request| request.consumer_type = ConsumerType::LoadBalancer);
    world.run_for(2 * GRACE_MICROS);
    assert_eq!(claimers(&world), ["member-2".into(), "member-3".into()]);
    assert_eq!(imported(&world, 1), EXPORTED);
    assert_eq!(derived(&world, 1, "work-app").map(|service| service.service_type), Some(ServiceType::ClusterIp));
    assert_eq!(request_reason(&world, 1, "work/app"), "LoadBalancerNotGranted");
    assert_settled(&world);
}

/// Also rule M7.
#[test]
fn a_multi_cluster_service_that_changes_its_target_changes_slices_and_ports_of_its_derived_service() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    export(&mut world, 0, "work/web", 81, &["10.0.0.9"]);
    give_address(&mut world, 1, "work-app");
    let uid = |world: &World| derived(world, 1, "work-app").map(|service| service.meta.uid.clone());
    let before = uid(&world);
    edit_request(&mut world, 1, "work/app", |request| request.import_name = "web".into());
    world.run();
    assert_eq!(bound(&world, 1, "work-app"), ["10.0.0.9"]);
    assert_eq!(imported(&world, 1), ["10.0.0.9"]);
    assert_eq!(names(&world, Who::Member(1), Kind::ServiceImport), ["web"]);
    assert_eq!(names(&world, Who::Hub, Kind::InternalServiceImport), ["work-web"]);
    let service = derived(&world, 1, "work-app").expect("it stands");
    assert_eq!(service.ports, [port("http", 81)]);
    assert_eq!(service.load_balancer, address("192.0.2.1"), "its address is its users'");
    assert_eq!(uid(&world), before);
    assert_settled(&world);
}

/// Rule M8: The target of a MultiClusterService changes, and no member exports the new target
/// Then: The member agent deletes the derived Service after 30 s (`--derived-service-grace`, rule M10)
#[test]
fn a_multi_cluster_service_whose_new_target_nobody_exports_loses_its_derived_service_after_the_grace() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    edit_request(&mut world, 1, "work/app", |request| request.import_name = "web".into());
    world.run();
    assert_eq!(request_reason(&world, 1, "work/app"), "UnknownServiceImport");
    assert_eq!(imported(&world, 1), NONE);
    assert!(derived(&world, 1, "work-app").is_some());
    world.run_for(GRACE_MICROS);
    assert!(derived(&world, 1, "work-app").is_none());
    assert_eq!(request_of(&world, 1, "work/app").and_then(|request| request.derived_label.clone()), None);
    assert_settled(&world);
}

/// Rule M9: Two MultiClusterServices in one namespace have the same target
/// Then: The first MultiClusterService imports the target. The second MultiClusterService has `Valid=Unknown` until the
/// first MultiClusterService is deleted or changes its target. The member agent never changes the ServiceImport of the
/// first MultiClusterService for the second (bug B10)
#[test]
fn of_two_multi_cluster_services_for_one_import_the_second_waits_and_takes_over_when_the_first_goes() {
    type Leave = fn(&mut World);
    let ways: [(&str, Leave); 2] = [
        ("is deleted", |world| world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"))),
        ("wants another", |world| edit_request(world, 1, "work/app", |request| request.import_name = "web".into())),
    ];
    for (way, leave) in ways {
        for seed in 0..20 {
            let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
            world.create(Who::Member(1), request("work/late").importing("app").object());
            world.run();
            assert_eq!(request_reason(&world, 1, "work/late"), "UnknownServiceImport");
            assert!(derived(&world, 1, "work-late").is_none(), "only one of them derives a Service");
            assert_eq!(bound(&world, 1, "work-app"), EXPORTED);
            leave(&mut world);
            world.run_for(2 * GRACE_MICROS);
            assert_eq!(request_reason(&world, 1, "work/late"), "FoundServiceImport", "{way}, seed {seed}");
            assert_eq!(bound(&world, 1, "work-late"), EXPORTED, "{way}, seed {seed}");
            assert_eq!(imported(&world, 1), EXPORTED, "{way}, seed {seed}: nothing is imported twice");
            assert_settled(&world);
        }
    }
}

/// Rule M14: A MultiClusterService is replaced by one with another name
/// Then: The member agent binds the imported slices to the new derived Service as soon as the new derived Service
/// exists (bug B11)
#[test]
fn a_multi_cluster_service_replaced_under_another_name_takes_the_slices_with_it() {
    for seed in 0..40 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
        world.create(Who::Member(1), request("work/renamed").importing("app").object());
        world.run();
        assert_eq!(bound(&world, 1, "work-renamed"), EXPORTED, "seed {seed}");
        assert_eq!(imported(&world, 1), EXPORTED, "seed {seed}");
        assert!(derived(&world, 1, "work-app").is_none(), "seed {seed}");
        assert_settled(&world);
    }
}

/// Also rule M13.
#[test]
fn a_multi_cluster_service_deleted_and_made_again_at_once_imports_again() {
    for seed in 0..40 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
        while !world.create(Who::Member(1), request("work/app").object()) {
            assert!(world.step(), "seed {seed}: its name is free at some time");
        }
        world.run();
        assert_eq!(bound(&world, 1, "work-app"), EXPORTED, "seed {seed}");
        assert_settled(&world);
    }
}

/// Also rule M10.
#[test]
fn a_derived_service_is_kept_for_its_grace_after_its_last_exporter_left() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    give_address(&mut world, 1, "work-app");
    let uid = derived(&world, 1, "work-app").map(|service| service.meta.uid.clone());
    world.tick_micros = 0;
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run_for(59_999_999);
    assert_eq!(imported(&world, 1), NONE);
    assert_eq!(derived(&world, 1, "work-app").map(|service| service.meta.uid.clone()), uid);
    let shown = request_of(&world, 1, "work/app").map(|request| request.load_balancer.clone());
    assert_eq!(shown, Some(address("192.0.2.1")), "its address is shown as long as it stands");
    assert_eq!(request_reason(&world, 1, "work/app"), "UnknownServiceImport");
    // If the exporter exports again within the grace period, the same derived Service still exists.
    let mut back = world.clone();
    back.create(Who::Member(0), service_export("work/app").object());
    back.run_for(2 * GRACE_MICROS);
    assert_eq!(derived(&back, 1, "work-app").map(|service| service.meta.uid.clone()), uid);
    assert_eq!(bound(&back, 1, "work-app"), EXPORTED);
    // After the grace period, the derived Service is deleted.
    world.run_for(1);
    assert!(derived(&world, 1, "work-app").is_none());
    let shown = request_of(&world, 1, "work/app").map(|request| request.load_balancer.clone());
    assert_eq!(shown, Some(Default::default()));
    assert_settled(&world);
}

/// Also rule M11.
#[test]
fn the_grace_of_a_derived_service_begins_again_with_a_restart_and_ends_nevertheless() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    world.tick_micros = 0;
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run_for(GRACE_MICROS - 1);
    world.restart(Who::Member(1));
    world.run_for(GRACE_MICROS - 1);
    assert!(derived(&world, 1, "work-app").is_some(), "what was before it is not known");
    world.run_for(1);
    assert!(derived(&world, 1, "work-app").is_none());
}

/// Rule M16: A user deletes the derived Service
/// Then: The member agent creates the derived Service again, and binds the imported slices to the new derived Service
#[test]
fn a_derived_service_deleted_by_a_user_is_recreated_and_its_slices_are_bound_to_it() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    give_address(&mut world, 1, "work-app");
    let before = derived(&world, 1, "work-app").map(|service| service.meta.uid.clone());
    world.delete(Who::Member(1), Kind::Service, &in_system("work-app"));
    world.run();
    let after = derived(&world, 1, "work-app").map(|service| service.meta.uid.clone());
    assert!(after.is_some() && after != before);
    assert_eq!(bound(&world, 1, "work-app"), EXPORTED);
    let shown = request_of(&world, 1, "work/app").map(|request| request.load_balancer.clone());
    assert_eq!(shown, Some(Default::default()), "the old address is not shown any more");
    assert_settled(&world);
}

/// Rule M15: A user edits the derived Service
/// Then: The member agent restores the derived Service in one write. The derived Service keeps its address
#[test]
fn a_derived_service_edited_by_hand_is_mended_and_keeps_its_address() {
    type Edit = fn(&mut fleetnet_core::model::Service);
    let edits: [(&str, Edit); 4] = [
        ("ports", |service| service.ports = vec![port("other", 99)]),
        ("type", |service| service.service_type = ServiceType::NodePort),
        ("labels", |service| service.derived_from = None),
        ("an internal load balancer", |service| service.internal_load_balancer = true),
    ];
    let mut settled = fleet(1, ConsumerType::LoadBalancer);
    give_address(&mut settled, 1, "work-app");
    let expected = state(&settled);
    for (case, edit) in edits {
        let mut world = settled.clone();
        edit_service(&mut world, 1, &in_system("work-app"), edit);
        let mark = world.ledger.len();
        world.run();
        assert_eq!(state(&world), expected, "{case}");
        assert_eq!(world.lines_since(mark), ["member-2 patches content of Service"], "{case}");
    }
}

/// Rule M18: A user edits the labels of a MultiClusterService
/// Then: The member agent restores the labels. The derived Service stays, even during the 30 s of
/// `--derived-service-grace` (rule M10). If an edited label contains the name of a Service that is not the derived
/// Service, the agent binds no slice to that Service
#[test]
fn labels_of_a_multi_cluster_service_edited_by_hand_are_mended_and_its_derived_service_stays() {
    for (case, import_label, derived_label) in [
        ("taken away", None, None),
        ("other ones", Some("other"), Some("other")),
        ("nonsense", Some(""), Some("No-Label")),
    ] {
        let mut world = fleet(1, ConsumerType::LoadBalancer);
        let (expected, uid) = (state(&world), derived(&world, 1, "work-app").map(|service| service.meta.uid.clone()));
        edit_request(&mut world, 1, "work/app", |request| {
            request.import_label = import_label.map(Into::into);
            request.derived_label = derived_label.map(Into::into);
        });
        world.run_for(2 * GRACE_MICROS);
        assert_eq!(state(&world), expected, "{case}");
        assert_eq!(derived(&world, 1, "work-app").map(|service| service.meta.uid.clone()), uid, "{case}");
    }
}

/// Also rule M18.
#[test]
fn a_label_edited_while_nobody_exports_costs_the_derived_service_no_second_of_its_grace() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let uid = derived(&world, 1, "work-app").map(|service| service.meta.uid.clone());
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run();
    edit_request(&mut world, 1, "work/app", |request| request.derived_label = None);
    world.run_for(GRACE_MICROS / 2);
    assert_eq!(derived(&world, 1, "work-app").map(|service| service.meta.uid.clone()), uid);
    world.create(Who::Member(0), service_export("work/app").object());
    world.run();
    assert_eq!(bound(&world, 1, "work-app"), EXPORTED);
    assert_eq!(derived(&world, 1, "work-app").map(|service| service.meta.uid.clone()), uid, "and its address");

    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run();
    edit_request(&mut world, 1, "work/app", |request| request.derived_label = None);
    world.run_for(2 * GRACE_MICROS);
    assert!(derived(&world, 1, "work-app").is_none(), "it ends all the same");
}

/// Rule D11: A claim (InternalServiceImport) is deleted while the ServiceImport is missing, because the Service's
/// namespace disappeared from the hub
/// Then: The hub agent deletes the distributed slices (EndpointSliceImports) of the deleted claim. The distributed
/// slices of other claims stay. Distributed slices also stay if somebody edited their EndpointSliceExport so that it
/// belongs to another Service
#[test]
fn a_multi_cluster_service_deleted_while_the_service_s_namespace_is_missing_in_the_hub_leaves_nothing() {
    for seed in 0..20 {
        let mut world = fleet(2, ConsumerType::ClusterIp).in_any_order(seed);
        vanish(&mut world, Who::Hub, "work");
        world.run();
        assert_eq!(imported(&world, 1), EXPORTED, "seed {seed}: who wants it keeps it");
        world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
        world.run();
        let left: Vec<Kind> = world.cluster(Who::Member(1)).all().map(Object::kind).collect();
        assert_eq!(left, [], "seed {seed}");
        assert_eq!(imported(&world, 2), EXPORTED, "seed {seed}: who wants it keeps it");
    }
}

/// Rule M19: The namespace of a MultiClusterService is deleted
/// Then: The member agent deletes all objects of the MultiClusterService. The hub agent grants the next pending claim
/// (InternalServiceImport)
#[test]
fn a_multi_cluster_service_that_vanishes_with_its_namespace_takes_all_that_was_made_for_it_with_it() {
    for seed in 0..40 {
        let mut world = fleet(2, ConsumerType::LoadBalancer).in_any_order(seed);
        vanish(&mut world, Who::Member(1), "work");
        world.run();
        let left: Vec<Kind> = world.cluster(Who::Member(1)).all().map(Object::kind).collect();
        assert_eq!(left, [], "seed {seed}");
        assert_eq!(imported(&world, 2), EXPORTED, "seed {seed}: the claim goes on to who waited");
        assert_settled(&world);
    }
}

/// Rule M20: The namespace `fleet-system` of a member is deleted
/// Then: The member agent creates all derived Services and imported slices in `fleet-system` again when the namespace
/// exists again
#[test]
fn what_vanished_with_the_system_namespace_of_an_importer_is_recreated_when_it_is_back() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let expected = state(&world);
    vanish(&mut world, Who::Member(1), "fleet-system");
    world.run();
    assert_eq!((count(&world, Who::Member(1), Kind::Service), imported(&world, 1).len()), (0, 0));
    reappear(&mut world, Who::Member(1), "fleet-system");
    world.run_for(GRACE_MICROS);
    assert_eq!(state(&world), expected);
    assert_settled(&world);
}

/// Also rule E11.
#[test]
fn exports_and_imports_of_one_cluster_do_not_meet() {
    let mut world = World::new(1);
    export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
    world.create(Who::Member(0), request("work/app").object());
    world.run();
    assert_eq!(imported(&world, 0), ["10.0.0.1"], "a cluster may import what it exports itself");
    assert_eq!(count(&world, Who::Hub, Kind::EndpointSliceExport), 1, "and what it imported is not exported again");
    world.create(Who::Member(0), service_export("fleet-system/work-app").object());
    world.run();
    assert_eq!(count(&world, Who::Hub, Kind::EndpointSliceExport), 1, "whoever asks for it");
}
