//! Tests of the placement of endpoints in slices, and of the number of writes that the placement costs.

use crate::builders::{
    BuildPod as _, BuildService as _, BuildSlice as _, container_port, named_port, pod, pods, port, service, slice,
};
use crate::world::{reconciled, world};
use endpointslice::model::{AddressType, EndpointPort, EndpointSlice, Pod};
use std::collections::BTreeSet;

fn names(slice: &EndpointSlice) -> BTreeSet<String> {
    slice.endpoints.iter().filter_map(|it| Some(it.target_ref.as_ref()?.name.to_string())).collect()
}

fn every(step: usize, from: usize, below: usize) -> Vec<Pod> {
    pods((from..below).step_by(step))
}

/// Also rule Z1.
#[test]
fn many_pods_make_full_slices_and_one_with_the_rest() {
    let world = world(pods(0..250));
    world.reconcile_to(&[100, 100, 50], [3, 3, 250, 250, 0, 3, 0, 0, 3]);
    assert!(world.reconcile().plan.is_empty());
}

/// Rule Z1: A Service has more endpoints than one slice may have
/// Then: The library distributes the endpoints over several slices. Each slice has at most as many endpoints as
/// `--max-endpoints-per-slice` allows
#[test]
fn no_slice_has_more_endpoints_than_the_limit() {
    for (max, lengths, metrics) in [
        (50, vec![50, 50, 50, 50, 50], [5, 5, 250, 250, 0, 5, 0, 0, 5]),
        (80, vec![80, 80, 80, 10], [4, 4, 250, 250, 0, 4, 0, 0, 4]),
        (150, vec![150, 100], [2, 2, 250, 250, 0, 2, 0, 0, 2]),
        (250, vec![250], [1, 1, 250, 250, 0, 1, 0, 0, 1]),
        (500, vec![250], [1, 1, 250, 250, 0, 1, 0, 0, 1]),
    ] {
        let world = world(pods(0..250)).with_max(max);
        world.reconcile_to(&lengths, metrics);
    }
}

#[test]
fn one_slice_is_made_and_one_filled_where_others_have_room() {
    let service = service("web");
    let slices = [slice(1, &service).with_pods(&every(4, 1, 246)), slice(2, &service).with_pods(&every(4, 3, 246))];
    let world = world(pods(0..250)).with_slices(slices);
    let outcome = world.reconcile();
    assert_eq!(world.lengths(), [100, 89, 61]);
    world.check_metrics([3, 3, 250, 127, 0, 1, 1, 0, 2]);
    assert_eq!(outcome.calls, ["create web-00001", "update web-1"]);
}

#[test]
fn a_new_slice_is_preferred_over_filling_two_old_ones() {
    let service = service("web");
    let slices = [slice(1, &service).with_pods(&every(4, 1, 297)), slice(2, &service).with_pods(&every(4, 3, 297))];
    let world = world(pods(0..300)).with_slices(slices);
    world.reconcile_to(&[100, 74, 74, 52], [3, 4, 300, 152, 0, 2, 0, 0, 2]);
}

#[test]
fn a_port_change_updates_every_slice_and_makes_none() {
    let mut world = reconciled(pods(0..250));
    world.service.spec.ports = vec![port("web", 81)];
    world.reconcile_to(&[100, 100, 50], [3, 3, 250, 500, 0, 3, 3, 0, 6]);
    let expected = EndpointPort { port: Some(81), ..world.memory.slices()[0].ports[0].clone() };
    assert!(world.memory.slices().iter().all(|slice| slice.ports == [expected.clone()]));
}

#[test]
fn new_labels_of_the_service_come_to_every_slice() {
    let mut world = reconciled(pods(0..250));
    world.service = world.service.with_labels([("foo", "bar")]);
    world.reconcile();
    world.check_metrics([3, 3, 250, 250, 0, 3, 3, 0, 6]);
    assert!(world.memory.slices().iter().all(|slice| slice.metadata.labels.get("foo").is_some_and(|it| *it == "bar")));
}

/// Rule Z12: The labels of a Service change
/// Then: The library copies the labels to every slice of the Service. The library does not copy reserved labels. The
/// library keeps the labels of other writers on a slice, if the configuration of the library contains the keys of these
/// labels
#[test]
fn reserved_labels_on_the_service_cost_no_write() {
    let mut world = reconciled(pods(0..250));
    world.service = world.service.with_labels([
        ("endpointslice.kubernetes.io/managed-by", "me"),
        ("kubernetes.io/service-name", "mine"),
        ("service.kubernetes.io/headless", "no"),
    ]);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

/// Rule Z4: A plan would delete a slice of a Service and create another slice
/// Then: The library updates the old slice instead, if the Service owns the old slice. Metadata of other writers stays
/// on the slice
#[test]
fn slices_are_recycled_when_their_ports_are_not_wanted_any_more() {
    let service = service("web");
    let slices = (0..10).map(|number| slice(number, &service).with_pods(&pods(number * 30..(number + 1) * 30)));
    let mut world = world(pods(0..300)).with_slices(slices);
    world.reconcile();
    world.check_metrics([3, 10, 300, 0, 0, 0, 0, 0, 0]);
    world.service.spec.ports = vec![port("web", 81)];
    world.reconcile_to(&[100, 100, 100], [3, 3, 300, 300, 0, 0, 3, 7, 10]);
    assert!(world.reconcile().plan.is_empty());
}

#[test]
fn slices_that_change_anyway_take_the_new_endpoints() {
    let service = service("web");
    let slices = [slice(1, &service).with_pods(&pods(0..80)), slice(2, &service).with_pods(&pods(100..120))];
    let numbers = (0..80).chain(100..135);
    let every_tenth_unready =
        numbers.map(|number| if number % 10 == 0 { pod(number).not_ready() } else { pod(number) });
    let world = world(every_tenth_unready.collect()).with_slices(slices);
    world.reconcile_to(&[95, 20], [2, 2, 115, 15, 0, 0, 2, 0, 2]);
}

#[test]
fn slices_of_a_retired_address_type_go_after_their_successors_came() {
    let service = service("web");
    let retired = || AddressType::Other("IP".into());
    let slices = [
        slice(1, &service).with_pods(&pods(0..80)).with_address_type(retired()),
        slice(2, &service).with_pods(&pods(80..130)).with_address_type(retired()),
    ];
    let world = world(pods(0..130)).with_slices(slices);
    let outcome = world.reconcile();
    assert_eq!(outcome.calls, ["create web-00001", "create web-00002", "delete web-1", "delete web-2"]);
    world.check_metrics([2, 2, 130, 130, 0, 2, 0, 2, 2]);
    assert_eq!(world.lengths(), [100, 30]);
    assert!(world.memory.slices().iter().all(|slice| slice.address_type == AddressType::IPv4));
}

/// Also rules Z4, Z6.
#[test]
fn a_slice_of_an_earlier_service_of_the_same_name_is_replaced_not_taken_over() {
    let service = service("web");
    let owned = world(pods(0..1)).with_slices([slice(1, &service).with_pods(&pods(0..1))]);
    assert_eq!(owned.reconcile().writes(), [0, 0, 0]);
    let foreign = slice(1, &service).with_pods(&pods(0..1)).with_owner_uid("earlier");
    let world = world(pods(0..1)).with_slices([foreign]);
    assert_eq!(world.reconcile().calls, ["create web-00001", "delete web-1"]);
    assert_eq!(world.lengths(), [1]);
}

#[test]
fn pods_with_different_numbers_for_a_named_port_stand_in_different_slices() {
    let with_port = |number: usize| {
        let numbered = 8080 + i32::try_from(number % 5).unwrap();
        pod(number).with_container(vec![container_port("http", numbered)])
    };
    let service = service("web").with_ports(vec![named_port("", "http")]);
    let world = world((0..300).map(with_port).collect()).with_service(service);
    world.reconcile_to(&[60, 60, 60, 60, 60], [5, 5, 300, 300, 0, 5, 0, 0, 5]);
    let ports: BTreeSet<_> = world.memory.slices().iter().map(|slice| slice.ports[0].clone()).collect();
    let numbers: Vec<_> = ports.iter().map(|port| (port.name.as_deref(), port.port)).collect();
    let expected = [8080, 8081, 8082, 8083, 8084].map(|number| (Some(""), Some(number)));
    assert_eq!(numbers, expected);
}

#[test]
fn fewer_pods_shrink_their_slice() {
    let mut world = reconciled(pods(0..20));
    world.check_metrics([1, 1, 20, 20, 0, 1, 0, 0, 1]);
    world.pods.truncate(10);
    world.reconcile();
    world.check_metrics([1, 1, 10, 20, 10, 1, 1, 0, 2]);
}

#[test]
fn a_lowered_limit_leaves_full_slices_alone() {
    let world = reconciled(pods(0..100));
    let mut world = world.with_max(30);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
    world.pods.push(pod(100));
    assert_eq!(world.reconcile().writes(), [1, 0, 0]);
    assert_eq!(world.lengths(), [100, 1]);
}

/// Also rule Z3.
#[test]
fn a_pod_recreated_with_its_name_and_address_stays_in_its_place() {
    let mut world = reconciled(pods(0..3));
    world.pods[1].metadata.uid = "another".into();
    world.reconcile();
    world.check_metrics([1, 1, 3, 3, 0, 1, 1, 0, 2]);
    assert_eq!(world.memory.slices()[0].endpoints[1].target_ref.as_ref().unwrap().uid, "another");
}

#[test]
fn pods_that_share_an_address_are_several_endpoints() {
    let world = reconciled(vec![pod(0).with_ips(&["10.9.9.9"]), pod(1).with_ips(&["10.9.9.9"])]);
    assert_eq!(world.lengths(), [2]);
}

#[test]
fn an_endpoint_that_two_slices_have_stays_in_the_first() {
    let service = service("web");
    let slices = [slice(1, &service).with_pods(&pods(0..2)), slice(2, &service).with_pods(&pods(1..3))];
    let world = world(pods(0..3)).with_slices(slices);
    assert_eq!(world.reconcile().calls, ["update web-2"]);
    let placed: Vec<_> = world.memory.slices().iter().map(|slice| names(slice)).collect();
    assert_eq!(placed, [BTreeSet::from(["pod0".into(), "pod1".into()]), BTreeSet::from(["pod2".into()])]);
}

#[test]
fn a_slice_of_a_wanted_group_that_is_empty_already_stays() {
    let service = service("web");
    let slices = [slice(1, &service), slice(2, &service).with_pods(&pods(0..2))];
    assert_eq!(world(pods(0..2)).with_slices(slices).reconcile().writes(), [0, 0, 0]);
}

/// Also rule Z3.
#[test]
fn the_order_of_ports_and_endpoints_in_a_slice_costs_no_write() {
    let two = service("web").with_ports(vec![port("web", 80), port("metrics", 9090)]);
    let mut made_by_another = slice(1, &two).with_pods(&[pod(2), pod(0), pod(1)]);
    made_by_another.ports.reverse();
    let world = world(pods(0..3)).with_service(two).with_slices([made_by_another]);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}
