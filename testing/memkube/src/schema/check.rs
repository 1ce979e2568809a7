//! Validation of values against their schema. Members are checked in the order of their names; kube-apiserver checks
//! them in any order.

use super::{NOWHERE, Node};
use crate::object::Object;
use crate::object::path::Path;
use crate::status::{FieldError, FieldReason};
use serde_json::{Number, Value};
use std::collections::BTreeSet;

/// Validates a whole object. Errors of values that are the same in the old object are ignored.
pub(super) fn object(root: &Node, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    if old == Some(object) { Vec::new() } else { members(root, object, old, &Path::ROOT) }
}

/// Validates the given members of an object. Other members may be absent, even if they are required.
pub(super) fn given_members(node: &Node, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, member) in object {
        if let Some(node) = node.member(name) {
            errors.extend(value(node, member, old.and_then(|old| old.get(name)), &Path::ROOT.member(name)));
        }
    }
    errors
}

/// Validates one value. `old` is the value that the update replaces.
pub(super) fn value(node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = type_error(node, value, path).into_iter().collect();
    if value.is_null() {
        return errors;
    }
    errors.extend(combinations(node, value, path));
    match value {
        Value::String(text) => errors.extend(text_errors(node, text, path)),
        Value::Number(number) => errors.extend(number_errors(node, number, path)),
        Value::Array(list) => errors.extend(items(node, list, old, path)),
        Value::Object(object) => errors.extend(members(node, object, old.and_then(Value::as_object), path)),
        _ => {}
    }
    if let Some(allowed) = node.allowed.as_ref().filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        errors.push(FieldError::not_supported(path.to_string(), value, &allowed));
    }
    if old == Some(value) { Vec::new() } else { errors }
}

fn invalid(path: &Path<'_>, value: &Value, why: &str) -> FieldError {
    FieldError::invalid(path.to_string(), value, &format!("{path} in body {why}"))
}

fn type_error(node: &Node, value: &Value, path: &Path<'_>) -> Option<FieldError> {
    let found = match value {
        Value::Null if node.nullable() => return None,
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = match node.given.type_.as_deref() {
        _ if node.int_or_string() => matches!(found, "integer" | "string"),
        None => true,
        Some("number") => matches!(found, "integer" | "number"),
        Some(wanted) => wanted == found,
    };
    let wanted = node.given.type_.as_deref().unwrap_or("integer or string");
    let message = format!("Invalid value: {found:?}: {path} in body must be of type {wanted}: {found:?}");
    (!fits).then(|| FieldError::new(path.to_string(), FieldReason::TypeInvalid, message))
}

fn combinations(node: &Node, value: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let of = |branch: &Node| self::value(branch, value, None, path);
    let valid = |branches: &[Node]| branches.iter().filter(|branch| of(branch).is_empty()).count();
    let mut errors = Vec::new();
    let mut require = |holds: bool, why: &str, branch: Option<&Node>| {
        if !holds {
            errors.push(FieldError::new(NOWHERE, FieldReason::Invalid, format!("Invalid value: \"{path}\": {why}")));
            errors.extend(branch.map(of).unwrap_or_default());
        }
    };
    let any = node.any_of.is_empty() || valid(&node.any_of) > 0;
    require(any, "must validate at least one schema (anyOf)", node.any_of.first());
    let one = if node.one_of.is_empty() { 1 } else { valid(&node.one_of) };
    require(one == 1, "must validate one and only one schema (oneOf)", node.one_of.first().filter(|_| one == 0));
    let broken = node.all_of.iter().find(|branch| !of(branch).is_empty());
    require(broken.is_none(), "must validate all the schemas (allOf)", broken);
    let not = node.not.as_deref().is_some_and(|branch| of(branch).is_empty());
    require(!not, "must not validate the schema (not)", None);
    errors
}

fn text_errors(node: &Node, text: &str, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given = &node.given;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let mut invalid = |why: String| errors.push(invalid(path, &Value::from(text), &why));
    if let Some(max) = given.max_length.filter(|max| length > *max) {
        errors.push(FieldError::too_long(path.to_string(), max));
    } else if let Some(min) = given.min_length.filter(|min| length < *min) {
        invalid(format!("should be at least {min} chars long"));
    } else if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        invalid(format!("should match '{pattern}'"));
    }
    // Only times have a format that memkube checks.
    let separated = text.as_bytes().get(10).is_some_and(|byte| matches!(byte, b'T' | b't'));
    if given.format.as_deref() == Some("date-time") && !(separated && text.parse::<jiff::Timestamp>().is_ok()) {
        let message = format!("Invalid value: {text:?}: {path} in body must be of type date-time: {text:?}");
        errors.push(FieldError::new(path.to_string(), FieldReason::TypeInvalid, message));
    }
    errors
}

fn number_errors(node: &Node, number: &Number, path: &Path<'_>) -> Vec<FieldError> {
    let given = &node.given;
    let Some(float) = number.as_f64() else { return Vec::new() };
    let above = given.maximum.filter(|max| float > *max || (given.exclusive_maximum == Some(true) && float >= *max));
    let below = given.minimum.filter(|min| float < *min || (given.exclusive_minimum == Some(true) && float <= *min));
    let uneven = given.multiple_of.filter(|factor| (float / factor).fract() != 0.0);
    let bounds = [("less than or equal to", above), ("greater than or equal to", below), ("a multiple of", uneven)];
    let broken = bounds.into_iter().filter_map(|(words, bound)| Some((words, bound?)));
    let value = Value::Number(number.clone());
    broken.map(|(words, bound)| invalid(path, &value, &format!("should be {words} {bound}"))).collect()
}

fn items(node: &Node, list: &[Value], old: Option<&Value>, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let before = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let keyed = node.given.x_kubernetes_list_type.as_deref() == Some("map");
    if let Some(item_node) = &node.items {
        for (index, item) in list.iter().enumerate() {
            let wrong = value(item_node, item, None, &path.item(index));
            let unchanged = !wrong.is_empty() && keyed && before.contains(item);
            errors.extend(wrong.into_iter().filter(|_| !unchanged));
        }
    }
    let (given, count) = (&node.given, list.len());
    let length = i64::try_from(count).unwrap_or(i64::MAX);
    if let Some(min) = given.min_items.filter(|min| length < *min) {
        let why = format!("should have at least {min} items");
        errors.push(invalid(path, &Value::from(count), &why));
    } else if let Some(max) = given.max_items.filter(|max| length > *max) {
        errors.push(FieldError::too_many(path.to_string(), count, max));
    }
    let twice = duplicates(node, list, path);
    if !twice.is_empty() && duplicates(node, before, path).is_empty() {
        errors.extend(twice);
    }
    errors
}

/// Errors of items that a list of type set or map has twice.
fn duplicates(node: &Node, list: &[Value], path: &Path<'_>) -> Vec<FieldError> {
    let given = &node.given;
    let keys = match given.x_kubernetes_list_type.as_deref() {
        Some("set") => None,
        Some("map") => given.x_kubernetes_list_map_keys.as_ref(),
        _ => return Vec::new(),
    };
    let key = |item: &Value| match keys {
        None => item.clone(),
        Some(keys) => keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect(),
    };
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    let mut errors = Vec::new();
    for (index, key) in list.iter().map(key).enumerate() {
        let text = key.to_string();
        if !seen.insert(text.clone()) && twice.insert(text) {
            errors.push(FieldError::duplicate(path.item(index).to_string(), &key));
        }
    }
    errors
}

fn members(node: &Node, object: &Object, old: Option<&Object>, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (given, count) = (&node.given, object.len());
    let length = i64::try_from(count).unwrap_or(i64::MAX);
    if let Some(min) = given.min_properties.filter(|min| length < *min) {
        let why = format!("should have at least {min} properties");
        errors.push(invalid(path, &Value::from(count), &why));
    } else if let Some(max) = given.max_properties.filter(|max| length > *max) {
        errors.push(FieldError::too_many(path.to_string(), count, max));
    }
    for (name, member) in object {
        let Some(member_node) = node.member(name) else { continue };
        errors.extend(value(member_node, member, old.and_then(|old| old.get(name)), &path.member(name)));
    }
    let absent = given.required.iter().flatten().filter(|name| !object.contains_key(*name));
    errors.extend(absent.map(|name| FieldError::required(path.member(name).to_string(), "")));
    errors
}
