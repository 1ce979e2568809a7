//! Fields of built-in kinds and their types.
//!
//! [`read`] changes an object in the same way as decoding and encoding in Go:
//!
//! - Unknown fields are dropped and added to the findings.
//! - Values of the wrong type are rejected with the messages of Go.
//! - Each field gets the form that Go writes. The type decides if an empty field is written.

mod times;

use super::{Findings, Undecodable};
use crate::object::Object;
use crate::object::shape::go_type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Type of a field.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// String. The parameter is the name of the Go type, mostly `string`.
    Text(&'static str),
    Flag,
    Int32,
    Int64,
    /// Time in RFC 3339 format with whole seconds.
    Time,
    /// Time in RFC 3339 format with microseconds.
    MicroTime,
    /// Number or name of a port.
    Port,
    /// Bytes, encoded as base64.
    Bytes,
    List(&'static Shape),
    /// Map with string keys.
    Map(&'static Shape),
    Struct(&'static Struct),
    /// Either a bool or a struct.
    FlagOr(&'static Struct),
    /// Any value. The value is not checked.
    Any,
}

pub(super) const TEXT: Shape = Shape::Text("string");
pub(super) const TEXTS: Shape = Shape::List(&TEXT);
pub(super) const TEXT_MAP: Shape = Shape::Map(&TEXT);

/// A Go struct.
pub(super) struct Struct {
    /// Name in messages, for example `v1.ServicePort`.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

/// Field of a struct.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) written: Written,
}

/// Condition under which Go writes a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// If the field is not empty: `omitempty`.
    IfFull,
    /// If the field is present: a pointer with `omitempty`.
    IfPresent,
    /// Always. If the field is absent, Go writes the empty value of its type.
    Always,
}

pub(super) const fn full(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, written: Written::IfFull }
}

pub(super) const fn present(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, written: Written::IfPresent }
}

pub(super) const fn always(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, written: Written::Always }
}

/// Go struct `v1.ObjectReference`, which several kinds use.
pub(super) static REFERENCE: Struct = Struct {
    name: "v1.ObjectReference",
    fields: &[
        full("kind", TEXT),
        full("namespace", TEXT),
        full("name", TEXT),
        full("uid", Shape::Text("types.UID")),
        full("apiVersion", TEXT),
        full("resourceVersion", TEXT),
        full("fieldPath", TEXT),
    ],
};

/// Decodes an object with the fields of its kind. `apiVersion`, `kind` and `metadata` do not change.
pub(super) fn read(kind: &'static Struct, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
    let kept = ["apiVersion", "kind", "metadata"].map(|name| object.remove_entry(name));
    let mut reader = Reader { findings, places: Vec::new(), names: Vec::new() };
    let mut read = reader.members(kind, std::mem::take(object))?;
    read.extend(kept.into_iter().flatten());
    *object = read;
    Ok(())
}

struct Reader<'a> {
    findings: &'a mut Findings,
    /// Path with list indexes, for messages about unknown fields: `spec`, `ports[0]`.
    places: Vec<String>,
    /// Path without list indexes, for messages about wrong types: `spec`, `ports`.
    names: Vec<&'static str>,
}

impl Reader<'_> {
    fn members(
        &mut self,
        kind: &'static Struct,
        mut given: Map<String, Value>,
    ) -> Result<Map<String, Value>, Undecodable> {
        let unknown = given.keys().filter(|name| !kind.fields.iter().any(|field| field.name == **name));
        for name in unknown {
            let place = self.places.iter().map(String::as_str).chain([name.as_str()]);
            let place = place.collect::<Vec<_>>().join(".");
            self.findings.strict.push(format!("unknown field \"{place}\""));
        }
        let mut read = Map::new();
        for field in kind.fields {
            let value = given.remove(field.name).unwrap_or_default();
            self.names.push(field.name);
            self.places.push(field.name.to_owned());
            let value = self.field(kind, field, value)?;
            self.places.pop();
            self.names.pop();
            read.extend(value.map(|value| (field.name.to_owned(), value)));
        }
        Ok(read)
    }

    fn field(&mut self, kind: &'static Struct, field: &Field, value: Value) -> Result<Option<Value>, Undecodable> {
        if value.is_null() {
            return match field.written {
                Written::Always => self.empty(field.shape).map(Some),
                Written::IfFull | Written::IfPresent => Ok(None),
            };
        }
        let value = self.value(kind, field.shape, value)?;
        Ok(match field.written {
            Written::IfFull if is_empty(&value) => None,
            // kube-apiserver returns an empty list from storage as null.
            Written::Always if value.as_array().is_some_and(Vec::is_empty) => Some(Value::Null),
            _ => Some(value),
        })
    }

    /// Value that Go writes for a field without a value.
    fn empty(&mut self, shape: Shape) -> Result<Value, Undecodable> {
        Ok(match shape {
            Shape::Text(_) => Value::from(""),
            Shape::Flag => Value::from(false),
            Shape::Int32 | Shape::Int64 | Shape::Port => Value::from(0),
            Shape::Struct(kind) => Value::Object(self.members(kind, Map::new())?),
            _ => Value::Null,
        })
    }

    fn value(&mut self, kind: &'static Struct, shape: Shape, value: Value) -> Result<Value, Undecodable> {
        match (shape, value) {
            (Shape::Any, value)
            | (Shape::Text(_) | Shape::Port, value @ Value::String(_))
            | (Shape::Flag | Shape::FlagOr(_), value @ Value::Bool(_)) => Ok(value),
            (Shape::Int32 | Shape::Port, Value::Number(number)) if as_int32(&number).is_some() => {
                Ok(Value::Number(number))
            }
            (Shape::Int64, Value::Number(number)) if number.is_i64() => Ok(Value::Number(number)),
            (Shape::Time, Value::String(text)) => times::read(&text, false).map(Value::from).map_err(Undecodable),
            (Shape::MicroTime, Value::String(text)) => times::read(&text, true).map(Value::from).map_err(Undecodable),
            (Shape::Bytes, Value::String(text)) => bytes(text),
            (Shape::List(shape), Value::Array(items)) => self.items(kind, *shape, items),
            (Shape::Map(shape), Value::Object(members)) => {
                let read = members.into_iter().map(|(key, value)| {
                    let value = if value.is_null() { self.empty(*shape)? } else { self.value(kind, *shape, value)? };
                    Ok((key, value))
                });
                read.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            (Shape::Struct(kind) | Shape::FlagOr(kind), Value::Object(members)) => {
                self.members(kind, members).map(Value::Object)
            }
            (_, value) => Err(self.wrong_type(kind, shape, &value)),
        }
    }

    fn items(&mut self, kind: &'static Struct, shape: Shape, items: Vec<Value>) -> Result<Value, Undecodable> {
        let list = self.places.pop().unwrap_or_default();
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            self.places.push(format!("{list}[{index}]"));
            read.push(if item.is_null() { self.empty(shape)? } else { self.value(kind, shape, item)? });
            self.places.pop();
        }
        self.places.push(list);
        Ok(Value::Array(read))
    }

    fn wrong_type(&self, kind: &Struct, shape: Shape, value: &Value) -> Undecodable {
        let within = kind.name.rsplit('.').next().unwrap_or_default();
        let found = match value {
            Value::Number(number) if matches!(shape, Shape::Int32 | Shape::Int64 | Shape::Port) => {
                format!("number {number}")
            }
            other => go_type(other).to_owned(),
        };
        let place = self.names.join(".");
        Undecodable(format!(
            "json: cannot unmarshal {found} into Go struct field {within}.{place} of type {}",
            shape.go_name()
        ))
    }
}

impl Shape {
    /// Name of the type in Go.
    fn go_name(self) -> String {
        match self {
            Self::Text(name) => name.to_owned(),
            Self::Flag => "bool".to_owned(),
            Self::Int32 | Self::Port => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Time | Self::MicroTime => "string".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::List(item) => format!("[]{}", item.go_name()),
            Self::Map(item) => format!("map[string]{}", item.go_name()),
            Self::Struct(kind) | Self::FlagOr(kind) => kind.name.to_owned(),
            Self::Any => "interface {}".to_owned(),
        }
    }
}

fn as_int32(number: &serde_json::Number) -> Option<i32> {
    number.as_i64().and_then(|number| i32::try_from(number).ok())
}

fn bytes(text: String) -> Result<Value, Undecodable> {
    if STANDARD.decode(&text).is_ok() {
        return Ok(Value::from(text));
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let at = text.bytes().position(|byte| !is_letter(&byte)).unwrap_or(text.len());
    Err(Undecodable(format!("illegal base64 data at input byte {at}")))
}

/// True if a value is the zero value of its Go type. `omitempty` leaves out such values.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests;
