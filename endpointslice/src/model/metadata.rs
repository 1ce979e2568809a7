//! [`Metadata`]: what every object says about itself.

use super::lenient::{null_is_default, time, write_time};
use crate::text::{Text, shared};
use crate::text_map::TextMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `metadata` of an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Unique among objects of its kind in its namespace; "" on a new object that the API server is to name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Text,
    /// What the API server begins the name with.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub generate_name: Text,
    /// "" on what has none, such as a Node.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "shared")]
    pub namespace: Text,
    /// Unique over all objects and time; "" on a new object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Text,
    /// The version that a write is to replace; "" for whichever there is.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub resource_version: Text,
    /// Counts the changes outside of metadata and, on slices, of labels.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_is_default")]
    pub generation: i64,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time", serialize_with = "write_time")]
    pub creation_timestamp: Option<Timestamp>,
    /// Since when it is being deleted; what it has as finalizers holds it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time", serialize_with = "write_time")]
    pub deletion_timestamp: Option<Timestamp>,
    /// What objects are selected by.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub labels: TextMap,
    /// What tools remark.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub annotations: TextMap,
    /// With whom it goes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must agree before it goes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub finalizers: Vec<Text>,
}

impl Metadata {
    /// Whether somebody has asked for its deletion.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// An object that another goes with.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of the owner, `v1` for a Service.
    #[serde(deserialize_with = "shared")]
    pub api_version: Text,
    /// Its kind.
    #[serde(deserialize_with = "shared")]
    pub kind: Text,
    /// Its name.
    #[serde(deserialize_with = "shared")]
    pub name: Text,
    /// Its UID: an owner of the same name that was made anew is another.
    #[serde(deserialize_with = "shared")]
    pub uid: Text,
    /// Whether the owner is the one that manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference to the field")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}
