//! Fields of metadata and their types.

use super::Object;
use crate::strategy::{Findings, Undecodable};
use serde_json::{Map, Value};

#[derive(Clone, Copy)]
enum Shape {
    Text,
    Number,
    /// Map from string to string.
    Texts,
    /// List of strings.
    List,
    /// RFC 3339 time.
    Time,
    Owners,
    /// The list `managedFields`. memkube does not check its items, and drops the field.
    Entries,
}

const MEMBERS: [(&str, Shape); 15] = [
    ("annotations", Shape::Texts),
    ("creationTimestamp", Shape::Time),
    ("deletionGracePeriodSeconds", Shape::Number),
    ("deletionTimestamp", Shape::Time),
    ("finalizers", Shape::List),
    ("generateName", Shape::Text),
    ("generation", Shape::Number),
    ("labels", Shape::Texts),
    ("managedFields", Shape::Entries),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("ownerReferences", Shape::Owners),
    ("resourceVersion", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
];

const OWNER_MEMBERS: [(&str, bool); 6] = [
    ("apiVersion", false),
    ("blockOwnerDeletion", true),
    ("controller", true),
    ("kind", false),
    ("name", false),
    ("uid", false),
];

/// Checks `metadata`. Drops unknown and empty fields, as Go does when it encodes metadata.
///
/// `within` is the prefix of field names in messages: `ObjectMeta.metadata` for built-in kinds, `ObjectMeta` for custom kinds.
pub(crate) fn check(object: &mut Object, within: &str, findings: &mut Findings) -> Result<(), Undecodable> {
    let metadata = match object.remove("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            let place =
                if within == "ObjectMeta" { "value".to_owned() } else { format!("struct field {kind}.metadata") };
            let why = format!("json: cannot unmarshal {} into Go {place} of type v1.ObjectMeta", go_type(&other));
            return Err(Undecodable(why));
        }
    };
    let mut checked = Map::new();
    for (name, value) in metadata {
        let Some((_, shape)) = MEMBERS.iter().find(|(member, _)| *member == name) else {
            findings.strict.push(format!("unknown field \"metadata.{name}\""));
            continue;
        };
        if value.is_null() {
            continue;
        }
        let value = member(&name, *shape, value, within, findings)?;
        if !is_empty(&value) {
            checked.insert(name, value);
        }
    }
    object.insert("metadata".to_owned(), Value::Object(checked));
    Ok(())
}

fn member(name: &str, shape: Shape, value: Value, within: &str, findings: &mut Findings) -> Result<Value, Undecodable> {
    let wrong = |found: &Value, wanted: &str| {
        let found = go_type(found);
        Undecodable(format!("json: cannot unmarshal {found} into Go struct field {within}.{name} of type {wanted}"))
    };
    match (shape, value) {
        (Shape::Text, value @ Value::String(_)) => Ok(value),
        (Shape::Text, value) => Err(wrong(&value, "string")),
        (Shape::Number, value) if value.is_i64() => Ok(value),
        (Shape::Number, value) => Err(wrong(&value, "int64")),
        (Shape::Time, value) => time(value).map_err(|value| match value {
            Value::String(text) => {
                Undecodable(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?}"))
            }
            other => wrong(&other, "string"),
        }),
        (Shape::Texts, Value::Object(mut texts)) => {
            // Go decodes null in a map of strings as an empty string.
            texts.values_mut().filter(|value| value.is_null()).for_each(|value| *value = Value::from(""));
            match texts.values().find(|value| !value.is_string()) {
                Some(other) => Err(wrong(other, "string")),
                None => Ok(Value::Object(texts)),
            }
        }
        (Shape::Texts, value) => Err(wrong(&value, "map[string]string")),
        (Shape::List, Value::Array(items)) => match items.iter().find(|item| !item.is_string()) {
            Some(other) => Err(wrong(other, "string")),
            None => Ok(Value::Array(items)),
        },
        (Shape::List, value) => Err(wrong(&value, "[]string")),
        (Shape::Entries, Value::Array(items)) => match items.iter().find(|item| !item.is_object() && !item.is_null()) {
            Some(other) => Err(wrong(other, "v1.ManagedFieldsEntry")),
            None => Ok(Value::Array(items)),
        },
        (Shape::Entries, value) => Err(wrong(&value, "[]v1.ManagedFieldsEntry")),
        (Shape::Owners, Value::Array(items)) => {
            let owners = items.into_iter().map(|item| owner(item, within, findings));
            Ok(Value::Array(owners.collect::<Result<_, _>>()?))
        }
        (Shape::Owners, value) => Err(wrong(&value, "[]v1.OwnerReference")),
    }
}

/// Rounds a time down to whole seconds in UTC. If the value is not a time, returns the unchanged value as the error.
fn time(value: Value) -> Result<Value, Value> {
    let parsed = value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    parsed.map(|time| Value::from(super::create::timestamp(time))).ok_or(value)
}

fn owner(item: Value, within: &str, findings: &mut Findings) -> Result<Value, Undecodable> {
    let field = |name: &str| format!("{within}.ownerReferences.{name}");
    let Value::Object(item) = item else {
        let found = go_type(&item);
        let field = format!("{within}.ownerReferences");
        let why = format!("json: cannot unmarshal {found} into Go struct field {field} of type v1.OwnerReference");
        return Err(Undecodable(why));
    };
    let mut owner = Map::new();
    for (name, value) in item {
        let Some((_, is_flag)) = OWNER_MEMBERS.iter().find(|(member, _)| *member == name) else {
            findings.strict.push(format!("unknown field \"metadata.ownerReferences[].{name}\""));
            continue;
        };
        let right = if *is_flag { value.is_boolean() } else { value.is_string() };
        if !right && !value.is_null() {
            let wanted = if *is_flag { "bool" } else { "string" };
            let (found, field) = (go_type(&value), field(&name));
            return Err(Undecodable(format!(
                "json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
            )));
        }
        if !value.is_null() {
            owner.insert(name, value);
        }
    }
    // In an owner reference, Go encodes these fields even if they are empty.
    for name in ["apiVersion", "kind", "name", "uid"] {
        owner.entry(name).or_insert_with(|| Value::from(""));
    }
    Ok(Value::Object(owner))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Name of the type of a value in messages of Go's decoder.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
