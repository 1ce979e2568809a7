//! [`Pod`]: what an endpoint is made from.

use super::lenient::{null_is_default, ready, write_ready};
use super::{Metadata, Protocol};
use crate::text::{Text, shared};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Pod {
    /// Name, UID, labels.
    pub metadata: Metadata,
    /// Where it runs and what its containers open.
    pub spec: PodSpec,
    /// Addresses and readiness.
    pub status: PodStatus,
}

/// Where a pod runs and what its containers open.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Its Node; "" before it has one.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub node_name: Text,
    /// Its name in the headless Service that `subdomain` names.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub hostname: Text,
    /// The headless Service that gives it a name.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub subdomain: Text,
    /// Its containers.
    #[serde(deserialize_with = "null_is_default")]
    pub containers: Vec<Container>,
    /// Containers that run before those; some go on beside them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub init_containers: Vec<InitContainer>,
}

/// The ports of a container.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Container {
    /// What it opens, as far as it says.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ports: Vec<ContainerPort>,
}

/// The ports of an init container, and whether it stays.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitContainer {
    /// `Always` makes it a sidecar (KEP-753).
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub restart_policy: Text,
    /// What it opens.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ports: Vec<ContainerPort>,
}

/// A port that a container opens.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// What a Service may call it by; "" if it cannot.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub name: Text,
    /// Its number.
    #[serde(deserialize_with = "null_is_default")]
    pub container_port: i32,
    /// Its protocol.
    #[serde(deserialize_with = "null_is_default")]
    pub protocol: Protocol,
}

/// Addresses and readiness of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// How far it has come.
    pub phase: Phase,
    /// Its first address. Endpoints are made from `pod_ips` only, as in Kubernetes since 1.16.
    #[serde(rename = "podIP", skip_serializing_if = "str::is_empty")]
    pub pod_ip: Text,
    /// Its addresses, of both families.
    #[serde(rename = "podIPs", skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub pod_ips: Vec<PodIp>,
    /// Its `Ready` condition.
    #[serde(rename = "conditions", deserialize_with = "ready", serialize_with = "write_ready")]
    pub readiness: Readiness,
}

/// An address of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct PodIp {
    /// As its runtime gave it: old ones are not checked and may have any form.
    pub ip: Text,
}

/// The `Ready` condition of a pod or a Node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Readiness {
    /// Whether its status is `True`; `False`, `Unknown` and absence are the same here.
    pub is_ready: bool,
    /// When its status last changed.
    pub since: Option<Timestamp>,
}

/// How far a pod has come. An absent or unknown phase is [`Phase::Other`] and serves like a running one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Phase {
    /// Not all of its containers have started.
    Pending,
    /// Its containers run.
    Running,
    /// They all ended well and will not run again.
    Succeeded,
    /// They all ended, one of them badly, and will not run again.
    Failed,
    /// What else there is: `Unknown`, none yet.
    #[default]
    Other,
}

impl Phase {
    /// Whether no container of the pod will run again.
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
