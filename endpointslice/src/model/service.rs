//! [`Service`]: what slices are made for.

use super::lenient::null_is_default;
use super::{Metadata, Protocol};
use crate::names::CLUSTER_IP_NONE;
use crate::text::{Text, shared, shared_option};
use crate::text_map::TextMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A Service.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Service {
    /// Name, UID, the labels that its slices carry too, annotations about hints.
    pub metadata: Metadata,
    /// What it selects and under which ports.
    pub spec: ServiceSpec,
}

/// What a Service selects and under which ports.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// How it is reached.
    pub r#type: ServiceType,
    /// Its first address; "" or `None` for a headless one.
    #[serde(rename = "clusterIP", skip_serializing_if = "str::is_empty")]
    pub cluster_ip: Text,
    /// The families that it has addresses of.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ip_families: Vec<ClusterIpFamily>,
    /// The labels of its pods. An empty one selects nothing: over JSON it is the same as an absent one.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub selector: TextMap,
    /// Its ports.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ports: Vec<ServicePort>,
    /// Whether endpoints count as ready whatever their pods say.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    pub publish_not_ready_addresses: bool,
    /// Which endpoints are preferred (KEP-4444, KEP-3015): `PreferClose`, `PreferSameZone`, `PreferSameNode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<Text>,
}

impl ServiceSpec {
    /// Whether it has no address of its own.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.cluster_ip.is_empty() || self.cluster_ip == CLUSTER_IP_NONE
    }

    /// Whether it is an alias of a DNS name, which has no endpoints.
    #[must_use]
    pub fn is_external_name(&self) -> bool {
        self.r#type == ServiceType::ExternalName
    }
}

/// How a Service is reached, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServiceType {
    /// By address: `ClusterIP`, `NodePort`, `LoadBalancer`.
    #[default]
    ByAddress,
    /// As an alias of a DNS name.
    ExternalName,
}

impl Serialize for ServiceType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::ByAddress => "ClusterIP",
            Self::ExternalName => "ExternalName",
        })
    }
}

impl<'de> Deserialize<'de> for ServiceType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Option<std::borrow::Cow<'de, str>> = Option::deserialize(deserializer)?;
        Ok(if text.as_deref() == Some("ExternalName") { Self::ExternalName } else { Self::ByAddress })
    }
}

/// An entry of `ipFamilies`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ClusterIpFamily {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
    /// What no slice can be made for.
    #[serde(other)]
    Other,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name; "" where it is the only one.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub name: Text,
    /// Its number at the Service's address.
    #[serde(deserialize_with = "null_is_default")]
    pub port: i32,
    /// Its protocol.
    #[serde(deserialize_with = "null_is_default")]
    pub protocol: Protocol,
    /// Where it leads in a pod.
    #[serde(deserialize_with = "null_is_default")]
    pub target_port: TargetPort,
    /// What is spoken over it (KEP-1422).
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub app_protocol: Option<Text>,
}

/// Where a port of a Service leads in a pod.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// To this number.
    Number(i32),
    /// To the container's port of this name.
    Name(Text),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}
