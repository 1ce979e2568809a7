//! Tests of the ports of a Service at a pod, and of the comparison of lists of ports.

use crate::builders::{BuildPod as _, BuildService as _, backend, container_port, named_port, pod, port, service};
use endpointslice::model::{ContainerPort, EndpointPort, Pod, Protocol, ServicePort};
use endpointslice::ports::{PortKey, PortList, find_port};

fn udp(name: &str, number: i32) -> ContainerPort {
    ContainerPort { protocol: Protocol::Udp, ..container_port(name, number) }
}

fn speaking(port: ServicePort, app_protocol: &str) -> ServicePort {
    ServicePort { app_protocol: Some(app_protocol.into()), ..port }
}

/// Returns number and application protocol of each port that a Service with these `ports` has at `pod`.
fn served(ports: Vec<ServicePort>, pod: &Pod) -> Vec<(Option<i32>, Option<String>)> {
    let backend = backend(pod, &service("web").with_ports(ports)).expect("a backend");
    backend.ports.iter().map(|port| (port.port, port.app_protocol.as_ref().map(ToString::to_string))).collect()
}

#[test]
fn a_number_leads_there_whatever_the_containers_open() {
    assert_eq!(find_port(&pod(1), &port("p", 80)), Some(80));
    let opened = pod(1).with_container(vec![container_port("q", 8080)]);
    assert_eq!(find_port(&opened, &port("p", 80)), Some(80));
}

/// Rule Z10: A Service refers to a port of its pods by name
/// Then: The library uses the first port of the pod with this name and protocol, in containers and in sidecars
#[test]
fn a_name_leads_to_the_first_container_port_of_that_name_and_protocol() {
    let check = |pod: Pod, expected: Option<i32>| assert_eq!(find_port(&pod, &named_port("p", "http")), expected);
    check(pod(1), None);
    check(pod(1).with_container(vec![container_port("p", 80)]), None);
    check(pod(1).with_container(vec![container_port("p", 80), container_port("http", 8080)]), Some(8080));
    let first = || pod(1).with_container(vec![container_port("p", 80)]);
    check(first().with_container(vec![container_port("http", 8080)]), Some(8080));
    check(
        first().with_container(vec![container_port("http", 80)]).with_container(vec![container_port("http", 81)]),
        Some(80),
    );
    check(pod(1).with_container(vec![udp("http", 80)]), None);
    check(pod(1).with_container(vec![udp("http", 80), container_port("http", 81)]), Some(81));
    check(pod(1).with_container(vec![container_port("http", -1)]), Some(-1));
}

/// Also rule Z10.
#[test]
fn sidecars_serve_ports_that_no_container_has_and_other_init_containers_none() {
    let check = |pod: Pod, expected: Option<i32>| assert_eq!(find_port(&pod, &named_port("p", "http")), expected);
    let sidecar = || pod(1).with_init_container("Always", vec![container_port("http", 90)]);
    check(sidecar(), Some(90));
    check(pod(1).with_init_container("", vec![container_port("http", 90)]), None);
    check(pod(1).with_init_container("Never", vec![container_port("http", 90)]), None);
    let with_two =
        sidecar().with_container(vec![container_port("http", 81)]).with_container(vec![container_port("http", 82)]);
    check(with_two, Some(81));
}

#[test]
fn the_ports_of_the_service_come_in_its_order_with_what_is_spoken_over_them() {
    assert_eq!(
        served(vec![speaking(port("http", 80), "example.com/custom")], &pod(1)),
        [(Some(80), Some("example.com/custom".into()))]
    );
    let both = vec![port("http", 80), speaking(named_port("https", "https"), "https")];
    let opened = pod(1).with_container(vec![container_port("https", 443)]);
    assert_eq!(served(both, &opened), [(Some(80), None), (Some(443), Some("https".into()))]);
    let beside = pod(1)
        .with_container(vec![container_port("web", 8080)])
        .with_init_container("Always", vec![container_port("stats", 8090)]);
    let two = || vec![named_port("web", "web"), named_port("stats", "stats")];
    assert_eq!(served(two(), &beside), [(Some(8080), None), (Some(8090), None)]);
    let same = beside.with_container(vec![container_port("stats", 8091)]);
    assert_eq!(served(two(), &same), [(Some(8080), None), (Some(8091), None)]);
}

#[test]
fn a_port_that_a_pod_does_not_have_is_left_out_of_its_list() {
    assert_eq!(served(vec![named_port("p", "http"), port("q", 9090)], &pod(1)), [(Some(9090), None)]);
    assert_eq!(served(vec![], &pod(1)), []);
}

#[test]
fn lists_of_ports_are_the_same_in_any_order_and_null_is_empty() {
    let port = |name: Option<&str>, number: i32| EndpointPort {
        name: name.map(Into::into),
        port: Some(number),
        protocol: Some(Protocol::Tcp),
        app_protocol: None,
    };
    let key = |ports: &[EndpointPort]| PortKey::from(ports);
    let (one, other) = (port(Some("a"), 1), port(Some("b"), 2));
    assert_eq!(key(&[one.clone(), other.clone()]), key(&[other, one.clone()]));
    assert_eq!(key(&[]), PortKey::from(&PortList::default()));
    for different in [
        port(None, 1),
        port(Some(""), 1),
        port(Some("a"), 2),
        EndpointPort { protocol: Some(Protocol::Udp), ..one.clone() },
        EndpointPort { protocol: None, ..one.clone() },
        EndpointPort { app_protocol: Some("http".into()), ..one.clone() },
        EndpointPort { port: None, ..one.clone() },
    ] {
        assert_ne!(key(std::slice::from_ref(&one)), key(&[different]));
    }
    assert_ne!(key(std::slice::from_ref(&one)), key(&[one.clone(), one]));
}
