//! Metadata of a new object: the fields that the server sets.

use super::{Object, metadata_mut};
use crate::random::Random;
use crate::registry::Scope;
use jiff::Timestamp;
use serde_json::json;

/// Maximum length of the prefix of a generated name: the 63 characters of a label minus the 5 characters of the suffix.
const GENERATE_NAME_BYTES: usize = 58;

/// Formats a time in the form of object fields: RFC 3339 in UTC, whole seconds.
pub(crate) fn timestamp(now: Timestamp) -> String {
    let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
    whole.to_string()
}

/// Sets the metadata that the server decides, and removes the metadata that a client may not set.
pub(crate) fn complete(object: &mut Object, scope: Scope, namespace: &str, now: Timestamp, random: &mut Random) {
    let metadata = metadata_mut(object);
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
        metadata.remove(name);
    }
    match scope {
        Scope::Cluster => metadata.remove("namespace"),
        Scope::Namespaced => metadata.insert("namespace".to_owned(), json!(namespace)),
    };
    metadata.insert("uid".to_owned(), json!(random.uid()));
    metadata.insert("creationTimestamp".to_owned(), json!(timestamp(now)));
}

/// Sets the name from `generateName` if the object has no name. Returns true if this function has set the name.
pub(crate) fn generate_name(object: &mut Object, random: &mut Random) -> bool {
    let metadata = metadata_mut(object);
    let text = |name: &str| metadata.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    let prefix = text("generateName").to_owned();
    if prefix.is_empty() || !text("name").is_empty() {
        return false;
    }
    let mut end = prefix.len().min(GENERATE_NAME_BYTES);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let name = format!("{}{}", &prefix[..end], random.name_suffix());
    metadata.insert("name".to_owned(), json!(name));
    true
}
