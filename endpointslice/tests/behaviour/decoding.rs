//! Tests of decoding: every stored object is accepted, and encoded objects decode to the same value.

use crate::builders::{BuildSlice as _, node, pod, pods, service, slice};
use endpointslice::model::{AddressType, EndpointSlice, Node, Phase, Pod, Protocol, Service, TargetPort};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

fn read<T: DeserializeOwned>(object: Value) -> T {
    from_value(object).expect("an object that can be read")
}

#[test]
fn null_reads_as_absent() {
    let nothing = json!({
        "name": null, "generateName": null, "namespace": null, "uid": null, "resourceVersion": null, "generation": null,
        "creationTimestamp": null, "deletionTimestamp": null, "labels": null, "annotations": null,
        "ownerReferences": null, "finalizers": null,
    });
    let pod: Pod = read(json!({
        "metadata": nothing,
        "spec": {"nodeName": null, "hostname": null, "subdomain": null, "containers": null, "initContainers": null},
        "status": {"phase": null, "podIP": null, "podIPs": null, "conditions": null},
    }));
    assert_eq!(pod, Pod::default());
    let service: Service = read(json!({
        "metadata": nothing,
        "spec": {
            "type": null, "clusterIP": null, "ipFamilies": null, "selector": null, "ports": null,
            "publishNotReadyAddresses": null, "trafficDistribution": null,
        },
    }));
    assert_eq!(service, Service::default());
    let slice: EndpointSlice = read(json!({
        "metadata": nothing, "addressType": "IPv4", "endpoints": null, "ports": null,
    }));
    assert_eq!(slice, EndpointSlice::default());
    let slice: EndpointSlice = read(json!({
        "metadata": nothing, "addressType": null,
        "endpoints": [{
            "addresses": null, "conditions": null, "hostname": null, "targetRef": null, "nodeName": null, "zone": null,
            "hints": null,
        }, {
            "addresses": [], "conditions": {"ready": null}, "targetRef": {"kind": null, "name": null},
            "hints": {"forZones": null, "forNodes": null},
        }],
        "ports": [{"name": null, "port": null, "protocol": null, "appProtocol": null}],
    }));
    assert_eq!((slice.endpoints.len(), slice.ports.len()), (2, 1));
    let node: Node = read(json!({
        "metadata": nothing,
        "status": {"conditions": [{"type": null, "status": null, "lastTransitionTime": null}], "allocatable": {"cpu": null}},
    }));
    assert_eq!(node, Node::default());
}

#[test]
fn values_that_are_not_known_yet_are_read() {
    let pod: Pod = from_value(json!({
        "metadata": {"creationTimestamp": "no time", "unknown": {"deep": [1, 2]}},
        "spec": {"containers": [{"ports": [{"containerPort": 1, "protocol": "QUIC"}]}]},
        "status": {"phase": "Sleeping", "conditions": [{"type": "Ready", "status": "Perhaps"}]},
    }))
    .unwrap();
    assert_eq!((pod.status.phase, pod.status.readiness.is_ready), (Phase::Other, false));
    assert_eq!(pod.metadata.creation_timestamp, None);
    assert_eq!(pod.spec.containers[0].ports[0].protocol, Protocol::Other("QUIC".into()));
    let slice: EndpointSlice = from_value(json!({"metadata": {}, "addressType": "FQDN"})).unwrap();
    assert_eq!(slice.address_type, AddressType::Other("FQDN".into()));
}

#[test]
fn a_target_port_is_a_number_or_a_name() {
    let service: Service = from_value(json!({
        "spec": {"ports": [{"targetPort": 8080}, {"targetPort": "http"}, {}]},
    }))
    .unwrap();
    let targets: Vec<_> = service.spec.ports.into_iter().map(|port| port.target_port).collect();
    assert_eq!(targets, [TargetPort::Number(8080), TargetPort::Name("http".into()), TargetPort::Number(0)]);
}

#[test]
fn what_is_written_reads_as_the_same() {
    fn check<T: DeserializeOwned + serde::Serialize + PartialEq + std::fmt::Debug>(value: &T) {
        let written = serde_json::to_string(value).unwrap();
        assert_eq!(serde_json::from_str::<T>(&written).unwrap(), *value);
    }
    check(&pod(1));
    check(&service("web"));
    check(&node("node-1", "a"));
    check(&slice(1, &service("web")).with_pods(&pods(0..3)));
}

#[test]
fn a_slice_is_written_as_a_whole_object() {
    let written = serde_json::to_value(slice(1, &service("web"))).unwrap();
    assert_eq!((&written["apiVersion"], &written["kind"]), (&json!("discovery.k8s.io/v1"), &json!("EndpointSlice")));
    assert_eq!((&written["addressType"], &written["endpoints"]), (&json!("IPv4"), &json!([])));
    assert_eq!(written["ports"], json!([{"name": "web", "port": 80, "protocol": "TCP"}]));
}
