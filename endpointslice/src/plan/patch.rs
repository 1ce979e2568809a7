//! Merge patch of an update, with the fields that this library owns.

use super::draft::Update;
use crate::text_map::TextMap;
use serde_json::{Map, Value, json};

/// Precondition of a merge patch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Precondition {
    /// No precondition. Data that other writers added to the slice since the plan survives, because the patch does not
    /// contain it.
    None,
    /// The slice must have the version that the plan was made for.
    SameVersion,
}

impl Update {
    /// Returns the body of a merge patch (RFC 7386) from `before` to `after`: all endpoints and ports, and the changed
    /// metadata.
    ///
    /// All other metadata and unknown fields of the stored slice stay. To replace the slice instead, use `after` itself
    /// as the body.
    #[must_use]
    pub fn merge_patch(&self, precondition: Precondition) -> Value {
        let (before, after) = (&self.before.metadata, &self.after.metadata);
        let mut metadata = Map::new();
        let mut set = |key: &str, value: Value| {
            metadata.insert(key.to_owned(), value);
        };
        if let Some(labels) = difference(&before.labels, &after.labels) {
            set("labels", labels);
        }
        if let Some(annotations) = difference(&before.annotations, &after.annotations) {
            set("annotations", annotations);
        }
        if before.owner_references != after.owner_references {
            set("ownerReferences", json!(after.owner_references));
        }
        if before.finalizers != after.finalizers {
            set("finalizers", json!(after.finalizers));
        }
        if precondition == Precondition::SameVersion {
            set("resourceVersion", json!(before.resource_version));
        }
        let mut patch = json!({ "endpoints": self.after.endpoints, "ports": self.after.ports });
        if !metadata.is_empty() {
            patch["metadata"] = Value::Object(metadata);
        }
        patch
    }
}

/// Returns the part of a merge patch that changes the map `before` to `after`, or `None` if they are equal.
fn difference(before: &TextMap, after: &TextMap) -> Option<Value> {
    let gone = before.iter().filter(|(key, _)| !after.contains_key(key)).map(|(key, _)| (key, Value::Null));
    let set =
        after.iter().filter(|(key, value)| before.get(key) != Some(value)).map(|(key, value)| (key, json!(value)));
    let difference: Map<String, Value> = gone.chain(set).map(|(key, value)| (key.to_string(), value)).collect();
    (!difference.is_empty()).then_some(Value::Object(difference))
}
