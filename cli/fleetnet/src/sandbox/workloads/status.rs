//! Parts that the status and the metadata of several kinds share. Does no I/O.

use super::cluster::{items, text};
use jiff::Timestamp;
use serde_json::{Value, json};

/// True if the object's status lacks a part of the wanted status. Servers leave out empty values and add fields.
pub(super) fn differs(object: &Value, status: &Value) -> bool {
    !has(&object["status"], status)
}

fn has(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| has(present.get(name).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len() && present.iter().zip(wanted).all(|(present, wanted)| has(present, wanted))
        }
        (Value::Null, wanted) => [json!(null), json!(0), json!(""), json!(false)].contains(wanted),
        (present, wanted) => present == wanted,
    }
}

/// Returns the reference to the object's controller, which has `apiVersion` `apps/v1`.
pub(super) fn controller_reference(owner: &Value, kind: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "name": text(owner, "/metadata/name"), "uid": text(owner, "/metadata/uid"),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Wanted condition: type, status and reason. An empty reason is left out.
pub(super) type Wanted<'a> = (&'a str, bool, &'a str);

/// Returns the conditions of an object with these ones among them. The conditions of others stay as they are.
pub(super) fn conditions(object: &Value, wanted: &[Wanted<'_>], now: Timestamp) -> Value {
    let old = || items(object, "/status/conditions");
    let others = old().filter(|old| wanted.iter().all(|(kind, ..)| old["type"] != *kind)).cloned();
    let own = wanted.iter().map(|(kind, is_true, reason)| {
        let status = if *is_true { "True" } else { "False" };
        let before = old().find(|old| old["type"] == *kind);
        let since =
            before.filter(|before| before["status"] == status).map(|before| before["lastTransitionTime"].clone());
        let mut condition =
            json!({"type": kind, "status": status, "lastTransitionTime": since.unwrap_or_else(|| json!(seconds(now)))});
        if !reason.is_empty() {
            condition["reason"] = json!(reason);
        }
        condition
    });
    own.chain(others).collect()
}

/// Formats a time as objects have it, with whole seconds.
pub(super) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
