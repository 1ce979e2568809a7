//! Decoding with the Rust types of built-in kinds: values of the wrong type are rejected, and unknown fields are
//! dropped and reported.

use super::{Findings, Undecodable};
use crate::object::Object;
use crate::object::path::Path;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Fields of metadata that memkube does not store.
const NOT_STORED: [&str; 2] = ["managedFields", "selfLink"];

/// Decodes an object of a built-in kind with the type of its kind.
pub(crate) fn decode<T>(object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable>
where
    T: Serialize + DeserializeOwned,
{
    let metadata = object.remove("metadata");
    let given = Value::Object(std::mem::take(object));
    let decoded = through::<T>(&given, &Path::ROOT, findings)?;
    if let Value::Object(decoded) = decoded {
        *object = decoded;
    }
    object.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    Ok(())
}

/// Decodes `metadata`. Empty texts, lists and maps are dropped, as Go does when it encodes metadata.
pub(crate) fn metadata(object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
    let mut given = object.remove("metadata").filter(|metadata| !metadata.is_null()).unwrap_or_else(|| json!({}));
    if let Value::Object(members) = &mut given {
        NOT_STORED.iter().for_each(|name| drop(members.remove(*name)));
    }
    let mut decoded = through::<ObjectMeta>(&given, &Path::ROOT.member("metadata"), findings)?;
    if let Value::Object(members) = &mut decoded {
        members.retain(|_, value| ![json!(""), json!([]), json!({})].contains(value));
    }
    object.insert("metadata".to_owned(), decoded);
    Ok(())
}

fn through<T>(given: &Value, path: &Path<'_>, findings: &mut Findings) -> Result<Value, Undecodable>
where
    T: Serialize + DeserializeOwned,
{
    let decoded = T::deserialize(given).map_err(|error| Undecodable(error.to_string()))?;
    let mut decoded = serde_json::to_value(decoded).map_err(|error| Undecodable(error.to_string()))?;
    whole_numbers(&mut decoded);
    report_dropped(given, &decoded, path, findings);
    Ok(decoded)
}

/// Adds a finding for each field that the type does not have.
fn report_dropped(given: &Value, decoded: &Value, path: &Path<'_>, findings: &mut Findings) {
    match (given, decoded) {
        (Value::Object(given), Value::Object(decoded)) => {
            for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
                let path = path.member(name);
                match decoded.get(name) {
                    Some(decoded) => report_dropped(value, decoded, &path, findings),
                    None => findings.strict.push(format!("unknown field \"{path}\"")),
                }
            }
        }
        (Value::Array(given), Value::Array(decoded)) => {
            for (index, (given, decoded)) in given.iter().zip(decoded).enumerate() {
                report_dropped(given, decoded, &path.item(index), findings);
            }
        }
        _ => {}
    }
}

/// Converts numbers such as `1.0` to integers, as Go's decoder does.
pub(crate) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            // 2^53: above this limit, floats cannot represent every integer.
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0);
            if let Some(float) = float {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
                let whole = float as i64;
                *value = Value::from(whole);
            }
        }
        _ => {}
    }
}

/// Sets a member of an object to a default if it is absent or null.
pub(crate) fn default(object: &mut Map<String, Value>, name: &str, value: Value) {
    let member = object.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = value;
    }
}
