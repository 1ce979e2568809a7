//! Port of an endpoint ([`EndpointPort`]) and [`Protocol`].

use crate::text::{Text, shared_option};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Port that all endpoints of a slice have.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// Name of the Service's port. In comparisons of ports, the name "" differs from an absent name.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub name: Option<Text>,
    /// Port number at the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Transport protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Application protocol (KEP-1422).
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub app_protocol: Option<Text>,
}

/// Transport protocol.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Protocol {
    /// TCP. In the API an absent protocol means TCP too.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// Protocol that this library does not know.
    Other(Text),
}

impl Protocol {
    /// Returns the protocol's name in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Protocol {
    fn from(name: &str) -> Self {
        match name {
            "" | "TCP" => Self::Tcp,
            "UDP" => Self::Udp,
            "SCTP" => Self::Sctp,
            other => Self::Other(other.into()),
        }
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Option<std::borrow::Cow<'de, str>> = Option::deserialize(deserializer)?;
        Ok(Self::from(text.as_deref().unwrap_or_default()))
    }
}
