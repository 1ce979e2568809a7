//! Decoder for request bodies in the protobuf form of Kubernetes.
//!
//! `kubectl create <kind>` and Go's typed clients send protobuf for built-in kinds, and do not retry with JSON. memkube
//! decodes the kinds that kubectl creates in this way. Responses are always JSON, which these clients accept.

mod messages;

use crate::strategy::shape::is_empty;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messages::{Field, Form, Shape};
use serde_json::{Map, Value, json};

/// Content type of protobuf bodies.
pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Prefix of every protobuf body of Kubernetes.
const MAGIC: &[u8] = b"k8s\0";

/// Reason why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The body is not protobuf of Kubernetes.
    #[error("the body is broken protobuf")]
    Broken,
    /// The body has a kind or field that memkube does not support.
    #[error("protobuf is not held for {0}: send application/json")]
    NotHeld(String),
}

/// Decodes a body into JSON with `apiVersion` and `kind`.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Error> {
    let envelope = body.strip_prefix(MAGIC).ok_or(Error::Broken)?;
    let envelope = message(envelope, messages::UNKNOWN, "the envelope")?;
    let text = |pointer| envelope.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/typeMeta/apiVersion"), text("/typeMeta/kind"));
    let shown = || format!("{kind} in version \"{api_version}\"");
    let fields = messages::of_kind(api_version, kind).ok_or_else(|| Error::NotHeld(shown()))?;
    let raw = STANDARD.decode(text("/raw")).map_err(|_| Error::Broken)?;
    let mut object = message(&raw, fields, kind)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

/// Decodes a message into JSON.
///
/// Go encodes fields that are not pointers even if they are not set. So a zero or empty value counts as absent, as in JSON.
fn message(mut bytes: &[u8], fields: &[Field], name: &str) -> Result<Value, Error> {
    let mut members = Map::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let content = match key & 7 {
            0 => Content::Number(varint(&mut bytes)?),
            2 => Content::Bytes(chunk(&mut bytes)?),
            _ => return Err(Error::Broken),
        };
        let number = key >> 3;
        let known = fields.iter().find(|field| field.number == number);
        let field = known.ok_or_else(|| Error::NotHeld(format!("field {number} of {name}")))?;
        let Some(value) = value(field, &content)? else {
            continue;
        };
        match (field.form, value) {
            (Form::Value, value) if is_empty(&value) => {}
            (Form::Value | Form::Pointer, value) => {
                members.insert(field.name.to_owned(), value);
            }
            (Form::List, value) => {
                if let Value::Array(items) = members.entry(field.name).or_insert_with(|| json!([])) {
                    items.push(value);
                }
            }
            (Form::Map, entry) => {
                let entries = members.entry(field.name).or_insert_with(|| json!({}));
                let key = entry["key"].as_str().unwrap_or_default();
                entries[key] = entry.get("value").cloned().unwrap_or_else(|| json!(""));
            }
        }
    }
    Ok(Value::Object(members))
}

/// Encoded value of a field.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn value(field: &Field, content: &Content<'_>) -> Result<Option<Value>, Error> {
    Ok(Some(match (&field.shape, content) {
        (Shape::Ignored, _) => return Ok(None),
        // Negative numbers are encoded as two's complement with 64 bits.
        (Shape::Number, Content::Number(number)) => json!(number.cast_signed()),
        (Shape::Flag, Content::Number(number)) => json!(*number != 0),
        (Shape::Text, Content::Bytes(bytes)) => json!(str::from_utf8(bytes).map_err(|_| Error::Broken)?),
        (Shape::Bytes, Content::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Shape::Message(fields), Content::Bytes(bytes)) => message(bytes, fields, field.name)?,
        (Shape::IntOrString, Content::Bytes(bytes)) => {
            let parts = message(bytes, messages::INT_OR_STRING, field.name)?;
            let part = |name| parts.get(name).cloned();
            match parts.get("type") {
                None => part("intVal").unwrap_or_else(|| json!(0)),
                Some(_) => part("strVal").unwrap_or_else(|| json!("")),
            }
        }
        _ => return Err(Error::Broken),
    }))
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or(Error::Broken)?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Error::Broken)
}

fn chunk<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let length = usize::try_from(varint(bytes)?).map_err(|_| Error::Broken)?;
    let (chunk, rest) = bytes.split_at_checked(length).ok_or(Error::Broken)?;
    *bytes = rest;
    Ok(chunk)
}

#[cfg(test)]
mod tests;
