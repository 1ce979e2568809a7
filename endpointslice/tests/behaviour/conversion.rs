//! Tests of the conversion from a pod to an endpoint.

use crate::builders::{BuildPod as _, BuildService as _, backend, node, pod, service};
use endpointslice::NodeZones;
use endpointslice::address::Family;
use endpointslice::backend::is_eligible;
use endpointslice::model::{Conditions, Endpoint, Phase, Pod, Service, TargetRef};
use endpointslice::packer::Item as _;
use std::sync::Arc;

fn endpoint(pod: &Pod, service: &Service) -> Endpoint {
    backend(pod, service).and_then(|backend| backend.endpoint(Family::V4)).expect("an endpoint")
}

/// Rule Z9: A pod is not ready, has ended, is being deleted, or its Node is not known
/// Then: A slice shows a pod as ready only if the pod is ready and not being deleted. Exception: if the Service
/// publishes pods that are not ready, a slice shows every pod as ready. The library leaves out a pod that has ended.
/// The library also leaves out a pod whose Node is not known, unless the Service publishes pods that are not ready
#[test]
fn conditions_follow_readiness_and_deletion_and_what_the_service_publishes() {
    let check = |pod: Pod, published: bool, [ready, serving, terminating]: [bool; 3]| {
        let service = if published { service("web").publishing_not_ready() } else { service("web") };
        let expected = Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) };
        assert_eq!(endpoint(&pod, &service).conditions, expected);
    };
    check(pod(1), false, [true, true, false]);
    check(pod(1), true, [true, true, false]);
    check(pod(1).not_ready(), false, [false, false, false]);
    check(pod(1).not_ready(), true, [true, false, false]);
    check(pod(1).terminating(), false, [false, true, true]);
    check(pod(1).not_ready().terminating(), false, [false, false, true]);
    check(pod(1).terminating(), true, [true, true, true]);
}

#[test]
fn an_endpoint_has_the_zone_of_its_node_and_the_addresses_of_its_family() {
    let service = service("web");
    let nodes: NodeZones = [&node("node-1", "zone-a")].into_iter().collect();
    let pod = pod(1).with_ips(&["1.2.3.4", "1234::5678", "1.2.3.5"]);
    let backend = endpointslice::backend::PodBackends::new(&service, &nodes).convert(&pod).unwrap();
    let four = backend.endpoint(Family::V4).unwrap();
    assert_eq!(four.zone.as_deref(), Some("zone-a"));
    assert_eq!(four.addresses.join(" "), "1.2.3.4 1.2.3.5");
    assert_eq!(backend.endpoint(Family::V6).unwrap().addresses.join(" "), "1234::5678");
    assert_eq!(endpoint(&pod, &service).zone, None);
}

/// Addresses are sorted as text, as in kube-controller-manager, so `10.1.0.10` comes before `10.1.0.9`.
#[test]
fn two_addresses_of_one_family_are_in_the_same_order_however_the_pod_names_them() {
    let service = service("web");
    let check = |ips: &[&str]| {
        let backend = backend(&pod(1).with_ips(ips), &service).expect("a backend");
        let shown = [Family::V4, Family::V6].map(|family| backend.addresses(family).join(" "));
        assert_eq!(shown, ["10.1.0.10 10.1.0.9", "2001:db8::1 2001:db8::2"], "{ips:?}");
    };
    check(&["10.1.0.9", "10.1.0.10", "2001:db8::1", "2001:db8::2"]);
    check(&["2001:db8::2", "10.1.0.10", "2001:db8::1", "10.1.0.9"]);
}

#[test]
fn addresses_in_another_order_are_no_reason_to_write_a_slice() {
    let ips = ["10.1.0.9", "10.1.0.10"];
    let mut world = crate::world::reconciled(vec![pod(1).with_ips(&ips)]);
    let mut slice = (*world.memory.slices()[0]).clone();
    let unsorted = ips.iter().map(|ip| endpointslice::Text::from(*ip));
    slice.endpoints[0].addresses = unsorted.collect();
    world = world.with_slices([slice]);
    assert_eq!(world.reconcile().writes(), [0, 0, 0]);
}

#[test]
fn only_the_service_that_a_pod_names_as_subdomain_gives_it_a_hostname() {
    let check = |pod: Pod, expected: Option<&str>| {
        assert_eq!(endpoint(&pod, &service("web")).hostname.as_deref(), expected);
    };
    check(pod(1).with_hostname("first", "web"), Some("first"));
    check(pod(1).with_hostname("", "web"), None);
    check(pod(1).with_hostname("first", "other"), None);
    let mut elsewhere = service("web");
    elsewhere.metadata.namespace = "elsewhere".into();
    assert_eq!(endpoint(&pod(1).with_hostname("first", "web"), &elsewhere).hostname, None);
}

/// Also rule Z9.
#[test]
fn pods_that_ended_or_have_no_address_are_no_endpoints() {
    let check = |pod: Pod, expected: bool| assert_eq!(is_eligible(&pod), expected);
    check(pod(1).in_phase(Phase::Failed), false);
    check(pod(1).in_phase(Phase::Succeeded), false);
    check(pod(1).with_ips(&[]), false);
    check(pod(1).in_phase(Phase::Pending), true);
    check(pod(1).in_phase(Phase::Other), true);
    check(pod(1), true);
    let mut only_list = pod(1);
    only_list.status.pod_ip = "".into();
    check(only_list, true);
    check(pod(1).terminating(), true);
}

#[test]
fn a_pod_with_the_old_single_address_only_serves_its_ports_but_is_no_endpoint() {
    let mut old = pod(1);
    old.status.pod_ips.clear();
    assert!(is_eligible(&old));
    assert_eq!(backend(&old, &service("web")).unwrap().endpoint(Family::V4), None);
}

fn target(endpoint: &mut Endpoint) -> &mut TargetRef {
    Arc::make_mut(endpoint.target_ref.as_mut().expect("a target"))
}

/// Also rule Z3.
#[test]
fn an_endpoint_is_rewritten_for_changes_that_readers_see() {
    let check = |change: fn(&mut Endpoint), same: bool| {
        let mut existing = endpoint(&pod(1), &service("web"));
        target(&mut existing).resource_version = Some("1".into());
        let mut wanted = existing.clone();
        change(&mut wanted);
        assert_eq!(existing.key() == wanted.key() && existing.stands_for(&wanted), same);
        assert_eq!(wanted.key() == existing.key() && wanted.stands_for(&existing), same);
    };
    check(|_| (), true);
    check(|it| it.node_name = Some("node-2".into()), false);
    check(|it| it.zone = Some("zone-b".into()), false);
    check(|it| it.conditions.ready = Some(false), false);
    check(|it| it.conditions.serving = None, false);
    check(|it| it.conditions.serving = Some(false), false);
    check(|it| it.conditions.terminating = Some(true), false);
    check(|it| target(it).name = "pod2".into(), false);
    check(|it| target(it).uid = "another".into(), false);
    check(|it| target(it).resource_version = Some("2".into()), true);
    check(|it| target(it).resource_version = None, true);
    check(|it| it.target_ref = None, false);
}
