//! Lists of type set and map, which must not contain duplicates.

use super::old::map_key;
use super::{ListType, Node, Path};
use crate::object::Object;
use crate::status::FieldError;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn errors(root: &Node, object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    members(root, object, &Path::ROOT, &mut errors);
    errors
}

fn members(node: &Node, object: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, member) in object {
        if let Some(node) = node.properties.get(name) {
            value(node, member, &path.member(name), errors);
        } else if let Some(node) = &node.additional {
            value(node, member, &path.key(name), errors);
        }
    }
}

fn value(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(object) => members(node, object, path, errors),
        Value::Array(items) => {
            errors.extend(list_errors(node, items, path));
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    self::value(node, item, &path.item(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn list_errors(node: &Node, items: &[Value], path: &Path<'_>) -> Vec<FieldError> {
    match &node.list {
        ListType::Atomic => Vec::new(),
        ListType::Set => duplicates(items.iter().cloned(), path),
        ListType::Map(keys) => {
            let wrong = items.iter().enumerate().filter(|(_, item)| !item.is_object() && !item.is_null());
            let wrong: Vec<FieldError> = wrong
                .map(|(index, item)| {
                    let why = "must be an object for an array of list-type map";
                    FieldError::invalid(path.item(index).field(), item, why)
                })
                .collect();
            let none_wrong = wrong.is_empty() && items.iter().all(Value::is_object);
            if none_wrong { duplicates(items.iter().map(|item| map_key(keys, item)), path) } else { wrong }
        }
    }
}

/// Returns one error for each duplicate value, at its second occurrence.
fn duplicates(values: impl Iterator<Item = Value>, path: &Path<'_>) -> Vec<FieldError> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut errors = Vec::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(path.item(index).field(), &value));
        }
    }
    errors
}
