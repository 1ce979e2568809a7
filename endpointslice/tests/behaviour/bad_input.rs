//! Tests of malformed input, for which kube-controller-manager has no tests. A malformed pod must not block the slices
//! of its Service.

use crate::builders::{BuildPod as _, BuildService as _, named_port, node, pod, pods, service};
use crate::world::{World, reconciled, world};
use endpointslice::address::BadAddress;
use endpointslice::backend::{SkipReason, Skipped};
use endpointslice::model::{EndpointSlice, Phase, Pod, Service};

fn with_bad_pod(bad: Pod) -> (World, Vec<SkipReason>) {
    let mut pods = pods(0..3);
    pods.insert(1, bad);
    let world = world(pods);
    let outcome = world.reconcile();
    assert!(outcome.applied.is_success());
    assert_eq!(world.lengths()[0], 3, "the other pods are published");
    assert!(world.reconcile().plan.is_empty(), "and it settles");
    (world, outcome.plan.skipped.into_iter().map(|Skipped { reason, .. }| reason).collect())
}

#[test]
fn invalid_addresses_and_those_that_the_api_rejects_are_left_out() {
    let check = |address: &str, why: BadAddress| {
        assert_eq!(with_bad_pod(pod(9).with_ips(&[address])).1, [SkipReason::BadAddress(address.into(), why)]);
    };
    check("1.2.3.256", BadAddress::NotAnAddress);
    check("nonsense", BadAddress::NotAnAddress);
    check("127.0.0.1", BadAddress::Forbidden);
    check("169.254.0.1", BadAddress::Forbidden);
    check("0.0.0.0", BadAddress::Forbidden);
    check("224.0.0.5", BadAddress::Forbidden);
}

/// Also rule Z8.
#[test]
fn the_good_addresses_of_a_pod_survive_a_bad_one() {
    let world = reconciled(vec![pod(1).with_ips(&["bad", "10.0.0.7"])]);
    assert_eq!(world.memory.slices()[0].endpoints[0].addresses.join(" "), "10.0.0.7");
}

#[test]
fn pods_without_address_without_node_and_ended_ones_are_named() {
    assert_eq!(with_bad_pod(pod(9).with_ips(&[])).1, [SkipReason::NoAddress]);
    assert_eq!(with_bad_pod(pod(9).on_node("")).1, [SkipReason::NodeMissing("".into())]);
    assert_eq!(with_bad_pod(pod(9).in_phase(Phase::Succeeded)).1, [SkipReason::Ended]);
}

#[test]
fn a_published_pod_without_node_is_an_endpoint_without_zone() {
    let world = world(vec![pod(1).on_node("")]).with_service(service("web").publishing_not_ready());
    world.reconcile();
    let slices = world.memory.slices();
    assert_eq!((&slices[0].endpoints[0].node_name, &slices[0].endpoints[0].zone), (&None, &None));
}

#[test]
fn pods_without_the_named_port_stand_apart() {
    let world = world(pods(0..2)).with_service(service("web").with_ports(vec![named_port("p", "http")]));
    world.reconcile();
    assert_eq!(world.lengths(), [2]);
    assert!(world.memory.slices()[0].ports.is_empty());
}

#[test]
fn a_service_that_changes_under_way_is_followed() {
    use endpointslice::address::Family::{V4, V6};
    let both =
        |number: usize| pod(number).with_ips(&[&format!("10.1.0.{}", number + 1), &format!("fd00::{}", number + 1)]);
    let mut world = world((0..3).map(both).collect()).with_nodes(vec![node("node-1", "a")]);
    let steps: [fn(Service) -> Service; 6] = [
        |service| service.with_families(&[V4, V6]),
        |service| service.with_families(&[V6]),
        |service| service.with_ports(vec![named_port("p", "none")]),
        |service| service.with_cluster_ip("fd00::99"),
        |service| service.publishing_not_ready(),
        |service| service.with_families(&[V4]).with_labels([("a", "b")]),
    ];
    for step in steps {
        world.service = step(world.service.clone());
        assert!(world.reconcile().applied.is_success());
        assert!(world.reconcile().plan.is_empty());
    }
    assert_eq!(world.lengths(), [3]);
}

#[test]
fn slices_that_were_edited_or_deleted_by_hand_come_back() {
    let world = reconciled(pods(0..3));
    let good = world.memory.slices()[0].clone();
    let edits: [fn(&mut EndpointSlice); 5] = [
        |slice| slice.endpoints.clear(),
        |slice| slice.endpoints[0].conditions.ready = None,
        |slice| slice.endpoints[1].zone = Some("nowhere".into()),
        |slice| slice.ports.clear(),
        |slice| slice.metadata.owner_references.clear(),
    ];
    for edit in edits {
        let mut edited = (*good).clone();
        edit(&mut edited);
        world.memory.put(edited);
        world.reconcile();
        assert!(world.reconcile().plan.is_empty());
        let slices = world.memory.slices();
        assert_eq!((slices.len(), &slices[0].endpoints, &slices[0].ports), (1, &good.endpoints, &good.ports));
        world.memory.remove(&slices[0].metadata.name);
        world.memory.put((*good).clone());
    }
    world.memory.remove(&good.metadata.name);
    world.reconcile();
    assert_eq!(world.memory.slices()[0].endpoints, good.endpoints);
}
