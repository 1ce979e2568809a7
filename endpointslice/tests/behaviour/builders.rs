//! Builders of test objects: a test sets the fields that matter, all other fields have default values.

use endpointslice::address::Family;
use endpointslice::model::{
    AddressType, ClusterIpFamily, Container, ContainerPort, Endpoint, EndpointPort, EndpointSlice, InitContainer,
    Metadata, Node, OwnerReference, Phase, Pod, PodIp, Protocol, Service, ServicePort, ServiceType, TargetPort,
};
use endpointslice::plan::{AssignHints, Draft};
use endpointslice::{Backend, Config, NodeZones, PlanRequest, SliceTemplate, TextMap};

pub(crate) const NAMESPACE: &str = "testing";

pub(crate) fn time(text: &str) -> Option<jiff::Timestamp> {
    Some(text.parse().expect("a time of a test"))
}

/// Returns a headless IPv4 Service with one named port, target port 80 and the selector foo=bar.
pub(crate) fn service(name: &str) -> Service {
    let metadata = Metadata {
        name: name.into(),
        namespace: NAMESPACE.into(),
        uid: format!("{NAMESPACE}-{name}").into(),
        creation_timestamp: time("2026-01-01T00:00:00Z"),
        ..Metadata::default()
    };
    let mut service = Service { metadata, ..Service::default() };
    service.spec.selector = TextMap::from([("foo", "bar")]);
    service.spec.ip_families = vec![ClusterIpFamily::IPv4];
    service.with_ports(vec![port(name, 80)])
}

/// Returns a TCP port with a numeric target port.
pub(crate) fn port(name: &str, target: i32) -> ServicePort {
    ServicePort { name: name.into(), port: 80, target_port: TargetPort::Number(target), ..ServicePort::default() }
}

/// Returns a TCP port with a named target port.
pub(crate) fn named_port(name: &str, target: &str) -> ServicePort {
    ServicePort { target_port: TargetPort::Name(target.into()), ..port(name, 0) }
}

pub(crate) trait BuildService: Sized {
    fn with_ports(self, ports: Vec<ServicePort>) -> Self;
    fn with_families(self, families: &[Family]) -> Self;
    fn with_cluster_ip(self, address: &str) -> Self;
    fn with_labels<const N: usize>(self, labels: [(&str, &str); N]) -> Self;
    fn publishing_not_ready(self) -> Self;
    fn deleted(self) -> Self;
    fn without_selector(self) -> Self;
    fn with_traffic_distribution(self, value: Option<&str>) -> Self;
    fn with_topology_hints(self, mode: &str) -> Self;
    fn becoming_external_name(self) -> Self;
}

impl BuildService for Service {
    fn with_ports(mut self, ports: Vec<ServicePort>) -> Self {
        self.spec.ports = ports;
        self
    }

    fn with_families(mut self, families: &[Family]) -> Self {
        let family = |family: &Family| match family {
            Family::V4 => ClusterIpFamily::IPv4,
            Family::V6 => ClusterIpFamily::IPv6,
        };
        self.spec.ip_families = families.iter().map(family).collect();
        self
    }

    fn with_cluster_ip(mut self, address: &str) -> Self {
        self.spec.cluster_ip = address.into();
        self
    }

    fn with_labels<const N: usize>(mut self, labels: [(&str, &str); N]) -> Self {
        self.metadata.labels = TextMap::from(labels);
        self
    }

    fn publishing_not_ready(mut self) -> Self {
        self.spec.publish_not_ready_addresses = true;
        self
    }

    fn deleted(mut self) -> Self {
        self.metadata.deletion_timestamp = time("2026-02-01T00:00:00Z");
        self
    }

    fn without_selector(mut self) -> Self {
        self.spec.selector = TextMap::new();
        self
    }

    fn with_traffic_distribution(mut self, value: Option<&str>) -> Self {
        self.spec.traffic_distribution = value.map(Into::into);
        self
    }

    /// Sets the topology annotation under its old name, which has priority over the new one.
    fn with_topology_hints(mut self, mode: &str) -> Self {
        self.metadata.annotations.insert("service.kubernetes.io/topology-aware-hints", mode);
        self
    }

    fn becoming_external_name(mut self) -> Self {
        self.spec.r#type = ServiceType::ExternalName;
        self
    }
}

/// Returns a ready pod on node-1. Pods with different numbers have different names, UIDs and IPv4 addresses.
pub(crate) fn pod(number: usize) -> Pod {
    let metadata = Metadata {
        name: format!("pod{number}").into(),
        namespace: NAMESPACE.into(),
        uid: format!("uid-{number}").into(),
        labels: TextMap::from([("foo", "bar")]),
        ..Metadata::default()
    };
    let mut pod = Pod { metadata, ..Pod::default() };
    pod.spec.node_name = "node-1".into();
    pod.spec.containers = vec![Container::default()];
    pod.status.phase = Phase::Running;
    pod.status.readiness.is_ready = true;
    pod.with_ips(&[&format!("10.1.{}.{}", number / 250, 1 + number % 250)])
}

/// Returns pods with these numbers.
pub(crate) fn pods(numbers: impl IntoIterator<Item = usize>) -> Vec<Pod> {
    numbers.into_iter().map(pod).collect()
}

pub(crate) trait BuildPod: Sized {
    fn with_ips(self, addresses: &[&str]) -> Self;
    fn not_ready(self) -> Self;
    fn terminating(self) -> Self;
    fn in_phase(self, phase: Phase) -> Self;
    fn on_node(self, node: &str) -> Self;
    fn with_hostname(self, hostname: &str, subdomain: &str) -> Self;
    fn with_container(self, ports: Vec<ContainerPort>) -> Self;
    fn with_init_container(self, restart_policy: &str, ports: Vec<ContainerPort>) -> Self;
}

impl BuildPod for Pod {
    fn with_ips(mut self, addresses: &[&str]) -> Self {
        self.status.pod_ip = addresses.first().copied().unwrap_or_default().into();
        self.status.pod_ips = addresses.iter().map(|&address| PodIp { ip: address.into() }).collect();
        self
    }

    fn not_ready(mut self) -> Self {
        self.status.readiness.is_ready = false;
        self
    }

    fn terminating(mut self) -> Self {
        self.metadata.deletion_timestamp = time("2026-02-01T00:00:00Z");
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

    fn with_hostname(mut self, hostname: &str, subdomain: &str) -> Self {
        self.spec.hostname = hostname.into();
        self.spec.subdomain = subdomain.into();
        self
    }

    fn with_container(mut self, ports: Vec<ContainerPort>) -> Self {
        self.spec.containers.push(Container { ports });
        self
    }

    fn with_init_container(mut self, restart_policy: &str, ports: Vec<ContainerPort>) -> Self {
        self.spec.init_containers.push(InitContainer { restart_policy: restart_policy.into(), ports });
        self
    }
}

/// Returns a TCP port of a container.
pub(crate) fn container_port(name: &str, number: i32) -> ContainerPort {
    ContainerPort { name: name.into(), container_port: number, protocol: Protocol::Tcp }
}

/// Returns a Node in this zone; "" for no zone.
pub(crate) fn node(name: &str, zone: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = name.into();
    if !zone.is_empty() {
        node.metadata.labels.insert("topology.kubernetes.io/zone", zone);
    }
    node
}

/// Returns a ready Node in this zone, with 100m of CPU for pods.
pub(crate) fn small_node(name: &str, zone: &str) -> Node {
    let mut node = node(name, zone);
    node.status.readiness.is_ready = true;
    node.status.allocatable.cpu = Some("100m".into());
    node
}

/// Returns the slice `<service>-<number>` without endpoints, as the controller writes it for IPv4 and the Service's own
/// numeric ports.
pub(crate) fn slice(number: usize, service: &Service) -> EndpointSlice {
    let config = Config::default();
    let ports = service.spec.ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        port: match port.target_port {
            TargetPort::Number(number) => Some(number),
            TargetPort::Name(_) => None,
        },
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    });
    let mut slice = SliceTemplate::new(service, &config).slice(AddressType::IPv4, &ports.collect());
    slice.metadata.name = format!("{}-{number}", service.metadata.name).into();
    slice.metadata.uid = format!("slice-{number}").into();
    slice.metadata.resource_version = "1".into();
    slice.metadata.generation = 1;
    slice
}

pub(crate) trait BuildSlice: Sized {
    fn with_pods(self, pods: &[Pod]) -> Self;
    fn with_address_type(self, address_type: AddressType) -> Self;
    fn with_slice_ports(self, ports: &[EndpointPort]) -> Self;
    fn with_label(self, key: &str, value: &str) -> Self;
    fn with_owner_uid(self, uid: &str) -> Self;
}

impl BuildSlice for EndpointSlice {
    fn with_pods(mut self, pods: &[Pod]) -> Self {
        self.endpoints = pods.iter().map(endpoint).collect();
        self
    }

    fn with_address_type(mut self, address_type: AddressType) -> Self {
        self.address_type = address_type;
        self
    }

    fn with_slice_ports(mut self, ports: &[EndpointPort]) -> Self {
        self.ports = ports.to_vec();
        self
    }

    fn with_label(mut self, key: &str, value: &str) -> Self {
        self.metadata.labels.insert(key, value);
        self
    }

    fn with_owner_uid(mut self, uid: &str) -> Self {
        let owner = &self.metadata.owner_references[0];
        self.metadata.owner_references = vec![OwnerReference { uid: uid.into(), ..owner.clone() }];
        self
    }
}

/// Returns the backend of `pod` in `service`, or `None` if the pod cannot be a backend. The Node of the pod is known.
pub(crate) fn backend(pod: &Pod, service: &Service) -> Option<Backend> {
    let nodes: NodeZones = [&node(&pod.spec.node_name, "")].into_iter().collect();
    endpointslice::backend::PodBackends::new(service, &nodes).convert(pod)
}

/// Returns the IPv4 endpoint of a pod, without a hostname.
pub(crate) fn endpoint(pod: &Pod) -> Endpoint {
    backend(pod, &service("any")).and_then(|backend| backend.endpoint(Family::V4)).expect("a pod that can be one")
}

/// Step of a plan that leaves hints as they are.
struct LeaveHints;

impl AssignHints for LeaveHints {
    fn assign(&mut self, _service: &Service, _draft: &mut Draft) {}
}

/// Returns the labels of the slice after a plan, or `None` if the plan does not write the slice.
pub(crate) fn planned_labels(service: &Service, slice: EndpointSlice) -> Option<TextMap> {
    let config = Config::default();
    let existing = [std::sync::Arc::new(slice)];
    let request = PlanRequest { service, existing: &existing, trigger_time: None, config: &config };
    let backends = existing[0].endpoints.iter().map(|endpoint| Backend {
        ipv4: endpoint.addresses.clone(),
        conditions: endpoint.conditions,
        target_ref: endpoint.target_ref.clone(),
        node_name: endpoint.node_name.clone(),
        ports: existing[0].ports.clone().into(),
        ..Backend::default()
    });
    let plan = endpointslice::plan(&request, backends, &mut LeaveHints);
    let mut updates = plan.families.into_iter().flat_map(|family| family.draft.updates);
    updates.next().map(|update| update.after.metadata.labels)
}
