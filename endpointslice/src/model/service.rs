//! Service ([`Service`]): the owner of slices.

use super::lenient::null_is_default;
use super::{Metadata, Protocol};
use crate::names::CLUSTER_IP_NONE;
use crate::text::{Text, shared, shared_option};
use crate::text_map::TextMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Service: the owner of slices.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Service {
    /// Name, UID, labels (copied to the slices of the Service) and annotations (which may ask for hints).
    pub metadata: Metadata,
    /// Selector, ports and addresses.
    pub spec: ServiceSpec,
}

/// Selector, ports and addresses of a Service.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// Type of the Service.
    pub r#type: ServiceType,
    /// First cluster IP. For a headless Service, the text is empty or the word `None`.
    #[serde(rename = "clusterIP", skip_serializing_if = "str::is_empty")]
    pub cluster_ip: Text,
    /// Address families of the Service.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ip_families: Vec<ClusterIpFamily>,
    /// Labels that a pod must have so that the Service selects it. An empty selector selects nothing, like an absent
    /// selector.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub selector: TextMap,
    /// Ports of the Service.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub ports: Vec<ServicePort>,
    /// True to publish endpoints as ready even if their pods are not ready or are being deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    pub publish_not_ready_addresses: bool,
    /// Preference of clients for near endpoints (KEP-4444, KEP-3015): `PreferClose`, `PreferSameZone` or
    /// `PreferSameNode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<Text>,
}

impl ServiceSpec {
    /// True if the Service is headless: it has no cluster IP.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.cluster_ip.is_empty() || self.cluster_ip == CLUSTER_IP_NONE
    }

    /// True if the Service is an alias of a DNS name and so has no endpoints.
    #[must_use]
    pub fn is_external_name(&self) -> bool {
        self.r#type == ServiceType::ExternalName
    }
}

/// Type of a Service. This library distinguishes only Services with endpoints from aliases without endpoints.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServiceType {
    /// Service with endpoints: `ClusterIP`, `NodePort` or `LoadBalancer`.
    #[default]
    ByAddress,
    /// Alias of a DNS name, without endpoints.
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

/// Address family in `ipFamilies`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ClusterIpFamily {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
    /// Unknown family, for which no slice can be made.
    #[serde(other)]
    Other,
}

/// Port of a Service.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Name of the port. "" is permitted if the Service has only one port.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub name: Text,
    /// Port number at the Service's address.
    #[serde(deserialize_with = "null_is_default")]
    pub port: i32,
    /// Transport protocol.
    #[serde(deserialize_with = "null_is_default")]
    pub protocol: Protocol,
    /// Target port in a pod.
    #[serde(deserialize_with = "null_is_default")]
    pub target_port: TargetPort,
    /// Application protocol (KEP-1422).
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub app_protocol: Option<Text>,
}

/// Target port in a pod.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// Port number.
    Number(i32),
    /// Name of a container's port.
    Name(Text),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}
