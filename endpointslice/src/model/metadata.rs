//! Metadata that objects of all kinds have: [`Metadata`].

use super::lenient::{null_is_default, time, write_time};
use crate::text::{Text, shared};
use crate::text_map::TextMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `metadata` of an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Name, unique among objects of the kind in the namespace. "" on a new object for which the API server generates a
    /// name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Text,
    /// Prefix for a name that the API server generates.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub generate_name: Text,
    /// Namespace. "" on objects without a namespace, such as a Node.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub namespace: Text,
    /// UID, unique over all objects and time. "" on a new object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Text,
    /// resourceVersion of the object. A replace succeeds only if the stored object has this version; "" replaces any
    /// version.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub resource_version: Text,
    /// `metadata.generation`: number of changes of the object outside of its metadata. On EndpointSlices, changes of
    /// labels count too.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_is_default")]
    pub generation: i64,
    /// Time of creation.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time", serialize_with = "write_time")]
    pub creation_timestamp: Option<Timestamp>,
    /// Time of the deletion request. The object exists until all of its finalizers are removed.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time", serialize_with = "write_time")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels, which selectors match.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub labels: TextMap,
    /// Annotations, for example the trigger time of a slice.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub annotations: TextMap,
    /// Owner references. The garbage collector deletes the object when all of its owners are deleted.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers. An object that is being deleted exists until all of its finalizers are removed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub finalizers: Vec<Text>,
}

impl Metadata {
    /// True if the deletion of the object was requested.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Reference from an object to its owner.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// API version of the owner, `v1` for a Service.
    #[serde(deserialize_with = "shared")]
    pub api_version: Text,
    /// Kind of the owner.
    #[serde(deserialize_with = "shared")]
    pub kind: Text,
    /// Name of the owner.
    #[serde(deserialize_with = "shared")]
    pub name: Text,
    /// UID of the owner. An owner that was created again with the same name has another UID.
    #[serde(deserialize_with = "shared")]
    pub uid: Text,
    /// True if the owner is the managing controller of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// True if a foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference to the field")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}
