//! Excess of an imported slice: values that we never write, in fields that we own. Examples are hints, a Node, or an endpoint
//! that is not ready. kube-proxy and others use them, so they count as an edit by hand.

use crate::encode::content;
use crate::names::labels;
use fleetnet_core::model::SliceContent;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Raw values of the fields that we own in an imported slice and that can have an excess.
#[derive(Default, Deserialize, Hash)]
#[serde(default)]
struct Owned {
    endpoints: Value,
    ports: Value,
    metadata: Metadata,
}

#[derive(Default, Deserialize, Hash)]
#[serde(default)]
struct Metadata {
    labels: Value,
}

/// Returns a hash of the owned fields if they have values beyond `of`, the content of the slice; otherwise 0.
pub(super) fn excess(json: &[u8], of: &SliceContent) -> u64 {
    let Ok(Owned { mut endpoints, mut ports, metadata }) = serde_json::from_slice(json) else { return 0 };
    // fault P11.3: leave_out_empty(&mut endpoints) ~>
    leave_out_empty(&mut endpoints);
    leave_out_empty(&mut ports);
    let written = content(of);
    let is_written = |field: &str, found: &Value| {
        written
            .get(field)
            .is_some_and(|written| written == found || found.is_null() && *written == Value::Array(vec![]))
    };
    let mut hidden = metadata.labels.as_object().cloned().unwrap_or_default();
    hidden.retain(|key, _| labels::HIDING.contains(&&**key));
    // fault P11.4: hidden.is_empty() && ~>
    // fault P11.5: && is_written("ports", &ports) ~>
    if hidden.is_empty() && is_written("endpoints", &endpoints) && is_written("ports", &ports) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    (endpoints, ports, Value::Object(hidden)).hash(&mut hasher);
    hasher.finish().max(1)
}

/// Removes values that a server adds to absent fields: null, and an empty object as conditions.
fn leave_out_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(leave_out_empty);
            fields.retain(|_, value| !value.is_null() && *value != Value::Object(Map::new()));
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_empty),
        _ => {}
    }
}
