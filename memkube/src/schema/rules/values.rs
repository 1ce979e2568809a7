//! Conversion from JSON to CEL values.

use super::super::formats::Format;
use super::super::{Kind, Node};
use super::Members;
use crate::object::Object;
use kube::core::cel::cel::Value as Cel;
use kube::core::cel::cel::objects::{Key, Map};
use serde_json::{Number, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Reserved words of CEL. In rules, a member with such a name is written with underscores, for example `__in__`.
const RESERVED: [&str; 17] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
];
const MORE_RESERVED: [&str; 4] = ["return", "var", "void", "while"];

pub(super) fn value(node: Option<&Node>, value: &Value, members: &Members) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(own) => number(node, own),
        Value::String(text) => self::text(node, text),
        Value::Array(items) => {
            let node = node.and_then(|node| node.items.as_deref());
            let items = items.iter().map(|item| self::value(node, item, &Members::All));
            Cel::List(Arc::new(items.collect()))
        }
        Value::Object(object) => self::object(node, object, members),
    }
}

pub(super) fn object(node: Option<&Node>, object: &Object, members: &Members) -> Cel {
    let is_map = node.is_some_and(|node| node.additional.is_some() || node.any_additional);
    let mut map = HashMap::with_capacity(object.len());
    for (name, member) in object {
        // Keys of a map are data, so rules use these keys without escapes.
        let key = if is_map { name.clone() } else { escaped(name) };
        if !members.contains(&key) {
            continue;
        }
        let node = node.and_then(|node| node.properties.get(name).or(node.additional.as_deref()));
        map.insert(Key::String(Arc::new(key)), value(node, member, &Members::All));
    }
    Cel::Map(Map { map: Arc::new(map) })
}

fn number(node: Option<&Node>, number: &Number) -> Cel {
    let float = node.is_some_and(|node| node.kind == Some(Kind::Number));
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) if !float => Cel::Int(whole),
        (None, Some(whole)) if !float => Cel::UInt(whole),
        _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn text(node: Option<&Node>, text: &str) -> Cel {
    let format = node.filter(|node| !node.int_or_string).and_then(|node| node.values.format);
    let converted = match format {
        Some(Format::DateTime) => chrono::DateTime::parse_from_rfc3339(text).ok().map(Cel::Timestamp),
        Some(Format::Date) => {
            let midnight = chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z"));
            midnight.ok().map(Cel::Timestamp)
        }
        Some(Format::Duration) => {
            let span = text.parse::<jiff::SignedDuration>().ok();
            span.and_then(|span| chrono::Duration::new(span.as_secs(), span.subsec_nanos().unsigned_abs()))
                .map(Cel::Duration)
        }
        Some(Format::Byte) => {
            let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text);
            bytes.ok().map(|bytes| Cel::Bytes(Arc::new(bytes)))
        }
        _ => None,
    };
    converted.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

/// Returns the name of an object's field, escaped as in CEL validation rules (for example `__namespace__`).
fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) || MORE_RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let plain = !name.contains("__") && !name.contains(['.', '-', '/']);
    if plain {
        return name.to_owned();
    }
    let replaced = name.replace("__", "__underscores__").replace('.', "__dot__");
    replaced.replace('-', "__dash__").replace('/', "__slash__")
}
