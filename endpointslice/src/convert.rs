//! Conversions from and to the types of k8s-openapi, for programs that use those types already. A program that watches
//! objects only for this library should deserialize them into [`crate::model`] directly, because the types of
//! k8s-openapi take more memory.

mod slice;

use crate::model::{
    Allocatable, Container, ContainerPort, InitContainer, Metadata, Node, NodeStatus, OwnerReference, Phase, Pod,
    PodIp, PodSpec, PodStatus, Readiness, Service, ServicePort, ServiceSpec, ServiceType, TargetPort,
};
use crate::model::{ClusterIpFamily, Protocol};
use crate::text::Text;
use crate::text_map::TextMap;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference as Owner, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;

/// Returns a text that shares its allocation with equal texts ([`Text::shared`]); "" if `text` is absent.
fn shared(text: Option<&String>) -> Text {
    text.map_or_else(Text::default, |text| Text::shared(text))
}

fn own(text: Option<&String>) -> Text {
    text.map_or_else(Text::default, Text::from)
}

fn map(pairs: Option<&BTreeMap<String, String>>) -> TextMap {
    pairs.into_iter().flatten().map(|(key, value)| (Text::shared(key), Text::shared(value))).collect()
}

fn list<'a, T: 'a, U: From<&'a T>>(items: Option<&'a Vec<T>>) -> Vec<U> {
    items.into_iter().flatten().map(U::from).collect()
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|Time(time)| *time)
}

/// Fields of a condition that conversions read: type, status, and time of the last change.
type Condition<'a> = (&'a str, &'a str, Option<&'a Time>);

fn readiness<'a>(conditions: impl Iterator<Item = Condition<'a>>) -> Readiness {
    let ready = conditions.filter(|(kind, ..)| *kind == "Ready").last();
    ready.map_or_else(Readiness::default, |(_, status, since)| Readiness {
        is_ready: status == "True",
        since: time(since),
    })
}

impl From<&ObjectMeta> for Metadata {
    fn from(metadata: &ObjectMeta) -> Self {
        Self {
            name: own(metadata.name.as_ref()),
            generate_name: own(metadata.generate_name.as_ref()),
            namespace: shared(metadata.namespace.as_ref()),
            uid: own(metadata.uid.as_ref()),
            resource_version: own(metadata.resource_version.as_ref()),
            generation: metadata.generation.unwrap_or_default(),
            creation_timestamp: time(metadata.creation_timestamp.as_ref()),
            deletion_timestamp: time(metadata.deletion_timestamp.as_ref()),
            labels: map(metadata.labels.as_ref()),
            annotations: map(metadata.annotations.as_ref()),
            owner_references: list(metadata.owner_references.as_ref()),
            finalizers: list(metadata.finalizers.as_ref()),
        }
    }
}

impl From<&Owner> for OwnerReference {
    fn from(owner: &Owner) -> Self {
        Self {
            api_version: Text::shared(&owner.api_version),
            kind: Text::shared(&owner.kind),
            name: Text::shared(&owner.name),
            uid: Text::shared(&owner.uid),
            controller: owner.controller,
            block_owner_deletion: owner.block_owner_deletion,
        }
    }
}

impl From<&v1::Pod> for Pod {
    fn from(pod: &v1::Pod) -> Self {
        let spec = pod.spec.as_ref().map(PodSpec::from).unwrap_or_default();
        let status = pod.status.as_ref().map(PodStatus::from).unwrap_or_default();
        Self { metadata: Metadata::from(&pod.metadata), spec, status }
    }
}

impl From<&v1::PodSpec> for PodSpec {
    fn from(spec: &v1::PodSpec) -> Self {
        Self {
            node_name: shared(spec.node_name.as_ref()),
            hostname: own(spec.hostname.as_ref()),
            subdomain: shared(spec.subdomain.as_ref()),
            containers: list(Some(&spec.containers)),
            init_containers: list(spec.init_containers.as_ref()),
        }
    }
}

impl From<&v1::Container> for Container {
    fn from(container: &v1::Container) -> Self {
        Self { ports: list(container.ports.as_ref()) }
    }
}

impl From<&v1::Container> for InitContainer {
    fn from(container: &v1::Container) -> Self {
        Self { restart_policy: shared(container.restart_policy.as_ref()), ports: list(container.ports.as_ref()) }
    }
}

impl From<&v1::ContainerPort> for ContainerPort {
    fn from(port: &v1::ContainerPort) -> Self {
        Self {
            name: shared(port.name.as_ref()),
            container_port: port.container_port,
            protocol: Protocol::from(port.protocol.as_deref().unwrap_or_default()),
        }
    }
}

impl From<&v1::PodStatus> for PodStatus {
    fn from(status: &v1::PodStatus) -> Self {
        let conditions = status.conditions.iter().flatten();
        Self {
            phase: Phase::from(status.phase.as_deref().unwrap_or_default()),
            pod_ip: own(status.pod_ip.as_ref()),
            pod_ips: status.pod_ips.iter().flatten().map(|pod_ip| PodIp { ip: Text::from(&pod_ip.ip) }).collect(),
            readiness: readiness(
                conditions.map(|it| (it.type_.as_str(), it.status.as_str(), it.last_transition_time.as_ref())),
            ),
        }
    }
}

impl From<&v1::Node> for Node {
    fn from(node: &v1::Node) -> Self {
        Self {
            metadata: Metadata::from(&node.metadata),
            status: node.status.as_ref().map(NodeStatus::from).unwrap_or_default(),
        }
    }
}

impl From<&v1::NodeStatus> for NodeStatus {
    fn from(status: &v1::NodeStatus) -> Self {
        let cpu = status.allocatable.as_ref().and_then(|allocatable| allocatable.get("cpu"));
        let conditions = status.conditions.iter().flatten();
        Self {
            readiness: readiness(
                conditions.map(|it| (it.type_.as_str(), it.status.as_str(), it.last_transition_time.as_ref())),
            ),
            allocatable: Allocatable { cpu: cpu.map(|cpu| Text::shared(&cpu.0)) },
        }
    }
}

impl From<&v1::Service> for Service {
    fn from(service: &v1::Service) -> Self {
        Self {
            metadata: Metadata::from(&service.metadata),
            spec: service.spec.as_ref().map(ServiceSpec::from).unwrap_or_default(),
        }
    }
}

impl From<&v1::ServiceSpec> for ServiceSpec {
    fn from(spec: &v1::ServiceSpec) -> Self {
        let is_external_name = spec.type_.as_deref() == Some("ExternalName");
        let families = spec.ip_families.iter().flatten().map(|family| match family.as_str() {
            "IPv4" => ClusterIpFamily::IPv4,
            "IPv6" => ClusterIpFamily::IPv6,
            _ => ClusterIpFamily::Other,
        });
        Self {
            r#type: if is_external_name { ServiceType::ExternalName } else { ServiceType::ByAddress },
            cluster_ip: own(spec.cluster_ip.as_ref()),
            ip_families: families.collect(),
            selector: map(spec.selector.as_ref()),
            ports: list(spec.ports.as_ref()),
            publish_not_ready_addresses: spec.publish_not_ready_addresses.unwrap_or_default(),
            traffic_distribution: spec.traffic_distribution.as_ref().map(|value| Text::shared(value)),
        }
    }
}

impl From<&v1::ServicePort> for ServicePort {
    fn from(port: &v1::ServicePort) -> Self {
        Self {
            name: shared(port.name.as_ref()),
            port: port.port,
            protocol: Protocol::from(port.protocol.as_deref().unwrap_or_default()),
            target_port: match &port.target_port {
                Some(IntOrString::Int(number)) => TargetPort::Number(*number),
                Some(IntOrString::String(name)) => TargetPort::Name(Text::shared(name)),
                None => TargetPort::default(),
            },
            app_protocol: port.app_protocol.as_ref().map(|protocol| Text::shared(protocol)),
        }
    }
}

#[cfg(test)]
mod tests;
