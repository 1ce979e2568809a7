//! JSON patch (RFC 6902), with the behaviour of kube-apiserver's library. The library differs from the RFC:
//!
//! - A `replace` of an absent member adds the member.
//! - An index may be negative, and then counts from the end of the list.
//! - An operation cannot address the document as a whole.

use crate::limits;
use serde::Deserialize;
use serde_json::Value;
use std::io;

/// A patch operation as the client sent it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Operation {
    op: String,
    path: String,
    from: Option<String>,
    #[serde(default)]
    value: Value,
}

/// Error of an operation that cannot be applied. Like kube-apiserver, memkube does not report which operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Impossible;

/// Applies operations in order. If an operation fails, the document keeps the effects of the operations before it.
pub(crate) fn apply(document: &mut Value, operations: &[Operation]) -> Result<(), Impossible> {
    let mut copied_bytes = 0;
    operations.iter().try_for_each(|operation| perform(document, operation, &mut copied_bytes))
}

fn perform(document: &mut Value, operation: &Operation, copied_bytes: &mut usize) -> Result<(), Impossible> {
    let path = operation.path.as_str();
    let from = || operation.from.as_deref().ok_or(Impossible);
    match operation.op.as_str() {
        "add" => add(document, path, operation.value.clone()),
        "remove" => remove(document, path).map(drop),
        "replace" => replace(document, path, operation.value.clone()),
        "move" => {
            let value = remove(document, from()?)?;
            add(document, path, value)
        }
        "copy" => {
            let value = get(document, from()?)?.unwrap_or(&Value::Null);
            *copied_bytes += encoded_bytes(value);
            if *copied_bytes > limits::JSON_PATCH_COPY_BYTES {
                return Err(Impossible);
            }
            let value = value.clone();
            add(document, path, value)
        }
        "test" => {
            let found = get(document, path)?.unwrap_or(&Value::Null);
            if *found == operation.value { Ok(()) } else { Err(Impossible) }
        }
        _ => Err(Impossible),
    }
}

/// Size of a value as JSON, in bytes.
fn encoded_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting the bytes cannot fail. A value that cannot be encoded counts as the maximum size, so it exceeds the limit.
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

/// Returns the object or list that contains the value at `path`, and the last part of `path`.
fn container<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Impossible> {
    // Like kube-apiserver's library, ignore text before the first slash.
    let mut parts: Vec<String> = path.split('/').skip(1).map(unescape).collect();
    let last = parts.pop().ok_or(Impossible)?;
    let mut place = document;
    for part in parts {
        place = match place {
            Value::Object(members) => members.get_mut(&part).ok_or(Impossible)?,
            Value::Array(items) => {
                let index = index(&part, items.len())?;
                items.get_mut(index).ok_or(Impossible)?
            }
            _ => return Err(Impossible),
        };
    }
    if place.is_object() || place.is_array() { Ok((place, last)) } else { Err(Impossible) }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Parses an index into a list of this length. A negative index counts from the end.
fn index(part: &str, length: usize) -> Result<usize, Impossible> {
    let number: i64 = part.parse().map_err(|_| Impossible)?;
    match usize::try_from(number) {
        Ok(index) => Ok(index),
        Err(_) => {
            let back = usize::try_from(number.unsigned_abs()).map_err(|_| Impossible)?;
            length.checked_sub(back).ok_or(Impossible)
        }
    }
}

fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, Impossible> {
    let (place, last) = container(document, path)?;
    match place {
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            items.get(index).map(Some).ok_or(Impossible)
        }
        place => Ok(place.get(&last)),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Impossible> {
    let (place, last) = container(document, path)?;
    match place {
        Value::Object(members) => {
            members.insert(last, value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            // An item may be inserted after the last item, at an index equal to the length.
            let index = index(&last, items.len() + 1)?;
            if index > items.len() {
                return Err(Impossible);
            }
            items.insert(index, value);
        }
        _ => return Err(Impossible),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Impossible> {
    let (place, last) = container(document, path)?;
    match place {
        Value::Object(members) => members.remove(&last).ok_or(Impossible),
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            if index < items.len() { Ok(items.remove(index)) } else { Err(Impossible) }
        }
        _ => Err(Impossible),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), Impossible> {
    let (place, last) = container(document, path)?;
    match place {
        Value::Object(members) => {
            members.insert(last, value);
        }
        Value::Array(items) => {
            let index = index(&last, items.len())?;
            *items.get_mut(index).ok_or(Impossible)? = value;
        }
        _ => return Err(Impossible),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Impossible, Operation, apply};
    use serde_json::{Value, json};

    fn patched(document: Value, patch: Value) -> Result<Value, Impossible> {
        let operations: Vec<Operation> = serde_json::from_value(patch).unwrap();
        let mut document = document;
        apply(&mut document, &operations)?;
        Ok(document)
    }

    #[test]
    fn each_operation_does_what_it_says() {
        let document = json!({"a": {"b": 1}, "l": [1, 2]});
        let check = |operation: Value, expected: Value| {
            assert_eq!(patched(document.clone(), json!([operation])), Ok(expected));
        };
        check(json!({"op": "add", "path": "/a/c", "value": 2}), json!({"a": {"b": 1, "c": 2}, "l": [1, 2]}));
        check(json!({"op": "add", "path": "/l/-", "value": 3}), json!({"a": {"b": 1}, "l": [1, 2, 3]}));
        check(json!({"op": "add", "path": "/l/0", "value": 0}), json!({"a": {"b": 1}, "l": [0, 1, 2]}));
        check(json!({"op": "remove", "path": "/a/b"}), json!({"a": {}, "l": [1, 2]}));
        check(json!({"op": "remove", "path": "/l/-1"}), json!({"a": {"b": 1}, "l": [1]}));
        check(json!({"op": "replace", "path": "/a/new", "value": 2}), json!({"a": {"b": 1, "new": 2}, "l": [1, 2]}));
        check(json!({"op": "move", "from": "/a/b", "path": "/c"}), json!({"a": {}, "c": 1, "l": [1, 2]}));
        check(json!({"op": "copy", "from": "/l", "path": "/a/b"}), json!({"a": {"b": [1, 2]}, "l": [1, 2]}));
        check(json!({"op": "test", "path": "/a/b", "value": 1}), document.clone());
        check(json!({"op": "test", "path": "/a/absent", "value": null}), document.clone());
    }

    #[test]
    fn what_cannot_be_done_fails_as_a_whole() {
        let document = json!({"a": {"b": 1}, "l": [1]});
        for operation in [
            json!({"op": "remove", "path": "/a/absent"}),
            json!({"op": "add", "path": "/absent/b", "value": 1}),
            json!({"op": "add", "path": "/l/5", "value": 1}),
            json!({"op": "replace", "path": "/l/1", "value": 1}),
            json!({"op": "test", "path": "/a/b", "value": 2}),
            json!({"op": "add", "path": "", "value": {}}),
            json!({"op": "bogus", "path": "/a"}),
        ] {
            assert_eq!(patched(document.clone(), json!([operation])), Err(Impossible), "{operation}");
        }
    }

    #[test]
    fn what_copies_copy_is_bounded_however_few_they_are() {
        // Each copy doubles the object of 100 bytes. 18 copies would result in 26 MB, which exceeds the limit.
        let doublings = 18;
        let copies: Vec<Value> =
            (0..doublings).map(|index| json!({"op": "copy", "from": "/a", "path": format!("/a/c{index}")})).collect();
        assert_eq!(patched(json!({"a": {"text": "x".repeat(100)}}), json!(copies)), Err(Impossible));
    }

    #[test]
    fn paths_are_unescaped() {
        let document = json!({"a/b": {"c~d": 1}});
        let patch = json!([{"op": "remove", "path": "/a~1b/c~0d"}]);
        assert_eq!(patched(document, patch), Ok(json!({"a/b": {}})));
    }
}
