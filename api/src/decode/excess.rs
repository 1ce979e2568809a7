//! Excess of an imported slice: values that the agents never write, in fields that the agents own. Examples are hints,
//! a node name, or an endpoint that is not ready. kube-proxy and other readers use such values, so the agents treat
//! them as an edit.

use crate::encode::content;
use crate::names::labels;
use fleetnet_core::model::EndpointSlice;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Raw values of the fields of an imported slice that the agents own and that can have an excess.
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

/// Returns 0 if the fields that the agents own have only values that the agents write for the content of the slice.
/// Otherwise returns a hash of these fields.
pub(super) fn excess(json: &[u8], slice: &EndpointSlice) -> u64 {
    let Ok(Owned { mut endpoints, mut ports, metadata }) = serde_json::from_slice(json) else { return 0 };
    leave_out_empty(&mut endpoints);
    leave_out_empty(&mut ports);
    let written = content(&slice.content);
    let is_written = |field: &str, found: &Value| {
        written
            .get(field)
            .is_some_and(|written| written == found || found.is_null() && *written == Value::Array(vec![]))
    };
    let mut hidden = metadata.labels.as_object().cloned().unwrap_or_default();
    let is_headless = slice.service.is_none() && slice.mcs.is_some();
    let is_own = |key: &str| is_headless && key == labels::HEADLESS;
    hidden.retain(|key, _| labels::HIDING.contains(&&**key) && !is_own(key));
    if hidden.is_empty() && is_written("endpoints", &endpoints) && is_written("ports", &ports) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    (endpoints, ports, Value::Object(hidden)).hash(&mut hasher);
    hasher.finish().max(1)
}

/// Removes values that mean the same as an absent field: null, and an empty object (such as empty conditions).
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
