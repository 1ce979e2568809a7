//! Pod ([`Pod`]): the source of an endpoint.

use super::lenient::{null_is_default, ready, write_ready};
use super::{Metadata, Protocol};
use crate::text::{Text, shared};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pod: the source of an endpoint.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Pod {
    /// Name, UID and labels of the pod.
    pub metadata: Metadata,
    /// Node, DNS name and container ports.
    pub spec: PodSpec,
    /// Addresses and readiness of the pod.
    pub status: PodStatus,
}

/// Node, DNS name and container ports of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Node of the pod; "" before the pod is scheduled.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub node_name: Text,
    /// Hostname of the pod in the headless Service that `subdomain` names.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub hostname: Text,
    /// Name of the headless Service in which the pod has a DNS name.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub subdomain: Text,
    /// Containers of the pod.
    #[serde(deserialize_with = "null_is_default")]
    pub containers: Vec<Container>,
    /// Init containers. An init container that is a sidecar keeps running beside the containers.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub init_containers: Vec<InitContainer>,
}

/// Ports of a container.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Container {
    /// Ports that the container declares.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ports: Vec<ContainerPort>,
}

/// Ports and restart policy of an init container.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitContainer {
    /// Restart policy. `Always` makes the container a sidecar (KEP-753).
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub restart_policy: Text,
    /// Ports that the container declares.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ports: Vec<ContainerPort>,
}

/// Port that a container declares.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// Name that a Service may refer to; "" if the port has no name.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub name: Text,
    /// Port number.
    #[serde(deserialize_with = "null_is_default")]
    pub container_port: i32,
    /// Transport protocol.
    #[serde(deserialize_with = "null_is_default")]
    pub protocol: Protocol,
}

/// Addresses and readiness of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Phase of the pod: running, ended and so on.
    pub phase: Phase,
    /// First address of the pod. Endpoints are made only from `pod_ips`, as in Kubernetes since 1.16.
    #[serde(rename = "podIP", skip_serializing_if = "str::is_empty")]
    pub pod_ip: Text,
    /// Addresses of the pod, of both families.
    #[serde(rename = "podIPs", skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub pod_ips: Vec<PodIp>,
    /// `Ready` condition of the pod.
    #[serde(rename = "conditions", deserialize_with = "ready", serialize_with = "write_ready")]
    pub readiness: Readiness,
}

/// Address of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct PodIp {
    /// Address in the form that the container runtime reported. On old pods the address may be malformed, because old
    /// API servers did not validate it.
    pub ip: Text,
}

/// `Ready` condition of a pod or a Node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Readiness {
    /// True if the condition has the status `True`. False for the status `False` or `Unknown`, and for an absent
    /// condition.
    pub is_ready: bool,
    /// Time of the last change of the condition's status.
    pub since: Option<Timestamp>,
}

/// Phase of a pod's life. An absent or unknown phase is [`Phase::Other`], and such a pod is published like a running
/// pod.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Phase {
    /// Not all containers of the pod have started.
    Pending,
    /// The containers run.
    Running,
    /// All containers ended successfully and will not run again.
    Succeeded,
    /// All containers ended, at least one with a failure, and will not run again.
    Failed,
    /// Any other phase: `Unknown`, or no phase yet.
    #[default]
    Other,
}

impl Phase {
    /// True if no container of the pod will run again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl From<&str> for Phase {
    fn from(phase: &str) -> Self {
        match phase {
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Option<std::borrow::Cow<'de, str>> = Option::deserialize(deserializer)?;
        Ok(Self::from(text.as_deref().unwrap_or_default()))
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Other => "Unknown",
        })
    }
}
