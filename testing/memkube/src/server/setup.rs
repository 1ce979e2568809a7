//! Content of a new server: built-in kinds and the namespaces that every cluster has.

use super::State;
use crate::object::Object;
use crate::store::Key;
use crate::strategy::builtin;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Namespaces that kube-apiserver creates, in the order of their creation.
const NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "default", "kube-node-lease"];

pub(super) fn install_builtins(state: &mut State, now: Timestamp) {
    for (definition, strategy) in builtin::all() {
        state.registry.register(definition, strategy);
    }
    let now = crate::object::create::timestamp(now);
    for name in NAMESPACES {
        let uid = state.random.uid();
        let namespace = namespace(name, &uid, &now);
        let resource = builtin::namespaces();
        let fields = builtin::namespace_fields(&namespace);
        let stored = state.store.put(&resource, Key::new("", name), namespace, fields);
        stored.expect("four small objects are within any limit");
    }
}

fn namespace(name: &str, uid: &str, now: &str) -> Object {
    let namespace = json!({
        "metadata": {
            "name": name, "uid": uid, "creationTimestamp": now,
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    match namespace {
        Value::Object(namespace) => namespace,
        _ => unreachable!("it is written as one above"),
    }
}
