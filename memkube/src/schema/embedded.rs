//! Embedded objects (`x-kubernetes-embedded-resource`): fields of a custom resource that contain an object with metadata.

use super::{Node, Path};
use crate::object::{self, Object, names};
use crate::registry::Scope;
use crate::status::FieldError;
use crate::strategy::Findings;
use serde_json::{Value, json};

/// Name that replaces an absent name, so that the other metadata can be validated.
const SOME_NAME: &str = "fakename";

pub(super) fn coerce(root: &Node, object: &mut Object) -> Result<(), String> {
    coerce_members(root, object, &Path::ROOT)
}

fn coerce_members(node: &Node, object: &mut Object, path: &Path<'_>) -> Result<(), String> {
    for (name, member) in object.iter_mut() {
        if let Some(node) = node.properties.get(name) {
            coerce_value(node, member, &path.member(name))?;
        } else if let Some(node) = &node.additional {
            coerce_value(node, member, &path.key(name))?;
        }
    }
    Ok(())
}

fn coerce_value(node: &Node, value: &mut Value, path: &Path<'_>) -> Result<(), String> {
    match value {
        Value::Object(object) => {
            if node.embedded {
                coerce_object(object, path)?;
            }
            coerce_members(node, object, path)
        }
        Value::Array(items) => {
            let Some(node) = &node.items else { return Ok(()) };
            let mut items = items.iter_mut().enumerate();
            items.try_for_each(|(index, item)| coerce_value(node, item, &path.item(index)))
        }
        _ => Ok(()),
    }
}

fn coerce_object(object: &mut Object, path: &Path<'_>) -> Result<(), String> {
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
            return Err(format!("{path}.{name}: Invalid value: {value}: must be a string"));
        }
    }
    let Some(metadata) = object.get("metadata").cloned() else { return Ok(()) };
    object::shape::check(object, "ObjectMeta", &mut Findings::default())
        .map_err(|error| format!("{path}.metadata: Invalid value: {metadata}: {}", error.0))
}

pub(super) fn errors(root: &Node, object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    member_errors(root, object, &Path::ROOT, &mut errors);
    errors
}

fn member_errors(node: &Node, object: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, member) in object {
        if let Some(node) = node.properties.get(name) {
            value_errors(node, member, &path.member(name), errors);
        } else if let Some(node) = &node.additional {
            value_errors(node, member, &path.key(name), errors);
        }
    }
}

fn value_errors(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(object) => {
            if node.embedded {
                errors.extend(object_errors(object, path));
            }
            member_errors(node, object, path, errors);
        }
        Value::Array(items) => {
            let Some(node) = &node.items else { return };
            for (index, item) in items.iter().enumerate() {
                value_errors(node, item, &path.item(index), errors);
            }
        }
        _ => {}
    }
}

fn object_errors(object: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    if let Some(api_version) = text("apiVersion") {
        let why = match api_version.matches('/').count() {
            0 | 1 if !api_version.is_empty() => None,
            0 | 1 => Some("must not be empty".to_owned()),
            _ => Some(format!("unexpected GroupVersion string: {api_version}")),
        };
        let field = path.member("apiVersion").field();
        errors.extend(why.map(|why| FieldError::invalid(field, &json!(api_version), &why)));
    }
    if let Some(kind) = text("kind") {
        let wrong = names::label_1035(&kind.to_lowercase(), false);
        let why = match (kind.is_empty(), wrong.is_empty()) {
            (true, _) => Some("must not be empty".to_owned()),
            (false, true) => None,
            (false, false) => Some(format!("may have mixed case, but should otherwise match: {}", wrong.join(","))),
        };
        let field = path.member("kind").field();
        errors.extend(why.map(|why| FieldError::invalid(field, &json!(kind), &why)));
    }
    errors.extend(metadata_errors(object, path));
    errors
}

fn metadata_errors(object: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let Some(metadata) = object.get("metadata") else { return Vec::new() };
    let mut named = Object::from_iter([("metadata".to_owned(), metadata.clone())]);
    if object::meta_text(&named, "name").is_empty() {
        object::set_meta(&mut named, "name", SOME_NAME);
    }
    let mut errors = object::validate::create(&named, Scope::Cluster, names::path_segment);
    for error in &mut errors {
        error.field = format!("{path}.{}", error.field);
    }
    errors
}
