//! Tests of endpoints' hints, the writes that they cost, and the labels of their metrics.

use crate::builders::{BuildPod as _, BuildService as _, pod, service, small_node};
use crate::meters::Nine;
use crate::world::{World, world};
use endpointslice::hints::{HintChange, ServiceHints, Topology};
use endpointslice::model::{Endpoint, EndpointSlice, Node, Pod};
use endpointslice::plan::AssignHints as _;
use std::collections::BTreeMap;

/// Returns hints that support the topology annotation, with the zone shares of these Nodes, and
/// `spec.trafficDistribution`.
fn both_ways(nodes: &[Node]) -> ServiceHints {
    let mut hints = ServiceHints::new();
    assert_eq!(hints.set_nodes(nodes), []);
    hints
}

/// Returns an endpoint's hints as text: zones, then the Nodes, separated by `@`; `-` for no hints.
fn shown(endpoint: &Endpoint) -> String {
    let Some(hints) = &endpoint.hints else { return "-".to_owned() };
    [&hints.for_zones, &hints.for_nodes].into_iter().flatten().map(|it| &**it).collect::<Vec<_>>().join("@")
}

/// Returns two results: the number of endpoints with each hint, and the number of endpoints that have a hint for
/// another zone than their own zone.
fn distribution(world: &World) -> (Vec<(String, usize)>, usize) {
    let slices = world.memory.slices();
    let endpoints = || slices.iter().flat_map(|slice| &slice.endpoints);
    let mut counts = BTreeMap::new();
    for endpoint in endpoints() {
        *counts.entry(shown(endpoint)).or_default() += 1;
    }
    let is_foreign = |endpoint: &&Endpoint| {
        let hints = endpoint.hints.as_deref();
        hints.is_some_and(|hints| hints.for_zones.first() != endpoint.zone.as_ref())
    };
    (counts.into_iter().collect(), endpoints().filter(is_foreign).count())
}

#[track_caller]
fn check_distribution(world: &World, expected: &[(&str, usize)], across_zones: usize) {
    let expected = expected.iter().map(|(hints, count)| ((*hints).to_owned(), *count)).collect();
    assert_eq!(distribution(world), (expected, across_zones));
}

/// Asserts that the metrics count `changed` slices, only with these labels, and the Service with its traffic
/// distribution.
#[track_caller]
fn check_labels(world: &World, changed: u64, topology: &str, traffic_distribution: &str) {
    let labels = format!(r#"topology="{topology}",traffic_distribution="{traffic_distribution}""#);
    let mut expected = vec![format!("endpointslices_changed_per_sync_sum{{{labels}}} {changed}")];
    if !traffic_distribution.is_empty() {
        let labels = format!(r#"traffic_distribution="{traffic_distribution}""#);
        expected.push(format!("services_count_by_traffic_distribution{{{labels}}} 1"));
    }
    assert_eq!(world.metric_labels(), expected);
}

/// Returns the slice `web-<number>` without hints, as the controller writes it for these pods.
fn existing(number: usize, pods: &[Pod], nodes: &[Node]) -> EndpointSlice {
    let plan = world(pods.to_vec()).with_nodes(nodes.to_vec()).plan();
    let mut slice = plan.families[0].draft.creates[0].clone();
    slice.metadata.name = format!("web-{number}").into();
    slice
}

/// Cases of kube-controller-manager's `TestReconcileTopology`. There are three zones with ten Nodes each, and one pod
/// on each Node.
#[test]
fn the_five_cases_of_a_topology_aware_plan() {
    let zones = ["zone-a", "zone-b", "zone-c"];
    let places = zones.iter().flat_map(|zone| (0..10).map(move |number| (zone, format!("node-{zone}-{number}"))));
    let nodes: Vec<_> = places.map(|(zone, name)| small_node(&name, zone)).collect();
    let pods: Vec<_> = nodes.iter().enumerate().map(|(at, node)| pod(at).on_node(&node.metadata.name)).collect();
    let pick = |numbers: &[usize]| numbers.iter().map(|number| pods[*number].clone()).collect::<Vec<_>>();
    let (a_b, a_c, c) = (pick(&[7, 8, 16, 17, 18]), pick(&[5, 6, 25, 26]), pick(&[27, 28, 29]));
    let check = |is_served: bool, mode: &str, slices: &[&[Pod]], expected: &[(&str, usize)], across_zones: usize| {
        let slices = slices.iter().enumerate();
        let (slices, pods): (Vec<_>, Vec<_>) =
            slices.map(|(at, pods)| (existing(at, pods, &nodes), pods.to_vec())).unzip();
        let mut hints = ServiceHints { topology: is_served.then(Topology::default), ..ServiceHints::default() };
        assert_eq!(hints.set_nodes(&nodes), []);
        let world = world(pods.concat()).with_slices(slices).with_nodes(nodes.clone()).with_hints(hints);
        let world = world.with_service(service("web").with_topology_hints(mode));
        world.reconcile();
        check_distribution(&world, expected, across_zones);
        world
    };
    let thirds = |count| zones.map(|zone| (zone, count));

    let not_served = check(false, "auto", &[&c], &[("-", 3)], 0);
    not_served.check_metrics([1, 1, 3, 0, 0, 0, 0, 0, 0]);
    check_labels(&not_served, 0, "Auto", "");
    let turned_on = check(true, "auto", &[&c], &thirds(1), 2);
    turned_on.check_metrics([1, 1, 3, 0, 0, 0, 1, 0, 1]);
    check_labels(&turned_on, 1, "Auto", "");
    let beyond_the_threshold = check(true, "auto", &[&a_c], &[("-", 4)], 0);
    beyond_the_threshold.check_metrics([1, 1, 4, 0, 0, 0, 0, 0, 0]);
    check_labels(&beyond_the_threshold, 0, "Auto", "");
    let two_slices = check(true, "Auto", &[&a_c, &a_b], &thirds(3), 1);
    two_slices.check_metrics([1, 2, 9, 0, 0, 0, 2, 0, 2]);
    check_labels(&two_slices, 2, "Auto", "");
    let turned_off = check(true, "disabled", &[&a_c, &a_b], &[("-", 9)], 0);
    turned_off.check_metrics([1, 2, 9, 0, 0, 0, 0, 0, 0]);
    check_labels(&turned_off, 0, "Disabled", "");
}

/// Cases of kube-controller-manager's `TestReconcile_TrafficDistribution`. Each zone has one Node: one pod in zone a,
/// three pods in zone b, two pods in zone c.
///
/// Two cases of kube-controller-manager turn a feature gate off. In 1.35 these gates cannot be turned off, so two other
/// cases replace them: an unknown and another known value of `trafficDistribution`.
///
/// Also rule Z13.
#[test]
fn the_six_cases_of_a_traffic_distribution() {
    const ALL: Nine = [1, 1, 6, 6, 0, 1, 0, 0, 1];
    let nodes: Vec<_> = ["a", "b", "c"]
        .iter()
        .enumerate()
        .map(|(at, it)| small_node(&format!("node-{at}"), &format!("zone-{it}")))
        .collect();
    let pods = [0, 1, 1, 1, 2, 2].iter().enumerate();
    let pods: Vec<_> = pods.map(|(number, node)| pod(number).on_node(&format!("node-{node}"))).collect();
    let check = |value: Option<&str>, mode: &str, expected: &[(&str, usize)], across_zones, labels: (&str, &str)| {
        let service = service("web").with_traffic_distribution(value).with_topology_hints(mode);
        let world = world(pods.clone()).with_service(service).with_nodes(nodes.clone()).with_hints(both_ways(&nodes));
        world.reconcile();
        check_distribution(&world, expected, across_zones);
        world.check_metrics(ALL);
        check_labels(&world, 1, labels.0, labels.1);
    };
    let own_zones = &[("zone-a", 1), ("zone-b", 3), ("zone-c", 2)];
    let own_nodes = &[("zone-a@node-0", 1), ("zone-b@node-1", 3), ("zone-c@node-2", 2)];
    let shares = &[("zone-a", 2), ("zone-b", 2), ("zone-c", 2)];
    check(Some("PreferClose"), "Disabled", own_zones, 0, ("Disabled", "PreferClose"));
    check(Some("PreferFar"), "Disabled", &[("-", 6)], 0, ("Disabled", ""));
    check(Some("PreferClose"), "Auto", shares, 1, ("Auto", ""));
    check(None, "", &[("-", 6)], 0, ("Disabled", ""));
    check(Some("PreferSameNode"), "Disabled", own_nodes, 0, ("Disabled", "PreferSameNode"));
    check(Some("PreferSameZone"), "Disabled", own_zones, 0, ("Disabled", "PreferSameZone"));
}

#[test]
fn hints_of_a_service_that_asks_for_none_are_removed_once() {
    let nodes = vec![small_node("node-1", "zone-a")];
    let asking = service("web").with_traffic_distribution(Some("PreferSameNode"));
    let hints = both_ways(&nodes);
    let mut world = world(vec![pod(0)]).with_service(asking).with_nodes(nodes).with_hints(hints);
    assert_eq!(world.reconcile().writes(), [1, 0, 0]);
    check_distribution(&world, &[("zone-a@node-1", 1)], 0);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
    world.service = service("web");
    assert_eq!(world.reconcile().writes(), [0, 1, 0]);
    check_distribution(&world, &[("-", 1)], 0);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

/// With `ServiceHints::topology` set to `None`, the topology annotation removes all hints. kube-controller-manager does
/// the same if it has no topology cache.
#[test]
fn where_shares_are_not_served_the_annotation_turns_the_hints_of_a_traffic_distribution_off() {
    let nodes = vec![small_node("node-1", "zone-a")];
    let preferring = || service("web").with_traffic_distribution(Some("PreferSameZone"));
    let hints = ServiceHints { topology: None, ..ServiceHints::new() };
    let mut world = world(vec![pod(0)]).with_service(preferring()).with_nodes(nodes).with_hints(hints);
    world.reconcile();
    check_distribution(&world, &[("zone-a", 1)], 0);
    world.service = preferring().with_topology_hints("Auto");
    assert_eq!(world.reconcile().writes(), [0, 1, 0]);
    check_distribution(&world, &[("-", 1)], 0);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

#[test]
fn turning_the_annotation_off_gives_way_to_the_traffic_distribution_and_emits_one_event() {
    let nodes = vec![small_node("node-1", "zone-a"), small_node("node-2", "zone-b")];
    let preferring = || service("web").with_traffic_distribution(Some("PreferSameZone"));
    let hints = both_ways(&nodes);
    let mut world = world(vec![pod(0), pod(1)]).with_nodes(nodes).with_hints(hints);
    world.service = preferring().with_topology_hints("Auto");
    assert!(!world.hints.borrow().is_local(&world.service));
    world.reconcile();
    check_distribution(&world, &[("zone-a", 1), ("zone-b", 1)], 1);
    world.service = preferring();
    assert!(world.hints.borrow().is_local(&world.service));
    for _ in 0..2 {
        world.reconcile();
        check_distribution(&world, &[("zone-a", 2)], 0);
    }
    let changes: Vec<_> = world.hints.borrow_mut().take_events().into_iter().map(|event| event.change).collect();
    assert_eq!(changes, [HintChange::Enabled, HintChange::TurnedOff]);
}
