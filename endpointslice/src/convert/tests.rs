//! Tests that an object of k8s-openapi and its JSON give the same value of the model.

use crate::model::{EndpointSlice, Node, Pod, Service};
use k8s_openapi::api::core::v1;
use k8s_openapi::api::discovery::v1 as discovery;
use serde_json::{Value, from_value, json};

fn metadata() -> Value {
    json!({
        "name": "web-1", "generateName": "web-", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3,
        "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:06Z",
        "labels": {"app": "web"}, "annotations": {"note": "1"}, "finalizers": ["example.com/held"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s", "controller": true}],
        "managedFields": [],
    })
}

#[test]
fn a_pod_is_the_same_by_either_way() {
    let object = json!({
        "metadata": metadata(),
        "spec": {
            "nodeName": "node-1", "hostname": "first", "subdomain": "web",
            "containers": [{"name": "c", "ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]}],
            "initContainers": [{"name": "i", "restartPolicy": "Always", "ports": [{"containerPort": 90}]}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:07Z"},
            ],
        },
    });
    let large: v1::Pod = from_value(object.clone()).unwrap();
    let pod: Pod = from_value(object).unwrap();
    assert!(pod.status.readiness.is_ready && pod.metadata.is_terminating());
    assert_eq!(Pod::from(&large), pod);
    assert_eq!(Pod::from(&v1::Pod::default()), Pod::default());
}

#[test]
fn a_node_is_the_same_by_either_way() {
    let object = json!({
        "metadata": metadata(),
        "status": {"allocatable": {"cpu": "7910m", "memory": "1Gi"}, "conditions": [{"type": "Ready", "status": "False"}]},
    });
    let large: v1::Node = from_value(object.clone()).unwrap();
    let node: Node = from_value(object).unwrap();
    assert_eq!(node.status.allocatable.cpu.as_deref(), Some("7910m"));
    assert_eq!(Node::from(&large), node);
}

#[test]
fn a_service_is_the_same_by_either_way() {
    for kind in ["LoadBalancer", "ExternalName"] {
        let object = json!({
            "metadata": metadata(),
            "spec": {
                "type": kind, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4", "IPv6"], "selector": {"app": "web"},
                "publishNotReadyAddresses": true, "trafficDistribution": "PreferSameZone",
                "ports": [
                    {"name": "a", "port": 80, "protocol": "TCP", "targetPort": "http", "appProtocol": "http"},
                    {"name": "b", "port": 53, "protocol": "UDP", "targetPort": 5353},
                ],
            },
        });
        let large: v1::Service = from_value(object.clone()).unwrap();
        let service: Service = from_value(object).unwrap();
        assert_eq!(service.spec.is_external_name(), kind == "ExternalName");
        assert_eq!(Service::from(&large), service);
    }
}

#[test]
fn a_slice_is_the_same_by_either_way_and_back() {
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata(), "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.0.0.1", "10.0.0.2"], "hostname": "first", "nodeName": "node-1", "zone": "a",
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u", "resourceVersion": "5"},
                "hints": {"forZones": [{"name": "a"}], "forNodes": [{"name": "node-1"}]},
            },
            {"addresses": ["10.0.0.3"], "conditions": {}},
        ],
        "ports": [{"name": "", "port": 80, "protocol": "TCP", "appProtocol": "http"}, {}],
    });
    let large: discovery::EndpointSlice = from_value(object.clone()).unwrap();
    let slice: EndpointSlice = from_value(object).unwrap();
    assert_eq!(slice.endpoints[0].hints.as_ref().unwrap().for_nodes, ["node-1"]);
    assert_eq!(EndpointSlice::from(&large), slice);
    let back = discovery::EndpointSlice::from(&slice);
    assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&slice).unwrap());
    assert_eq!(EndpointSlice::from(&back), slice);
}
