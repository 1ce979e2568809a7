//! EndpointSlice of a Service ([`EndpointSlice`]).

use super::lenient::null_is_default;
use super::{Endpoint, EndpointPort, Metadata};
use crate::text::Text;
use serde::ser::{SerializeStruct as _, Serializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// EndpointSlice: endpoints of a Service that have the same ports, and addresses of one type.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    /// Name, labels and owner.
    pub metadata: Metadata,
    /// Type of the endpoints' addresses.
    pub address_type: AddressType,
    /// Endpoints of the slice, at most 1000.
    #[serde(deserialize_with = "null_is_default")]
    pub endpoints: Vec<Endpoint>,
    /// Ports that each endpoint of the slice has.
    #[serde(deserialize_with = "null_is_default")]
    pub ports: Vec<EndpointPort>,
}

impl Serialize for EndpointSlice {
    /// Serializes the whole object with `apiVersion` and `kind`: the body of a create or a replace.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("EndpointSlice", 6)?;
        object.serialize_field("apiVersion", "discovery.k8s.io/v1")?;
        object.serialize_field("kind", "EndpointSlice")?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("addressType", &self.address_type)?;
        object.serialize_field("endpoints", &self.endpoints)?;
        object.serialize_field("ports", &self.ports)?;
        object.end()
    }
}

/// Type of the addresses of a slice.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum AddressType {
    /// IPv4 addresses.
    #[default]
    IPv4,
    /// IPv6 addresses.
    IPv6,
    /// Type of which this library makes no slices: `FQDN`, or the removed type `IP`.
    Other(Text),
}

impl AddressType {
    /// Returns the type's name in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for AddressType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl From<&str> for AddressType {
    fn from(name: &str) -> Self {
        match name {
            "IPv4" => Self::IPv4,
            "IPv6" => Self::IPv6,
            other => Self::Other(other.into()),
        }
    }
}

impl Serialize for AddressType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AddressType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Option<std::borrow::Cow<'de, str>> = Option::deserialize(deserializer)?;
        Ok(Self::from(text.as_deref().unwrap_or_default()))
    }
}
