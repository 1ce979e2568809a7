//! Tests of the controller's Events and metrics.

use super::builders::{Build as _, BuildPod as _, BuildService as _, BuildSlice as _, node, pod, service, slice};
use super::startup::listed;
use super::world::{Fate, NOON, SECOND, World, Write};
use crate::{Input, Operation, Timing};
use endpointslice::Config;
use endpointslice::model::ClusterIpFamily::{IPv4, IPv6};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_pod_whose_node_is_not_known_is_reported_once() {
    let mut world = World::new();
    world.set(service("web"));
    world.set_all_and_settle([pod(1).on_node("node-9"), pod(2)]);
    let expected = "Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service testing/web: \
                    skipping Pod pod1 for Service testing/web: Node node-9 Not Found";
    assert_eq!(world.take_events(), [expected]);
    world.set_and_settle(pod(3));
    assert!(world.take_events().is_empty(), "the same");
    world.set_and_settle(pod(1));
    world.set_and_settle(pod(1).on_node("node-9").not_ready());
    assert_eq!(world.take_events(), [expected], "it was all right in between");
}

#[test]
fn a_recreated_service_is_reported_again() {
    let auto = || service("web").annotated("service.kubernetes.io/topology-mode", "Auto");
    let mut world = World::new();
    world.set(pod(1).on_node("node-9"));
    world.set_and_settle(auto());
    let first = world.take_events();
    assert_eq!(first.len(), 2, "of its pod and of its hints: {first:?}");
    world.remove_service("web");
    world.set_and_settle(auto());
    assert_eq!(world.take_events(), first);
}

#[test]
fn several_pods_are_reported_in_one_event_of_the_service() {
    let mut world = World::new();
    world.set_all([pod(1).on_node("node-9"), pod(2).on_node("")]);
    world.set_and_settle(service("web"));
    let events = world.events();
    let event = &events[0];
    assert_eq!((event.name.to_string().as_str(), &*event.uid), ("testing/web", "uid-of-web"));
    assert_eq!(
        event.message,
        "Error updating Endpoint Slices for Service testing/web: [skipping Pod pod1 for Service testing/web: Node node-9 \
         Not Found, skipping Pod pod2 for Service testing/web: Node  Not Found]"
    );
    assert_eq!(events.len(), 1);
}

/// Returns the Events that the controller emits when the server rejects the writes for which `is_rejected` is true.
fn events_of_rejecting(is_rejected: fn(&Write) -> bool) -> Vec<String> {
    let mut world = World::new();
    world.make_slice(&slice("web-a", &service("web")).holding([&pod(1), &pod(9)]));
    world.make_slice(&slice("web-b", &service("web")).holding([&pod(8)]).owned_by("an-earlier-one"));
    world.set(pod(1));
    world.writes_are(move |write| if is_rejected(write) { Fate::Rejected } else { Fate::Done });
    world.set(service("web").of_families(&[IPv4, IPv6]));
    world.advance(SECOND * 30);
    world.take_events()
}

#[test]
fn a_rejected_write_is_reported_once_with_its_verb() {
    const BEGINNING: &str =
        "Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service testing/web:";
    let of_creates = events_of_rejecting(|write| write.operation == Operation::Create);
    let why = "failed to create EndpointSlice for Service testing/web: 422 it is not to our taste";
    assert_eq!(of_creates, [format!("{BEGINNING} {why}")]);
    let of_updates = events_of_rejecting(|write| write.operation == Operation::Update);
    let why = "failed to update web-a EndpointSlice for Service testing/web: 422 it is not to our taste";
    assert_eq!(of_updates, [format!("{BEGINNING} {why}")]);
    let of_deletes = events_of_rejecting(|write| write.operation == Operation::Delete);
    let why = "failed to delete web-b EndpointSlice for Service testing/web: 422 it is not to our taste";
    assert_eq!(of_deletes, [format!("{BEGINNING} {why}")]);
}

#[test]
fn a_slice_of_an_address_type_that_the_service_lost_has_words_of_its_own() {
    let mut world = World::new();
    world.set(pod(1).with_ips(&["10.1.0.1", "2001:db8::1"]));
    world.set_and_settle(service("web").of_families(&[IPv4, IPv6]));
    let slices = world.slices_of("web");
    let v6 =
        slices.iter().find(|slice| slice.address_type.as_str() == "IPv6").expect("one of each").metadata.name.clone();
    world.writes_are(|_| Fate::Failed);
    world.set_and_settle(service("web").of_families(&[IPv4]));
    let reported = format!(
        "Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service testing/web: error deleting {v6} \
         EndpointSlice for Service testing/web: outcome unknown (ServiceError: the connection was reset)"
    );
    assert_eq!(world.take_events(), [reported]);
}

#[test]
fn nothing_is_reported_about_a_deleted_service() {
    let (mut controller, web) = listed();
    assert!(controller.rejected(&web, "create", "web-x", "too late").is_some());
    controller.remove(Input::Service, "testing", "web", NOON, &mut Vec::new());
    assert_eq!(controller.rejected(&web, "create", "web-x", "too late"), None);
}

/// Checks the values of metrics, by name and labels.
#[track_caller]
fn check(world: &World, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        assert_eq!(world.metric(name), Some(*value), "{name}");
    }
}

#[test]
fn a_sync_is_measured_as_kube_controller_manager_does() {
    let mut world = World::new();
    world.set_all((0..20).map(pod));
    world.set_and_settle(service("web"));
    let after_first = [
        ("desired_endpoint_slices", 1.0),
        ("num_endpoint_slices", 1.0),
        ("endpoints_desired", 20.0),
        ("endpoints_added_per_sync_sum", 20.0),
        ("endpoints_added_per_sync_count", 1.0),
        ("endpoints_removed_per_sync_sum", 0.0),
        ("changes{operation=\"create\"}", 1.0),
        ("syncs{result=\"success\"}", 1.0),
        ("endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"\"}", 1.0),
        ("endpointslices_changed_per_sync_count{topology=\"Disabled\",traffic_distribution=\"\"}", 1.0),
    ];
    check(&world, &after_first);
    for number in 10..20 {
        world.remove_pod(&format!("pod{number}"));
    }
    world.settle();
    let after_second = [
        ("desired_endpoint_slices", 1.0),
        ("num_endpoint_slices", 1.0),
        ("endpoints_desired", 10.0),
        ("endpoints_added_per_sync_sum", 20.0),
        ("endpoints_removed_per_sync_sum", 10.0),
        ("endpoints_removed_per_sync_count", 2.0),
        ("changes{operation=\"create\"}", 1.0),
        ("changes{operation=\"update\"}", 1.0),
        ("syncs{result=\"success\"}", 2.0),
        ("endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"\"}", 2.0),
    ];
    check(&world, &after_second);
}

/// As in kube-controller-manager's metrics, all phases of one plan together count as one sync. Each failed attempt also
/// counts as a sync.
#[test]
fn a_sync_of_several_phases_counts_once_and_each_try_that_fails() {
    let mut world = World::new();
    world.make_slice(&slice("web-old", &service("web")).holding([&pod(1)]).owned_by("an-earlier-one"));
    world.set(pod(1));
    let mut failures = 3;
    world.writes_are(move |_| {
        failures -= i32::from(failures > 0);
        if failures > 0 { Fate::Failed } else { Fate::Done }
    });
    world.set(service("web"));
    world.advance(SECOND);
    let expected = [
        ("syncs{result=\"error\"}", 2.0),
        ("syncs{result=\"success\"}", 1.0),
        ("endpoints_added_per_sync_count", 3.0),
        ("changes{operation=\"create\"}", 1.0),
        ("changes{operation=\"delete\"}", 1.0),
        ("endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"\"}", 2.0),
        ("endpointslices_changed_per_sync_count{topology=\"Disabled\",traffic_distribution=\"\"}", 1.0),
    ];
    check(&world, &expected);
}

#[test]
fn a_failure_that_lasts_counts_each_try_and_is_reported_once() {
    let mut world = World::new();
    world.set(pod(1));
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    world.writes_are(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Fate::Failed
    });
    world.set(service("web"));
    world.advance(SECOND * 60);
    assert!(tries.load(Ordering::Relaxed) > 5);
    check(&world, &[("syncs{result=\"error\"}", f64::from(tries.load(Ordering::Relaxed)))]);
    assert_eq!(world.metric("syncs{result=\"success\"}"), None);
    let reported = "Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service testing/web: failed to \
                create EndpointSlice for Service testing/web: outcome unknown (ServiceError: the connection was reset)";
    assert_eq!(world.take_events(), [reported]);
}

#[test]
fn writes_that_fail_together_are_one_sync_that_failed() {
    let config = Config::default().with_max_endpoints_per_slice(1).expect("a limit of a test");
    let mut world = World::with(config, Timing::default());
    world.set_all((1..=4).map(pod));
    world.writes_are(|_| Fate::Failed);
    world.set_and_settle(service("web"));
    check(&world, &[("syncs{result=\"error\"}", 1.0)]);
}

/// In this test, the next pod always appears before the write for the previous pod finishes, so the Service never
/// settles.
#[test]
fn a_service_that_never_rests_has_gauges_of_now_and_syncs() {
    let mut world = World::with_web();
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(pod(1));
    for number in 2..=6 {
        world.set_and_settle(pod(number));
        check(&world, &[("endpoints_desired", number as f64)]);
        world.deliver_responses();
        assert_eq!(world.flights_of("web").len(), 1, "the write for pod {number}");
    }
    let expected = [
        ("num_endpoint_slices", 1.0),
        ("syncs{result=\"success\"}", 6.0),
        ("endpoints_added_per_sync_sum", 6.0),
        ("endpointslices_changed_per_sync_count{topology=\"Disabled\",traffic_distribution=\"\"}", 6.0),
    ];
    check(&world, &expected);
}

#[test]
fn slices_that_a_service_under_deletion_does_not_get_are_not_counted() {
    let mut world = World::new();
    world.set(pod(1));
    world.set_and_settle(service("web").terminating());
    check(&world, &[("endpoints_desired", 1.0), ("desired_endpoint_slices", 1.0), ("num_endpoint_slices", 0.0)]);
}

#[test]
fn syncs_that_leave_something_undone_are_errors() {
    let mut world = World::new();
    world.set(pod(1).on_node("node-9"));
    world.set_and_settle(service("web"));
    check(&world, &[("syncs{result=\"error\"}", 1.0)]);
    assert_eq!(world.metric("syncs{result=\"success\"}"), None);
    world.writes_are(|_| Fate::Rejected);
    world.set_and_settle(service("shop"));
    check(&world, &[("syncs{result=\"error\"}", 2.0)]);
}

#[test]
fn a_service_that_is_gone_counts_no_more_and_both_families_of_one_do() {
    let mut world = World::new();
    world.set_all([pod(1), pod(2).with_ips(&["10.1.0.2", "2001:db8::2"])]);
    world.set(service("web").of_families(&[IPv4, IPv6]).preferring("PreferSameZone"));
    world.set_and_settle(service("empty").selecting([("foo", "nobody")]));
    let distribution = "services_count_by_traffic_distribution{traffic_distribution=\"PreferSameZone\"}";
    check(&world, &[("endpoints_desired", 3.0), ("num_endpoint_slices", 3.0), (distribution, 1.0)]);
    world.remove_service("web");
    world.settle();
    check(&world, &[("endpoints_desired", 0.0), ("num_endpoint_slices", 1.0), (distribution, 0.0)]);
}

#[test]
fn hints_emit_events_when_they_begin_and_when_they_end_and_not_in_between() {
    let mut world = World::new();
    world.set_all([node("node-a", "zone-a", "2"), node("node-b", "zone-b", "2")]);
    world.remove_node("node-1");
    let on = |service: &str| super::builders::service(service).annotated("service.kubernetes.io/topology-mode", "Auto");
    world.set_all([pod(1).on_node("node-a"), pod(2).on_node("node-b")]);
    world.set_and_settle(on("web"));
    let enabled = "Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4";
    assert_eq!(world.take_events(), [enabled]);
    world.set_all_and_settle([pod(3).on_node("node-a"), pod(4).on_node("node-b")]);
    assert!(world.take_events().is_empty());
    world.set_and_settle(node("node-b", "", "2"));
    let rejected = "Warning TopologyAwareHintsDisabled: Insufficient Node information: allocatable CPU or zone not \
                   specified on one or more nodes, addressType: IPv4";
    assert_eq!(world.take_events(), [rejected]);
    world.set_and_settle(pod(5).on_node("node-a").not_ready());
    assert!(world.take_events().is_empty(), "still so");
    world.set_and_settle(node("node-b", "zone-b", "2"));
    assert_eq!(world.take_events(), [enabled], "and nobody had to touch the Service");
    world.set_and_settle(service("web"));
    let ended = "Warning TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4";
    assert_eq!(world.take_events(), [ended]);
    assert_eq!(world.events(), []);
}
