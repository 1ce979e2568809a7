//! Fields of a Service.

use crate::object::{Object, at, text_at};
use serde_json::{Value, json};

/// Value of `clusterIP` in a headless Service.
pub(super) const HEADLESS: &str = "None";

pub(super) fn spec_mut(object: &mut Object) -> &mut Object {
    let spec = object.entry("spec").or_insert_with(|| json!({}));
    if !spec.is_object() {
        *spec = json!({});
    }
    spec.as_object_mut().expect("it was made an object")
}

pub(super) fn list<'a>(object: &'a Object, path: &str) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn is_headless(object: &Object) -> bool {
    text_at(object, "spec.clusterIP") == HEADLESS
}

pub(super) fn is_external_name(object: &Object) -> bool {
    text_at(object, "spec.type") == "ExternalName"
}
