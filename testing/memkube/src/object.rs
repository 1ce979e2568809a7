//! Objects as JSON, and the parts that all kinds share.

pub(crate) mod create;
pub mod names;
pub(crate) mod path;
pub(crate) mod update;
pub(crate) mod validate;

use serde_json::{Map, Value};

/// An object of any kind: JSON with `apiVersion`, `kind` and `metadata`.
pub type Object = Map<String, Value>;

const EMPTY: &str = "";

/// Value of a field of `metadata`. `None` if absent.
#[must_use]
pub fn meta<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

/// Value of a field of `metadata` that is a string. Empty if absent.
#[must_use]
pub fn meta_text<'a>(object: &'a Object, name: &str) -> &'a str {
    meta(object, name).and_then(Value::as_str).unwrap_or(EMPTY)
}

/// Returns `metadata`; creates it if absent.
///
/// Replaces a value that is not an object. No request reaches this case, because the verbs reject such objects first.
pub fn metadata_mut(object: &mut Object) -> &mut Object {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it was made an object"),
    }
}

pub fn set_meta(object: &mut Object, name: &str, value: impl Into<Value>) {
    metadata_mut(object).insert(name.to_owned(), value.into());
}

pub fn remove_meta(object: &mut Object, name: &str) -> Option<Value> {
    metadata_mut(object).remove(name)
}

pub fn finalizers(object: &Object) -> impl Iterator<Item = &str> {
    let list = meta(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// True if the object has a deletionTimestamp.
#[must_use]
pub fn deleting(object: &Object) -> bool {
    meta(object, "deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Value of `metadata.generation`; 0 if absent.
#[must_use]
pub fn generation(object: &Object) -> i64 {
    meta(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Value at a path, for example `spec.clusterIP`. `None` if absent.
#[must_use]
pub fn at<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = object.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// String at a path. Empty if absent.
#[must_use]
pub fn text_at<'a>(object: &'a Object, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or(EMPTY)
}
