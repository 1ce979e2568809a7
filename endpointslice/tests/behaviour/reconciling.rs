//! Tests of the slices that are made for a Service from its pods: content, placeholders, and Services that are being
//! deleted.

use crate::builders::{BuildPod as _, BuildService as _, BuildSlice as _, node, pod, pods, port, service, slice, time};
use crate::meters::Nine;
use crate::world::{World, reconciled, world};
use endpointslice::address::Family;
use endpointslice::model::{AddressType, Conditions, EndpointSlice, Phase, Service, TargetKind};
use endpointslice::{SliceTemplate, Text, TextMap};

/// Rule Z7: A Service has no endpoints
/// Then: The Service has one slice without endpoints (placeholder) for each address type. The Service owns the
/// placeholder
#[test]
fn a_service_without_pods_has_a_placeholder() {
    let world = reconciled(vec![]);
    world.check_metrics([1, 1, 0, 0, 0, 1, 0, 0, 1]);
    let slices = world.memory.slices();
    let [slice] = &slices[..] else { panic!("one slice, not {slices:?}") };
    assert!(slice.metadata.name.starts_with("web-"));
    assert_eq!(slice.metadata.labels.get("kubernetes.io/service-name").unwrap(), "web");
    assert_eq!((slice.ports.len(), slice.endpoints.len()), (0, 0));
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

#[test]
fn a_placeholder_that_is_there_stays_and_another_slice_becomes_one() {
    let service = service("web");
    let placeholder = || slice(1, &service).with_slice_ports(&[]);
    let other = slice(1, &service).with_label("bar", "baz");
    let check = |existing: Option<EndpointSlice>, metrics: Nine| {
        let world = world(vec![]).with_slices(existing);
        world.reconcile();
        world.check_metrics(metrics);
        assert_eq!(world.lengths(), [0]);
        assert_eq!(world.memory.slices()[0].metadata.labels, placeholder().metadata.labels);
    };
    check(None, [1, 1, 0, 0, 0, 1, 0, 0, 1]);
    check(Some(placeholder()), [1, 1, 0, 0, 0, 0, 0, 0, 0]);
    check(Some(other), [1, 1, 0, 0, 0, 0, 1, 0, 1]);
}

#[test]
fn name_and_age_of_a_placeholder_do_not_matter_but_its_labels_do() {
    let service = service("web");
    let config = endpointslice::Config::default();
    let template = SliceTemplate::new(&service, &config);
    let placeholder = || slice(1, &service).with_slice_ports(&[]);
    let check =
        |slice: EndpointSlice, expected: bool| assert_eq!(template.is_placeholder(&slice), expected, "{slice:?}");
    check(placeholder(), true);
    let mut renamed = placeholder();
    renamed.metadata.name = "another".into();
    check(renamed, true);
    let mut older = placeholder();
    older.metadata.creation_timestamp = time("2020-01-01T00:00:00Z");
    check(older, true);
    check(placeholder().with_label("bar", "baz"), false);
    check(slice(1, &service), false);
    check(placeholder().with_pods(&pods(0..1)), false);
    let six = world(vec![]).with_slices([placeholder().with_address_type(AddressType::IPv6)]);
    assert_eq!(six.reconcile().calls, ["create web-00001", "delete web-1"]);
}

/// kube-controller-manager does not correct such a placeholder, because it treats a missing label as equal to a label
/// with the value "".
#[test]
fn a_placeholder_whose_labels_differ_by_an_empty_value_is_corrected() {
    let labelled = service("web").with_labels([("team", "")]);
    let too_many = slice(1, &service("web")).with_slice_ports(&[]).with_label("team", "");
    let too_few = slice(1, &service("web")).with_slice_ports(&[]);
    for (service, placeholder) in [(service("web"), too_many), (labelled, too_few)] {
        let world = world(vec![]).with_service(service).with_slices([placeholder]);
        assert_eq!(world.reconcile().calls, ["update web-1"]);
        assert_eq!(world.reconcile().writes(), [0, 0, 0]);
    }
}

/// Also rule Z7.
#[test]
fn a_placeholder_of_an_earlier_service_is_replaced_not_adopted() {
    let earlier = slice(1, &service("web")).with_slice_ports(&[]).with_owner_uid("earlier");
    let world = world(vec![]).with_slices([earlier]);
    assert_eq!(world.reconcile().calls, ["create web-00001", "delete web-1"]);
    assert_eq!(world.lengths(), [0]);
}

/// Returns a simulated cluster with one pod whose Node has a zone. The pod has an address of each family, and a
/// hostname that no Service uses.
fn one_pod(service: Service) -> World {
    let addresses = ["1.2.3.4", "1234::5678:0000:0000:9abc:def0"];
    let mut world = world(vec![pod(1).with_ips(&addresses).with_hostname("example", "")]).with_service(service);
    world.trigger_time = time("2026-03-04T05:06:07.089Z");
    world.with_nodes(vec![node("node-1", "us-central1-a")])
}

fn check_one_pod(service: Service, addresses: &[(AddressType, &str)], extra_labels: &[(&str, &str)]) {
    let world = one_pod(service);
    world.reconcile();
    match addresses.len() {
        1 => world.check_metrics([1, 1, 1, 1, 0, 1, 0, 0, 1]),
        _ => world.check_metrics([2, 2, 2, 2, 0, 2, 0, 0, 2]),
    }
    let mut labels = TextMap::from([
        ("kubernetes.io/service-name", "web"),
        ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
    ]);
    for &(key, value) in extra_labels {
        labels.insert(key, value);
    }
    let slices = world.memory.slices();
    for (slice, (address_type, address)) in slices.iter().zip(addresses) {
        assert_eq!(slice.address_type, *address_type);
        assert_eq!(slice.metadata.labels, labels);
        let trigger = slice.metadata.annotations.get("endpoints.kubernetes.io/last-change-trigger-time");
        assert_eq!(trigger.expect("an annotation"), "2026-03-04T05:06:07.089Z");
        let [endpoint] = &slice.endpoints[..] else { panic!("one endpoint, not {:?}", slice.endpoints) };
        assert_eq!(endpoint.addresses[..], [Text::from(*address)]);
        assert_eq!(endpoint.conditions, conditions([true, true, false]));
        assert_eq!(endpoint.zone.as_deref(), Some("us-central1-a"));
        assert_eq!(endpoint.node_name.as_deref(), Some("node-1"));
        assert_eq!((endpoint.hostname.as_deref(), &endpoint.hints), (None, &None));
        let target = endpoint.target_ref.as_ref().expect("a target");
        assert_eq!((&target.kind, &*target.namespace, &*target.name), (&TargetKind::Pod, "testing", "pod1"));
        assert_eq!((&*target.uid, &target.resource_version), ("uid-1", &None));
    }
    assert_eq!(slices.len(), addresses.len());
}

fn conditions([ready, serving, terminating]: [bool; 3]) -> Conditions {
    Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) }
}

#[test]
fn one_pod_makes_one_endpoint_in_each_family_of_the_service() {
    const HEADLESS: (&str, &str) = ("service.kubernetes.io/headless", "");
    let v4 = &[(AddressType::IPv4, "1.2.3.4")];
    let v6 = &[(AddressType::IPv6, "1234::5678:0:0:9abc:def0")];
    let web = || service("web");
    check_one_pod(web().with_families(&[]).with_cluster_ip("10.0.0.10"), v4, &[]);
    check_one_pod(web(), v4, &[HEADLESS]);
    check_one_pod(web().with_cluster_ip("1.2.3.4"), v4, &[]);
    check_one_pod(web().with_labels([("foo", "bar")]), v4, &[HEADLESS, ("foo", "bar")]);
    let bad = web().with_cluster_ip("1.2.3.4").with_labels([
        ("kubernetes.io/service-name", "bad"),
        ("endpointslice.kubernetes.io/managed-by", "actor"),
        ("service.kubernetes.io/headless", "invalid"),
    ]);
    check_one_pod(bad, v4, &[]);
    check_one_pod(web().with_families(&[Family::V6]), v6, &[HEADLESS]);
    check_one_pod(web().with_families(&[Family::V6]).with_cluster_ip("1234::5678"), v6, &[]);
    check_one_pod(web().with_families(&[Family::V4, Family::V6]), &[v4.clone(), v6.clone()].concat(), &[HEADLESS]);
}

#[test]
fn published_pods_are_ready_whatever_they_say() {
    let every_third = (0..50).map(|number| if number % 3 == 0 { pod(number).not_ready() } else { pod(number) });
    let world = world(every_third.collect()).with_service(service("web").publishing_not_ready());
    assert_eq!(world.reconcile().writes(), [1, 0, 0]);
    assert_eq!(world.lengths(), [50]);
    assert!(world.memory.slices()[0].endpoints.iter().all(|endpoint| endpoint.conditions.ready == Some(true)));
}

/// Reconciles a Service that has one slice to update and needs one new slice. With `has_delete`, another slice is to be
/// deleted. Returns the simulated cluster and the write calls.
fn going(service: Service, has_delete: bool) -> (World, Vec<String>) {
    let mut slices = vec![slice(1, &service).with_pods(&pods(0..1)).with_label("old", "label")];
    if has_delete {
        let other = slice(2, &service.clone().with_ports(vec![port("web", 81)])).with_pods(&pods(5..6));
        slices.push(other);
    }
    let numbers = if has_delete { 0..101 } else { 0..150 };
    let world = world(pods(numbers)).with_service(service).with_slices(slices);
    let calls = world.reconcile().calls;
    (world, calls)
}

/// Rule Z5: A Service is being deleted
/// Then: The library creates no slice for this Service
#[test]
fn a_service_that_is_being_deleted_gets_no_new_slices() {
    assert_eq!(going(service("web"), false).1, ["create web-00001", "update web-1"]);
    let (world, calls) = going(service("web").deleted(), false);
    assert_eq!(calls, ["update web-1"]);
    assert_eq!(world.plan().families[0].suppressed_creates, 1);
}

#[test]
fn a_recycled_slice_is_an_update_also_while_the_service_is_being_deleted() {
    assert_eq!(going(service("web"), true).1, ["update web-1", "update web-2"]);
    assert_eq!(going(service("web").deleted(), true).1, ["update web-1", "update web-2"]);
}

#[test]
fn a_service_that_is_being_deleted_still_loses_slices() {
    let service = service("web");
    let keep = slice(1, &service).with_pods(&pods(0..2));
    let other = slice(2, &service.clone().with_ports(vec![port("web", 81)])).with_pods(&pods(0..1));
    let world = world(pods(0..1)).with_service(service.deleted()).with_slices([keep, other]);
    assert_eq!(world.reconcile().calls, ["update web-1", "delete web-2"]);
}

/// Also rule Z9.
#[test]
fn pods_on_unknown_nodes_are_left_out_until_they_are_known_unless_published() {
    // Arguments of each case: true if the slice exists, true if the Service publishes pods that are not ready, known
    // Nodes. Then the expected results: calls, number of errors, and metrics.
    let check = |exists: bool, published: bool, known: &[&str], calls: &[&str], errors: usize, metrics: Nine| {
        let service = if published { service("web").publishing_not_ready() } else { service("web") };
        let pods = vec![pod(1), pod(2).on_node("node-2")];
        let existing = exists.then(|| slice(1, &service).with_pods(&pods));
        let nodes = known.iter().map(|name| node(name, "")).collect();
        let world = world(pods).with_service(service).with_slices(existing).with_nodes(nodes);
        let outcome = world.reconcile();
        world.check_metrics(metrics);
        let [_, _, endpoints, ..] = metrics;
        assert_eq!(world.lengths(), [usize::try_from(endpoints).unwrap()]);
        assert_eq!(outcome.calls, calls);
        assert_eq!(outcome.plan.errors().count(), errors);
    };
    check(false, false, &["node-1"], &["create web-00001"], 1, [1, 1, 1, 1, 0, 1, 0, 0, 1]);
    check(false, true, &["node-1"], &["create web-00001"], 0, [1, 1, 2, 2, 0, 1, 0, 0, 1]);
    check(true, false, &["node-1"], &["update web-1"], 1, [1, 1, 1, 0, 1, 0, 1, 0, 1]);
    check(true, true, &[], &[], 0, [1, 1, 2, 0, 0, 0, 0, 0, 0]);
    check(true, true, &["node-1"], &[], 0, [1, 1, 2, 0, 0, 0, 0, 0, 0]);
    check(true, false, &[], &["update web-1"], 2, [1, 1, 0, 0, 2, 0, 1, 0, 1]);
}

#[test]
fn the_error_about_an_unknown_node_names_all_that_it_speaks_of() {
    let world = world(vec![pod(1).on_node("node-9")]);
    let errors: Vec<_> = world.plan().errors().map(|error| error.to_string()).collect();
    assert_eq!(errors, ["skipping Pod pod1 for Service testing/web: Node node-9 Not Found"]);
}

/// Also rule Z6.
#[test]
fn a_service_without_selector_and_an_external_name_keep_their_slices() {
    let check = |change: fn(Service) -> Service| {
        let mut world = reconciled(pods(0..2));
        world.service = change(world.service);
        assert!(world.plan().is_empty());
    };
    check(|service| service.without_selector());
    check(|service| service.becoming_external_name());
    check(|service| service.becoming_external_name().with_ports(vec![]));
    check(|service| service.becoming_external_name().without_selector());
}

/// Rule Z6: A slice belongs to another manager, is being deleted, or belongs to an earlier Service of the same name. Or
/// the Service has no selector or is of type ExternalName
/// Then: The library does not change such a slice, or the slices of such a Service. Exception: the library replaces the
/// slices of an earlier Service
#[test]
fn slices_of_other_managers_and_services_and_terminating_ones_are_not_touched() {
    let web = service("web");
    let mut going = slice(3, &web).with_pods(&pods(7..9));
    going.metadata.deletion_timestamp = time("2026-02-01T00:00:00Z");
    let slices = [
        slice(1, &web).with_pods(&pods(0..2)),
        slice(2, &web).with_pods(&pods(5..6)).with_label("endpointslice.kubernetes.io/managed-by", "somebody"),
        going,
        slice(4, &service("other")).with_pods(&pods(5..7)),
    ];
    assert_eq!(world(pods(0..2)).with_slices(slices).reconcile().writes(), [0, 0, 0]);
}

#[test]
fn of_two_slices_without_use_one_becomes_the_placeholder_and_the_other_goes() {
    let web = service("web");
    let other = |number: usize| slice(number, &service("other"));
    let managed_by =
        |number, manager| slice(number, &web).with_label("endpointslice.kubernetes.io/managed-by", manager);
    let slices = [slice(1, &web), slice(2, &web), managed_by(3, "something-else"), managed_by(4, ""), other(5)];
    let outcome = world(vec![]).with_slices(slices).reconcile();
    assert_eq!(outcome.calls, ["update web-1", "delete web-2"]);
}

#[test]
fn the_trigger_time_is_written_with_changes_and_taken_off_by_changes_without_one() {
    let mut world = world(pods(0..1));
    world.trigger_time = time("2026-01-01T00:00:00Z");
    world.reconcile();
    let annotation = |world: &World| {
        world.memory.slices()[0].metadata.annotations.get("endpoints.kubernetes.io/last-change-trigger-time").cloned()
    };
    assert_eq!(annotation(&world).unwrap(), "2026-01-01T00:00:00Z");
    world.trigger_time = None;
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
    world.pods[0] = pod(0).not_ready();
    world.reconcile();
    assert_eq!(annotation(&world), None);
}

#[test]
fn two_families_of_an_empty_service_each_have_a_placeholder() {
    let dual = service("web").with_families(&[Family::V4, Family::V6]);
    let world = world(pods(0..2)).with_service(dual);
    assert_eq!(world.reconcile().writes(), [2, 0, 0]);
    assert_eq!(world.lengths(), [2, 0]);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

#[test]
fn a_headless_service_without_ports_settles() {
    let mut world = world(pods(0..3)).with_service(service("web").with_ports(vec![]).with_cluster_ip("None"));
    assert_eq!(world.reconcile().writes(), [1, 0, 0]);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
    let as_the_api_answers = |slice: &EndpointSlice| {
        let mut object = serde_json::to_value(slice).unwrap();
        object["ports"] = serde_json::Value::Null;
        serde_json::from_value(object).unwrap()
    };
    let slices: Vec<EndpointSlice> = world.memory.slices().iter().map(|slice| as_the_api_answers(slice)).collect();
    world = world.with_slices(slices);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

#[test]
fn ended_pods_leave_and_the_last_one_leaves_a_placeholder() {
    let mut world = reconciled(pods(0..1));
    world.pods[0] = pod(0).in_phase(Phase::Failed);
    assert_eq!(world.reconcile().writes(), [0, 1, 0]);
    assert_eq!(world.lengths(), [0]);
    assert!(world.memory.slices()[0].ports.is_empty());
}
