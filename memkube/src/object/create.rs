//! What the server makes of the metadata of a new object.

use super::{Object, metadata_mut};
use crate::random::Random;
use crate::registry::Scope;
use jiff::Timestamp;
use serde_json::json;

/// The longest prefix of a generated name: 63 less the five letters behind it.
const GENERATE_NAME_BYTES: usize = 58;

/// A time as objects have it: RFC 3339 in UTC, whole seconds.
pub(crate) fn timestamp(now: Timestamp) -> String {
    let whole = Timestamp::from_second(now.as_second()).unwrap_or(now);
    whole.to_string()
}

/// Fills in what the server decides and drops what a client may not say.
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

/// Makes the name from `generateName`, where there is none.
///
/// Returns whether it did.
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
