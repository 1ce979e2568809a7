//! Endpoint of a slice ([`Endpoint`]) and its parts.

use super::lenient::{names, null_is_default, write_names};
use crate::text::{Text, shared, shared_option};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// Endpoint of a slice: one backend of a Service. A clone copies only pointers and flags, and allocates nothing.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// Addresses of the endpoint, all of the slice's address type. Consumers treat the addresses as equivalent
    /// (KEP-752).
    pub addresses: Addresses,
    /// Readiness and termination.
    #[serde(deserialize_with = "null_is_default")]
    pub conditions: Conditions,
    /// DNS name of the endpoint in a headless Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    /// Object behind the endpoint, for example a pod. Clones of the endpoint share this value.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "arc", serialize_with = "write_arc")]
    pub target_ref: Option<Arc<TargetRef>>,
    /// Node that the endpoint runs on.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub node_name: Option<Text>,
    /// Zone of the endpoint's Node.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub zone: Option<Text>,
    /// Zones and Nodes whose clients should prefer the endpoint. Endpoints with the same hints share one allocation.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "arc", serialize_with = "write_arc")]
    pub hints: Option<Arc<Hints>>,
}

impl Endpoint {
    /// True if the `ready` condition is set and true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

/// Addresses of an endpoint. Nearly all endpoints have exactly one address, which is stored without a list.
#[derive(Clone, Debug, Default)]
pub enum Addresses {
    /// No address.
    #[default]
    None,
    /// One address.
    One(Text),
    /// Several addresses.
    Many(Arc<[Text]>),
}

impl Deref for Addresses {
    type Target = [Text];

    fn deref(&self) -> &[Text] {
        match self {
            Self::None => &[],
            Self::One(address) => std::slice::from_ref(address),
            Self::Many(addresses) => addresses,
        }
    }
}

impl FromIterator<Text> for Addresses {
    fn from_iter<I: IntoIterator<Item = Text>>(addresses: I) -> Self {
        let mut addresses = addresses.into_iter();
        match (addresses.next(), addresses.next()) {
            (None, _) => Self::None,
            (Some(only), None) => Self::One(only),
            (Some(first), Some(second)) => Self::Many([first, second].into_iter().chain(addresses).collect()),
        }
    }
}

impl PartialEq for Addresses {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Addresses {}

impl Serialize for Addresses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list: Option<Vec<Text>> = Option::deserialize(deserializer)?;
        Ok(list.unwrap_or_default().into_iter().collect())
    }
}

/// Readiness and termination of an endpoint (KEP-1672). An absent condition differs from a false condition: old
/// controllers set only `ready`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub struct Conditions {
    /// True if the endpoint may get new connections: it is serving and not terminating, or the Service publishes
    /// endpoints in any state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// True if the endpoint can respond to requests, even if it is terminating.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// True if the endpoint is terminating: its pod is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// Reference to the object behind an endpoint.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetRef {
    /// Kind of the object.
    pub kind: TargetKind,
    /// Namespace of the object.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub namespace: Text,
    /// Name of the object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Text,
    /// UID of the object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Text,
    /// Resource version of the object, which only old controllers wrote. This library never compares it, because each
    /// status update of a pod changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<Text>,
    /// API version of the object. This library does not write this field, but an existing slice may have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Text>,
    /// Path of a part of the object. This library does not write this field, but an existing slice may have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<Text>,
}

/// Kind of a [`TargetRef`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum TargetKind {
    /// Pod: the kind in every slice that this library makes from pods.
    #[default]
    Pod,
    /// Any other kind. "" if the reference has no kind.
    Other(Text),
}

impl TargetKind {
    /// Returns the kind's name in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pod => "Pod",
            Self::Other(kind) => kind,
        }
    }
}

impl From<&str> for TargetKind {
    fn from(kind: &str) -> Self {
        if kind == "Pod" { Self::Pod } else { Self::Other(kind.into()) }
    }
}

impl Serialize for TargetKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TargetKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Option<std::borrow::Cow<'de, str>> = Option::deserialize(deserializer)?;
        Ok(Self::from(text.as_deref().unwrap_or_default()))
    }
}

/// Hints of an endpoint: zones and Nodes whose clients should prefer the endpoint (KEP-2433, KEP-3015).
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// Zones whose clients should prefer the endpoint.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "names", serialize_with = "write_names")]
    pub for_zones: Vec<Text>,
    /// Nodes whose clients should prefer the endpoint.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "names", serialize_with = "write_names")]
    pub for_nodes: Vec<Text>,
}

fn arc<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Arc<T>>, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.map(Arc::new))
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn write_arc<S: Serializer, T: Serialize>(value: &Option<Arc<T>>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_deref().serialize(serializer)
}
