//! Tests of Nodes and topology hints: the Services that a change of Nodes requeues.

use super::builders::{Build as _, BuildPod as _, BuildService as _, node, pod, service};
use super::world::{SECOND, World};
use endpointslice::model::{Node, Service};

fn auto() -> Service {
    service("web").annotated("service.kubernetes.io/topology-mode", "Auto")
}

fn unready(mut node: Node) -> Node {
    node.status.readiness.is_ready = false;
    node
}

/// Returns a cluster with a Service with topology hints, and this number of ready pods in each of the zones a, b and c.
/// The Node of each zone has as many CPUs as pods, so each pod gets a hint for its own zone.
fn hinted(pods: [usize; 3]) -> World {
    let mut world = World::new();
    world.remove_node("node-1");
    let mut number = 0;
    for (zone, count) in ["a", "b", "c"].into_iter().zip(pods) {
        if count > 0 {
            world.set(node(&format!("node-{zone}"), &format!("zone-{zone}"), &count.to_string()));
        }
        for _ in 0..count {
            number += 1;
            world.set(pod(number).on_node(&format!("node-{zone}")));
        }
    }
    world.set_and_settle(auto());
    assert_eq!(world.take_events().len(), 1);
    for endpoint in &world.only_slice_of("web").endpoints {
        let hints = endpoint.hints.as_ref().expect("hints were set");
        assert_eq!(hints.for_zones[..], [endpoint.zone.clone().expect("Nodes have zones")]);
    }
    world
}

/// Creates or changes these Nodes, and checks whether the controller plans the Service again. The Nodes of the
/// Service's pods keep their zones.
#[track_caller]
fn check(pods: [usize; 3], nodes: Vec<Node>, is_touched: bool) {
    let mut world = hinted(pods);
    world.set_all(nodes);
    assert_eq!(world.requeue(), if is_touched { vec!["web"] } else { Vec::new() });
    world.settle();
    world.advance(SECOND);
    assert!(world.requeue().is_empty());
}

#[test]
fn nodes_touch_nothing_where_nobody_has_hints() {
    let mut world = World::with_web();
    world.set_all([node("node-a", "zone-a", "2"), node("node-b", "zone-b", "2")]);
    assert!(world.requeue().is_empty());
}

#[test]
fn overloaded_zones_are_allocated_again() {
    let nodes = |a: &str, b: &str, c: &str| {
        vec![node("node-a", "zone-a", a), node("node-b", "zone-b", b), node("node-c", "zone-c", c)]
    };
    check([1, 2, 3], nodes("100m", "1000m", "2000m"), true);
    check([1, 2, 3], vec![unready(node("node-a", "zone-a", "1")), node("node-c", "zone-c", "20")], true);
    check([1, 2, 3], vec![unready(node("node-a", "zone-a", "1"))], false);
    check([1, 2, 3], vec![unready(node("node-c", "zone-c", "3"))], true);
    check([10, 20, 1], vec![node("node-c", "zone-c", "900m")], false);
    check([10, 20, 1], vec![node("node-c", "zone-c", "9")], true);
    check([10, 20, 0], vec![node("node-c", "zone-c", "1")], true);
}

#[test]
fn two_zones_are_allocated_again_beyond_a_fifth_and_not_within() {
    check([4, 5, 0], vec![node("node-b", "zone-b", "4")], false);
    check([4, 6, 0], vec![node("node-b", "zone-b", "4")], true);
}

#[test]
fn a_node_without_a_zone_or_processors_ends_hints() {
    check([4, 5, 0], vec![node("node-x", "", "2000m")], true);
    check([4, 5, 0], vec![node("node-x", "zone-a", "")], true);
    let mut world = hinted([4, 5, 0]);
    world.set_and_settle(node("node-x", "zone-a", ""));
    assert!(world.only_slice_of("web").endpoints.iter().all(|endpoint| endpoint.hints.is_none()));
    world.remove_node("node-x");
    world.settle();
    assert!(world.only_slice_of("web").endpoints.iter().all(|endpoint| endpoint.hints.is_some()), "they come back");
}

#[test]
fn a_service_waits_for_the_zones_of_nodes_and_gets_its_hints_when_they_have_them() {
    let mut world = World::new();
    world.remove_node("node-1");
    world.set_all([node("node-a", "", "1"), node("node-b", "", "1")]);
    world.set_all([pod(1).on_node("node-a"), pod(2).on_node("node-b")]);
    world.set_and_settle(auto());
    let rejected = "Warning TopologyAwareHintsDisabled: Insufficient Node information: allocatable CPU or zone not \
                   specified on one or more nodes, addressType: IPv4";
    assert_eq!(world.take_events(), [rejected]);
    world.set_all_and_settle([node("node-a", "zone-a", "1"), node("node-b", "zone-b", "1")]);
    let enabled = "Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4";
    assert_eq!(world.take_events(), [enabled]);
}

#[test]
fn a_service_that_is_gone_or_not_served_any_more_is_not_touched_by_nodes() {
    for end in [service("web").external_name(), service("web").selecting([])] {
        let mut world = hinted([1, 2, 3]);
        let end = end.annotated("service.kubernetes.io/topology-mode", "Auto");
        world.set(end);
        world.set_all_and_settle([1, 2, 3, 4, 5, 6].map(|number| pod(number).labelled([])));
        world.set(node("node-a", "zone-a", "100"));
        assert!(world.requeue().is_empty());
    }
    let mut world = hinted([1, 2, 3]);
    world.remove_service("web");
    world.settle();
    world.set(node("node-a", "zone-a", "100"));
    assert!(world.requeue().is_empty());
}

#[test]
fn hints_by_zones_outlast_a_restart_and_a_handover() {
    let mut world = hinted([1, 2, 3]);
    world.take_done();
    world.restart();
    assert_eq!(world.done_after(SECOND), []);
    world.serve(false);
    world.serve(true);
    assert_eq!(world.done_after(SECOND), []);
}

#[test]
fn hints_follow_the_traffic_distribution_and_the_annotation_before_it() {
    let mut world = hinted([2, 2, 2]);
    world.set_and_settle(service("web").preferring("PreferSameNode"));
    let hints = |world: &World| world.only_slice_of("web").endpoints[0].hints.clone();
    assert_eq!(hints(&world).expect("hints").for_nodes[..], ["node-a"]);
    world.set_and_settle(auto().preferring("PreferSameNode"));
    assert!(hints(&world).expect("hints").for_nodes.is_empty());
    world.set_and_settle(service("web").preferring("PreferNobody"));
    assert_eq!(hints(&world), None);
}
