//! [`Endpoint`] and what it is made of.

use super::lenient::{names, null_is_default, write_names};
use crate::text::{Text, shared, shared_option};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// One backend of a Service. A copy copies no text and, save for several addresses, allocates nothing.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// Its addresses, all of the slice's type. Consumers take them for the same thing (KEP-752).
    pub addresses: Addresses,
    /// Whether it may be sent to.
    #[serde(deserialize_with = "null_is_default")]
    pub conditions: Conditions,
    /// Its name in a headless Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    /// What stands behind it: a pod. Copies of the endpoint share it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "arc", serialize_with = "write_arc")]
    pub target_ref: Option<Arc<TargetRef>>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub node_name: Option<Text>,
    /// The zone of that Node.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shared_option")]
    pub zone: Option<Text>,
    /// Who should prefer it. Endpoints with the same hints share them.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "arc", serialize_with = "write_arc")]
    pub hints: Option<Arc<Hints>>,
}

impl Endpoint {
    /// Whether its `ready` condition is set and true.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

/// Addresses of an endpoint: nearly always one, which then needs no list.
#[derive(Clone, Debug, Default)]
pub enum Addresses {
    /// None.
    #[default]
    None,
    /// One.
    One(Text),
    /// Several.
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

/// Whether an endpoint may be sent to (KEP-1672). Absent is not false: old writers set `ready` only.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub struct Conditions {
    /// May get new connections: serving and not terminating, or published in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Could answer, terminating or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Is going.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// The object that stands behind an endpoint.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetRef {
    /// Its kind.
    pub kind: TargetKind,
    /// Its namespace.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub namespace: Text,
    /// Its name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Text,
    /// Its UID.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Text,
    /// Its version, which old controllers wrote. Never compared: it changed with every heartbeat of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<Text>,
    /// Group and version of its kind: not written here, but a slice may have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Text>,
    /// A part of it: as `api_version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<Text>,
}

/// The kind of a [`TargetRef`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum TargetKind {
    /// A pod, which it is in every slice that this library makes from pods.
    #[default]
    Pod,
    /// Another, or "" for none.
    Other(Text),
}

impl TargetKind {
    /// Its name in the API.
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

/// Who should prefer an endpoint (KEP-2433, KEP-3015).
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// Clients in these zones.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "names", serialize_with = "write_names")]
    pub for_zones: Vec<Text>,
    /// Clients on these Nodes.
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
