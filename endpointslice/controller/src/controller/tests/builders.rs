//! Builders of test objects with default values, so that a test sets only the fields that matter.

use crate::Object;
use endpointslice::model::{
    AddressType, ClusterIpFamily, Container, ContainerPort, Endpoint, EndpointPort, EndpointSlice, Metadata, Node,
    OwnerReference, Phase, Pod, PodIp, Protocol, Service, ServicePort, ServiceType, TargetPort, TargetRef,
};
use endpointslice::names;
use endpointslice::{Text, TextMap};
use std::sync::Arc;

/// Namespace of all test objects.
pub(crate) const NAMESPACE: &str = "testing";
/// Creation time of the Services.
pub(crate) const CREATED: &str = "2026-01-01T00:00:00Z";

pub(crate) fn time(text: &str) -> Option<jiff::Timestamp> {
    Some(text.parse().expect("a time of a test"))
}

fn metadata(name: &str, namespace: &str) -> Metadata {
    let uid = format!("uid-of-{name}").into();
    Metadata { name: name.into(), namespace: namespace.into(), uid, ..Metadata::default() }
}

/// Returns an IPv4 Service with address 10.0.0.10, selector foo=bar and a TCP port. The port has the name of the
/// Service and targets port 80 of the pods.
pub(crate) fn service(name: &str) -> Service {
    let mut service = Service { metadata: metadata(name, NAMESPACE), ..Service::default() };
    service.metadata.creation_timestamp = time(CREATED);
    service.spec.cluster_ip = "10.0.0.10".into();
    service.spec.ip_families = vec![ClusterIpFamily::IPv4];
    service.selecting([("foo", "bar")]).serving(vec![port(name, 80)])
}

/// Returns a TCP port of a Service that targets a port number of the pods.
pub(crate) fn port(name: &str, target: i32) -> ServicePort {
    ServicePort { name: name.into(), port: 80, target_port: TargetPort::Number(target), ..ServicePort::default() }
}

/// Returns a TCP port of a Service that targets a container port by name.
pub(crate) fn named_port(name: &str, target: &str) -> ServicePort {
    ServicePort { target_port: TargetPort::Name(target.into()), ..port(name, 0) }
}

/// Builder methods for objects of any kind.
pub(crate) trait Build: Sized {
    fn metadata_mut(&mut self) -> &mut Metadata;

    fn in_namespace(mut self, namespace: &str) -> Self {
        self.metadata_mut().namespace = namespace.into();
        self
    }

    fn with_uid(mut self, uid: &str) -> Self {
        self.metadata_mut().uid = uid.into();
        self
    }

    fn labelled<const N: usize>(mut self, labels: [(&str, &str); N]) -> Self {
        self.metadata_mut().labels = TextMap::from(labels);
        self
    }

    fn with_label(mut self, key: &str, value: &str) -> Self {
        self.metadata_mut().labels.insert(key, value);
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        self.metadata_mut().annotations.insert(key, value);
        self
    }

    fn terminating(mut self) -> Self {
        self.metadata_mut().deletion_timestamp = time("2026-02-01T00:00:00Z");
        self
    }
}

impl Build for Service {
    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

impl Build for Pod {
    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

impl Build for Node {
    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

impl Build for EndpointSlice {
    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

/// Builder methods for Services.
pub(crate) trait BuildService: Sized {
    fn selecting<const N: usize>(self, selector: [(&str, &str); N]) -> Self;
    fn serving(self, ports: Vec<ServicePort>) -> Self;
    fn of_families(self, families: &[ClusterIpFamily]) -> Self;
    fn headless(self) -> Self;
    fn external_name(self) -> Self;
    fn publishing_not_ready(self) -> Self;
    fn preferring(self, traffic_distribution: &str) -> Self;
}

impl BuildService for Service {
    fn selecting<const N: usize>(mut self, selector: [(&str, &str); N]) -> Self {
        self.spec.selector = TextMap::from(selector);
        self
    }

    fn serving(mut self, ports: Vec<ServicePort>) -> Self {
        self.spec.ports = ports;
        self
    }

    fn of_families(mut self, families: &[ClusterIpFamily]) -> Self {
        self.spec.ip_families = families.to_vec();
        self
    }

    fn headless(mut self) -> Self {
        self.spec.cluster_ip = "None".into();
        self
    }

    fn external_name(mut self) -> Self {
        self.spec.r#type = ServiceType::ExternalName;
        self
    }

    fn publishing_not_ready(mut self) -> Self {
        self.spec.publish_not_ready_addresses = true;
        self
    }

    fn preferring(mut self, traffic_distribution: &str) -> Self {
        self.spec.traffic_distribution = Some(traffic_distribution.into());
        self
    }
}

/// Returns a ready pod on node-1 with label foo=bar. Pod 7 has the address 10.1.0.7. The third byte of the address
/// grows after every 250 pods: pod 250 has the address 10.1.1.0.
pub(crate) fn pod(number: usize) -> Pod {
    let mut pod = Pod { metadata: metadata(&format!("pod{number}"), NAMESPACE), ..Pod::default() };
    pod.metadata.labels = TextMap::from([("foo", "bar")]);
    pod.spec.node_name = "node-1".into();
    pod.spec.containers = vec![Container::default()];
    pod.status.phase = Phase::Running;
    pod.ready().with_ips(&[&format!("10.1.{}.{}", number / 250, number % 250)])
}

/// Builder methods for pods.
pub(crate) trait BuildPod: Sized {
    fn with_ips(self, addresses: &[&str]) -> Self;
    fn ready(self) -> Self;
    fn not_ready(self) -> Self;
    fn changed_at(self, time: &str) -> Self;
    fn in_phase(self, phase: Phase) -> Self;
    fn on_node(self, node: &str) -> Self;
    fn opening(self, name: &str, number: i32) -> Self;
}

impl BuildPod for Pod {
    fn with_ips(mut self, addresses: &[&str]) -> Self {
        self.status.pod_ip = addresses.first().copied().unwrap_or_default().into();
        self.status.pod_ips = addresses.iter().map(|&address| PodIp { ip: address.into() }).collect();
        self
    }

    fn ready(mut self) -> Self {
        self.status.readiness.is_ready = true;
        self
    }

    fn not_ready(mut self) -> Self {
        self.status.readiness.is_ready = false;
        self
    }

    fn changed_at(mut self, at: &str) -> Self {
        self.status.readiness.since = time(at);
        self
    }

    fn in_phase(mut self, phase: Phase) -> Self {
        self.status.phase = phase;
        self
    }

    fn on_node(mut self, node: &str) -> Self {
        self.spec.node_name = node.into();
        self
    }

    fn opening(mut self, name: &str, number: i32) -> Self {
        let port = ContainerPort { name: name.into(), container_port: number, protocol: Protocol::Tcp };
        self.spec.containers.push(Container { ports: vec![port] });
        self
    }
}

/// Returns a ready Node with this number of CPUs. The Node has a zone, unless `zone` is "".
pub(crate) fn node(name: &str, zone: &str, cpu: &str) -> Node {
    let mut node = Node { metadata: metadata(name, ""), ..Node::default() };
    if !zone.is_empty() {
        node.metadata.labels.insert(names::LABEL_ZONE, zone);
    }
    node.status.readiness.is_ready = true;
    node.status.allocatable.cpu = Some(Text::from(cpu)).filter(|cpu| !cpu.is_empty());
    node
}

/// Returns an IPv4 slice without endpoints, as kube-controller-manager creates it for a Service with numeric target
/// ports.
pub(crate) fn slice(name: &str, service: &Service) -> EndpointSlice {
    let ports = service.spec.ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        port: match port.target_port {
            TargetPort::Number(number) => Some(number),
            TargetPort::Name(_) => None,
        },
        protocol: Some(port.protocol.clone()),
        app_protocol: None,
    });
    let mut slice = EndpointSlice {
        metadata: metadata(name, &service.metadata.namespace),
        address_type: AddressType::IPv4,
        endpoints: Vec::new(),
        ports: ports.collect(),
    };
    slice.metadata.labels = service.metadata.labels.clone();
    slice.metadata.labels.insert(names::LABEL_SERVICE_NAME, &service.metadata.name);
    slice.metadata.labels.insert(names::LABEL_MANAGED_BY, names::CONTROLLER_NAME);
    if service.spec.is_headless() {
        slice.metadata.labels.insert(names::LABEL_HEADLESS, "");
    }
    slice.metadata.owner_references = vec![OwnerReference {
        api_version: "v1".into(),
        kind: "Service".into(),
        name: service.metadata.name.clone(),
        uid: service.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
    slice
}

/// Builder methods for slices.
pub(crate) trait BuildSlice: Sized {
    fn holding<const N: usize>(self, pods: [&Pod; N]) -> Self;
    fn without_ports(self) -> Self;
    fn of_type(self, address_type: &str) -> Self;
    fn owned_by(self, uid: &str) -> Self;
}

impl BuildSlice for EndpointSlice {
    /// Sets endpoints for these pods, without zones.
    fn holding<const N: usize>(mut self, pods: [&Pod; N]) -> Self {
        self.endpoints = pods.into_iter().map(endpoint).collect();
        self
    }

    fn without_ports(mut self) -> Self {
        self.ports.clear();
        self
    }

    fn of_type(mut self, address_type: &str) -> Self {
        self.address_type = address_type.into();
        self
    }

    fn owned_by(mut self, uid: &str) -> Self {
        self.metadata.owner_references[0].uid = uid.into();
        self
    }
}

fn endpoint(pod: &Pod) -> Endpoint {
    let target = TargetRef {
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..TargetRef::default()
    };
    let mut endpoint = Endpoint {
        addresses: pod.status.pod_ips.iter().map(|ip| ip.ip.clone()).collect(),
        target_ref: Some(Arc::new(target)),
        node_name: Some(pod.spec.node_name.clone()),
        ..Endpoint::default()
    };
    let (serving, terminating) = (pod.status.readiness.is_ready, pod.metadata.is_terminating());
    endpoint.conditions.ready = Some(serving && !terminating);
    endpoint.conditions.serving = Some(serving);
    endpoint.conditions.terminating = Some(terminating);
    endpoint
}

impl From<Service> for Object {
    fn from(service: Service) -> Self {
        Self::Service(service)
    }
}

impl From<Pod> for Object {
    fn from(pod: Pod) -> Self {
        Self::Pod(pod)
    }
}

impl From<Node> for Object {
    fn from(node: Node) -> Self {
        Self::Node(node)
    }
}
