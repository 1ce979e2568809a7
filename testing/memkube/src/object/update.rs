//! Metadata of an update: the fields that the server keeps or sets.

use super::{Object, meta, metadata_mut};
use crate::registry::Definition;
use crate::strategy::Generation;
use serde_json::{Value, json};

/// Fields of metadata that only the server changes. A client may omit these fields.
const KEPT: [&str; 2] = ["generation", "resourceVersion"];

/// Restores the fields of metadata that only the server changes. Runs before the kind's rules.
pub(crate) fn keep(object: &mut Object, old: &Object) {
    for name in KEPT {
        put(object, name, meta(old, name).cloned());
    }
    let metadata = metadata_mut(object);
    metadata.remove("selfLink");
    metadata.remove("managedFields");
}

/// Restores the fields of metadata that a client omitted or may not remove. Runs after the kind's rules.
pub(crate) fn complete(object: &mut Object, old: &Object) {
    let old_of = |name: &str| meta(old, name).cloned();
    for name in ["uid", "deletionGracePeriodSeconds"] {
        if meta(object, name).is_none() {
            put(object, name, old_of(name));
        }
    }
    put(object, "creationTimestamp", old_of("creationTimestamp"));
    if old_of("deletionTimestamp").is_some() {
        put(object, "deletionTimestamp", old_of("deletionTimestamp"));
    }
}

/// Increments `metadata.generation` if `rule` says that this change of the object increments it.
pub(crate) fn move_generation(object: &mut Object, old: &Object, rule: Generation, definition: &Definition) {
    let moved = match rule {
        Generation::Absent => false,
        Generation::Content => content_differs(object, old, definition),
        Generation::ContentAndLabels => {
            content_differs(object, old, definition) || meta(object, "labels") != meta(old, "labels")
        }
    };
    if moved {
        let next = super::generation(old).saturating_add(1);
        put(object, "generation", Some(json!(next)));
    }
}

/// True if a field outside metadata differs. The status counts only if the kind has no status subresource.
fn content_differs(object: &Object, old: &Object, definition: &Definition) -> bool {
    let counts = |name: &&String| match name.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !definition.has_status(),
        _ => true,
    };
    let changed = |from: &Object, to: &Object| {
        let mut names = from.keys().filter(counts);
        names.any(|name| from.get(name) != to.get(name))
    };
    changed(object, old) || changed(old, object)
}

fn put(object: &mut Object, name: &str, value: Option<Value>) {
    let metadata = metadata_mut(object);
    match value {
        Some(value) => metadata.insert(name.to_owned(), value),
        None => metadata.remove(name),
    };
}
