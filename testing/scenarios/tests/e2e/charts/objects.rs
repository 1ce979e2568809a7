//! Objects of manifests by kind, namespace and name, without the labels and annotations that only Helm writes.

use anyhow::{Context as _, ensure};
use kube::core::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;

/// Objects by their names in messages, such as `Role fleet-system/fleetnet-hub-agent`.
pub(super) type Objects = BTreeMap<String, Value>;

/// Labels that a release of Helm adds to its objects.
const LABELS: [&str; 4] =
    ["app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"];
/// Annotation with which Helm keeps an object.
const KEEP: &str = "helm.sh/resource-policy";

/// Returns the objects by their names.
///
/// # Errors
/// If two objects have the same kind, namespace and name.
pub(super) fn by_name(objects: Vec<DynamicObject>) -> anyhow::Result<Objects> {
    let mut by_name = Objects::new();
    for object in objects {
        let kind = object.types.as_ref().context("an object has a kind")?.kind.clone();
        let name = object.metadata.name.as_deref().context("an object has a name")?;
        let namespace = object.metadata.namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
        let name = format!("{kind} {namespace}{name}");
        let twice = by_name.insert(name.clone(), serde_json::to_value(object)?).is_some();
        ensure!(!twice, "{name} is there twice");
    }
    Ok(by_name)
}

/// Removes the labels and annotations of Helm.
pub(super) fn without_helm(mut objects: Objects) -> Objects {
    for object in objects.values_mut() {
        for label in LABELS {
            remove(object, "labels", label);
        }
        remove(object, "annotations", KEEP);
    }
    objects
}

/// Removes a label or an annotation. `field` is `labels` or `annotations`.
fn remove(object: &mut Value, field: &str, key: &str) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) else { return };
    entries.remove(key);
    if entries.is_empty() {
        metadata.remove(field);
    }
}
