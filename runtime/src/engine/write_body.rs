//! Content of a write: a JSON object that is serialized once, also if several writes send it.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use fleetnet_types::trace::ANNOTATION;
use serde_json::{Map, Value};

/// JSON object that a write sends. Clones share the text and its hashes. So writes of the same content to several
/// objects cost one serialization.
#[derive(Clone, Debug)]
pub struct WriteBody(Arc<Serialized>);

#[derive(Debug)]
struct Serialized {
    value: Value,
    /// Fields of `metadata`, without braces.
    metadata: String,
    /// The other fields, without braces.
    others: String,
    content: u64,
    timeless: u64,
}

impl From<Value> for WriteBody {
    fn from(value: Value) -> Self {
        let mut others = value.as_object().cloned().unwrap_or_default();
        let metadata = others.remove("metadata").and_then(|metadata| metadata.as_object().cloned()).unwrap_or_default();
        let (metadata, others) = (fields(metadata), fields(others));
        let hash = |hash: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            hash(&mut hasher);
            hasher.finish()
        };
        let untraced = untraced(&value);
        let content = hash(&|hasher| untraced.hash(hasher));
        let timeless = hash(&|hasher| hash_without_times(&untraced, hasher));
        Self(Arc::new(Serialized { value, metadata, others, content, timeless }))
    }
}

impl PartialEq for WriteBody {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl Deref for WriteBody {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl WriteBody {
    /// Returns a hash of the content. The hash is the same in every process.
    pub(crate) fn content(&self) -> u64 {
        self.0.content
    }

    /// Returns a hash of the content that ignores timestamps.
    pub(crate) fn timeless(&self) -> u64 {
        self.0.timeless
    }

    /// Returns the JSON of the whole object.
    pub(crate) fn json(&self) -> Vec<u8> {
        self.with_metadata("")
    }

    /// Returns the JSON of the object with this resourceVersion as the precondition.
    pub(crate) fn json_at(&self, resource_version: u64) -> Vec<u8> {
        self.with_metadata(&format!("\"resourceVersion\":\"{resource_version}\""))
    }

    fn with_metadata(&self, first: &str) -> Vec<u8> {
        let Serialized { metadata, others, .. } = &*self.0;
        let between = |one: &str, other: &str| if one.is_empty() || other.is_empty() { "" } else { "," };
        let (in_metadata, before_others) = (between(first, metadata), between("metadata", others));
        format!("{{\"metadata\":{{{first}{in_metadata}{metadata}}}{before_others}{others}}}").into_bytes()
    }
}

/// Returns a body without the annotation for traces. It is no content: a plan that differs only in it needs no write.
fn untraced(value: &Value) -> Cow<'_, Value> {
    if value["metadata"]["annotations"].get(ANNOTATION).is_none() {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    for (parent, key) in [("/metadata/annotations", ANNOTATION), ("/metadata", "annotations"), ("", "metadata")] {
        let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
        let is_left = fields.get(key).and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
        if !is_left {
            fields.remove(key);
        }
    }
    Cow::Owned(value)
}

fn hash_without_times(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            fields.len().hash(hasher);
            for (name, value) in fields {
                name.hash(hasher);
                hash_without_times(value, hasher);
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_without_times(item, hasher));
        }
        Value::String(text) => match without_leading_time(text) {
            Some(rest) => ("a time", rest).hash(hasher),
            None => text.hash(hasher),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => value.hash(hasher),
    }
}

/// Returns the text after a leading timestamp (RFC 3339, UTC). `None` if the text does not start with a timestamp.
fn without_leading_time(text: &str) -> Option<&str> {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let (seconds, rest) = text.split_at_checked(FORM.len())?;
    let is_alike = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    if !seconds.bytes().zip(FORM).all(is_alike) {
        return None;
    }
    let fraction = rest.strip_prefix('.').map(|rest| rest.trim_start_matches(|char: char| char.is_ascii_digit()));
    fraction.unwrap_or(rest).strip_prefix('Z')
}

/// Returns the JSON of an object without its braces.
fn fields(object: Map<String, Value>) -> String {
    let mut text = Value::Object(object).to_string();
    text.pop();
    text.remove(0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(json: &[u8]) -> Value {
        serde_json::from_slice(json).expect("it is JSON")
    }

    #[test]
    fn the_json_has_the_fields_of_the_value_and_the_precondition() {
        let table = [
            json!({}),
            json!({"metadata": {}}),
            json!({"spec": {"a": [1, null]}}),
            json!({"metadata": {"finalizers": ["x"], "labels": {"resourceVersion": "}"}}}),
            json!({"apiVersion": "v1", "metadata": {"name": "\u{0}\"{"}, "spec": {"b": "metadata"}}),
        ];
        for value in table {
            let body = WriteBody::from(value.clone());
            let mut expected = value;
            if expected.get("metadata").is_none() {
                expected["metadata"] = json!({});
            }
            assert_eq!(parsed(&body.json()), expected);
            expected["metadata"]["resourceVersion"] = json!("7");
            assert_eq!(parsed(&body.json_at(7)), expected);
        }
    }

    #[test]
    fn equal_values_have_equal_hashes_and_only_times_are_left_out_of_the_timeless_one() {
        let body = |text: &str| WriteBody::from(json!({"spec": {"at": text}}));
        let (one, later) = (body("2026-11-23T10:00:00Z"), body("2026-11-23T10:00:01Z"));
        assert_eq!((one.content(), one.timeless()), (body("2026-11-23T10:00:00Z").content(), later.timeless()));
        assert_ne!(one.content(), later.content());
        assert_ne!(one.timeless(), body("else").timeless());
    }

    #[test]
    fn the_annotation_for_traces_is_sent_and_is_no_content() {
        let table = [
            (json!({"spec": {}}), json!({"metadata": {"annotations": {ANNOTATION: "00-1"}}, "spec": {}})),
            (json!({"spec": {}}), json!({"metadata": {"annotations": {ANNOTATION: null}}, "spec": {}})),
            (
                json!({"metadata": {"name": "a", "annotations": {"b": "1"}}}),
                json!({"metadata": {"name": "a", "annotations": {"b": "1", ANNOTATION: "00-1"}}}),
            ),
        ];
        for (without, with) in table {
            let [without, traced] = [without, with.clone()].map(WriteBody::from);
            assert_eq!((without.content(), without.timeless()), (traced.content(), traced.timeless()), "{with}");
            assert_eq!(parsed(&traced.json()), with);
        }
        let other = |value: &str| WriteBody::from(json!({"metadata": {"annotations": {"b": value}}}));
        assert_ne!(other("1").content(), other("2").content());
    }
}
