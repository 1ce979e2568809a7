//! Validation of values against their schema.
//!
//! The order of errors is that of kube-openapi's validators: type, combinations such as `allOf`, string, format,
//! number, list, enum, members. Members are checked in the order of their names; kube-apiserver checks them in any
//! order.

use super::old::OldItems;
use super::{Kind, Node, Path, numbers, texts};
use crate::object::Object;
use crate::status::{FieldError, FieldReason};
use serde_json::Value;

/// Path of the checked value in two parts: `base` is the path of an outer value, and `path` is the path within this outer value.
/// Messages contain only `path`. The field of an error contains both parts.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    base: &'a str,
    pub(super) path: &'a Path<'a>,
}

impl<'a> Place<'a> {
    fn at(self, path: &'a Path<'a>) -> Self {
        Self { path, ..self }
    }

    fn field(self) -> String {
        match (self.base, self.path.to_string()) {
            ("", _) => self.path.field(),
            (base, path) if path.is_empty() => base.to_owned(),
            (base, path) => format!("{base}.{path}"),
        }
    }

    /// Error `Invalid value: <value>: <path> in body <why>`.
    pub(super) fn invalid(self, value: &Value, why: &str) -> FieldError {
        FieldError::invalid(self.field(), value, &format!("{} in body {why}", self.path))
    }

    /// Error `Invalid value: <value>: <why>`, without the path.
    pub(super) fn invalid_plain(self, value: &Value, why: &str) -> FieldError {
        FieldError::invalid(self.field(), value, why)
    }

    /// Error `… in body must be of type <wanted>: <found>`.
    pub(super) fn wrong_type(self, wanted: &str, found: &str) -> FieldError {
        let why = format!("must be of type {wanted}: {found:?}");
        let mut error = self.invalid(&Value::from(found), &why);
        error.reason = FieldReason::TypeInvalid;
        error
    }

    pub(super) fn too_long(self, max: u64) -> FieldError {
        FieldError::too_long(self.field(), usize::try_from(max).unwrap_or(usize::MAX))
    }

    fn too_many(self, found: usize, max: u64) -> FieldError {
        FieldError::too_many(self.field(), found, usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// Error of a combination such as `anyOf`. As in kube-apiserver, the field of this error is the object as a whole.
    fn combination(self, why: &str) -> FieldError {
        let message = format!("Invalid value: \"\": \"{}\" {why}", self.path);
        FieldError {
            field: if self.base.is_empty() { super::path::NOWHERE } else { self.base }.to_owned(),
            reason: FieldReason::Invalid,
            message,
        }
    }
}

/// Validates a whole object.
pub(super) fn object(root: &Node, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    if old == Some(object) {
        return Vec::new();
    }
    let place = Place { base: "", path: &Path::ROOT };
    members(root, object, old, place)
}

/// Validates a part of an object. `base` is the path of this part.
pub(super) fn part(node: &Node, value: &Value, old: Option<&Value>, base: &str) -> Vec<FieldError> {
    let path = &Path::ROOT;
    self::value(node, value, old, Place { base, path })
}

/// Validates a default value without the object that contains it.
pub(super) fn default(node: &Node, value: &Value, base: &str) -> Vec<FieldError> {
    part(node, value, None, base)
}

fn value(node: &Node, value: &Value, old: Option<&Value>, place: Place<'_>) -> Vec<FieldError> {
    let errors = all_errors(node, value, old, place);
    // kube-apiserver ignores the errors of a value that the update does not change.
    if !errors.is_empty() && old == Some(value) { Vec::new() } else { errors }
}

fn all_errors(node: &Node, value: &Value, old: Option<&Value>, place: Place<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(type_error(node, value, place));
    if value.is_null() {
        return errors;
    }
    errors.extend(combinations(node, value, place));
    match value {
        Value::String(text) => errors.extend(texts::errors(node, text, place)),
        Value::Number(number) => errors.extend(numbers::errors(&node.values, number, place)),
        Value::Array(list) => errors.extend(items(node, list, old, place)),
        _ => {}
    }
    errors.extend(enum_error(node, value, place));
    if let Value::Object(object) = value {
        errors.extend(members(node, object, old.and_then(Value::as_object), place));
    }
    errors
}

fn type_error(node: &Node, value: &Value, place: Place<'_>) -> Option<FieldError> {
    let wanted: &[Kind] = match (&node.kind, node.int_or_string) {
        (_, true) => &[Kind::Integer, Kind::String],
        (Some(kind), _) => std::slice::from_ref(kind),
        (None, _) => return None,
    };
    let found = json_type(value);
    let fits = wanted.iter().any(|kind| {
        kind.name() == found || (*kind == Kind::Number && found == "integer") || (value.is_null() && node.nullable)
    });
    if fits {
        return None;
    }
    if let (Some(format), false) = (&node.values.format, value.is_null() || value.is_string() || value.is_array()) {
        return Some(place.wrong_type(format.name(), go_format(value)));
    }
    let wanted: Vec<&str> = wanted.iter().map(|kind| kind.name()).collect();
    Some(place.wrong_type(&wanted.join(","), found))
}

/// JSON type of a value. A number without a fraction is an integer if it fits in 64 bits.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if numbers::is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Name that kube-openapi gives to the type of a value in messages about formats.
fn go_format(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if numbers::is_integer(number) => "int64",
        Value::Number(_) => "double",
        _ => "",
    }
}

fn combinations(node: &Node, value: &Value, place: Place<'_>) -> Vec<FieldError> {
    let values = &node.values;
    let mut errors = Vec::new();
    let of = |branch: &Node| all_errors(branch, value, None, place);
    if !values.any_of.is_empty() && !values.any_of.iter().any(|branch| of(branch).is_empty()) {
        errors.push(place.combination("must validate at least one schema (anyOf)"));
        errors.extend(values.any_of.first().map(of).unwrap_or_default());
    }
    if !values.one_of.is_empty() {
        let valid = values.one_of.iter().filter(|branch| of(branch).is_empty()).count();
        if valid == 0 {
            let why = "must validate one and only one schema (oneOf). Found none valid";
            errors.push(place.combination(why));
            errors.extend(values.one_of.first().map(of).unwrap_or_default());
        } else if valid > 1 {
            let why = format!("must validate one and only one schema (oneOf). Found {valid} valid alternatives");
            errors.push(place.combination(&why));
        }
    }
    let broken: Vec<FieldError> = values.all_of.iter().flat_map(of).collect();
    if !broken.is_empty() {
        errors.extend(broken);
        errors.push(place.combination("must validate all the schemas (allOf)"));
    }
    if values.not.as_deref().is_some_and(|branch| of(branch).is_empty()) {
        errors.push(place.combination("must not validate the schema (not)"));
    }
    errors
}

fn enum_error(node: &Node, value: &Value, place: Place<'_>) -> Option<FieldError> {
    let allowed = node.values.allowed.as_ref()?;
    if allowed.contains(value) {
        return None;
    }
    let shown = allowed.iter().map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let shown: Vec<String> = shown.collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    Some(FieldError::not_supported(place.field(), value, &shown))
}

fn items(node: &Node, list: &[Value], old: Option<&Value>, place: Place<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(item_node) = &node.items {
        let old_items = OldItems::of(node, old);
        for (index, item) in list.iter().enumerate() {
            let path = place.path.item(index);
            errors.extend(value(item_node, item, old_items.get(item), place.at(&path)));
        }
    }
    let found = Value::from(list.len());
    match (node.values.items_min, node.values.items_max) {
        (Some(min), _) if (list.len() as u64) < min => {
            errors.push(place.invalid(&found, &format!("should have at least {min} items")));
        }
        (_, Some(max)) if list.len() as u64 > max => errors.push(place.too_many(list.len(), max)),
        _ => {}
    }
    errors
}

fn members(node: &Node, object: &Object, old: Option<&Object>, place: Place<'_>) -> Vec<FieldError> {
    let count = object.len();
    match (node.values.members_min, node.values.members_max) {
        (Some(min), _) if (count as u64) < min => {
            let why = format!("should have at least {min} properties");
            return vec![place.invalid(&Value::from(count), &why)];
        }
        (_, Some(max)) if count as u64 > max => return vec![place.too_many(count, max)],
        _ => {}
    }
    let mut errors = Vec::new();
    for (name, member) in object {
        let Some(member_node) = node.properties.get(name).or(node.additional.as_deref()) else { continue };
        let path = place.path.member(name);
        let old = old.and_then(|old| old.get(name));
        errors.extend(value(member_node, member, old, place.at(&path)));
    }
    for name in &node.values.required {
        if !object.contains_key(name) {
            let path = place.path.member(name);
            errors.push(FieldError::required(place.at(&path).field(), ""));
        }
    }
    errors
}
