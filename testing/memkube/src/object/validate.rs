//! Validation of metadata.

use super::{Object, deleting, finalizers, meta, meta_text, names};
use crate::registry::{Definition, Scope};
use crate::status::FieldError;
use serde_json::{Value, json};

/// Maximum size of all annotations of an object together, in bytes (apimachinery's `TotalAnnotationSizeLimitB`).
const ANNOTATIONS_BYTES: usize = 256 << 10;

/// API group of CustomResourceDefinitions.
const DEFINITIONS_GROUP: &str = "apiextensions.k8s.io";

/// Finalizers of Kubernetes, which have no domain.
const MCS_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Fields of metadata that an update must not change.
const IMMUTABLE: [&str; 6] =
    ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Function that checks a name, or the prefix of a generated name if the second argument is true.
pub(crate) type CheckName<'a> = dyn Fn(&str, bool) -> Option<&'static str> + 'a;

/// Error `Invalid value` if a check of a text returns the rule that the text breaks.
pub(crate) fn broken(field: impl Into<String>, text: &str, rule: Option<&str>) -> Option<FieldError> {
    rule.map(|rule| FieldError::invalid(field, &json!(text), rule))
}

/// Validates the metadata of a new object. `check_name` is the kind's rule for names.
pub(crate) fn create(object: &Object, definition: &Definition, check_name: &CheckName<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = meta_text(object, "generateName");
    if !prefix.is_empty() {
        errors.extend(broken("metadata.generateName", prefix, check_name(prefix, true)));
    }
    let name = meta_text(object, "name");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(broken("metadata.name", name, check_name(name, false)));
    }
    if definition.scope == Scope::Namespaced {
        let namespace = meta_text(object, "namespace");
        errors.extend(broken("metadata.namespace", namespace, names::label(namespace, false)));
    }
    errors.extend(common(object, definition));
    errors
}

/// Validates the metadata of an update.
pub(crate) fn update(object: &Object, old: &Object, definition: &Definition) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let before: Vec<&str> = finalizers(old).collect();
    if deleting(old) && finalizers(object).any(|finalizer| !before.contains(&finalizer)) {
        let why = "no new finalizers can be added if the object is being deleted";
        errors.push(FieldError::forbidden("metadata.finalizers", why));
    }
    for name in IMMUTABLE {
        let (new, old) = (meta(object, name), meta(old, name));
        if new != old {
            let shown = new.cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid(format!("metadata.{name}"), &shown, "field is immutable"));
        }
    }
    errors.extend(common(object, definition));
    errors
}

/// Returns the errors of checks that apply to new objects and to updates.
fn common(object: &Object, definition: &Definition) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let texts = |name: &str| meta(object, name).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in texts("labels") {
        errors.extend(broken("metadata.labels", key, names::qualified(key)));
        let text = value.as_str().unwrap_or_default();
        errors.extend(broken("metadata.labels", text, names::label_value(text)));
    }
    let mut bytes = 0;
    for (key, value) in texts("annotations") {
        // Check the key in lower case: upper case letters are allowed in the domain of an annotation key, because older
        // objects have such keys.
        errors.extend(broken("metadata.annotations", key, names::qualified(&key.to_lowercase())));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES));
    }
    errors.extend(owner_errors(object));
    errors.extend(finalizer_errors(object, definition));
    errors
}

fn owner_errors(object: &Object) -> Vec<FieldError> {
    let owners = meta(object, "ownerReferences").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    for owner in owners {
        for name in ["apiVersion", "kind", "name", "uid"] {
            if owner[name].as_str().unwrap_or_default().is_empty() {
                let field = format!("metadata.ownerReferences.{name}");
                errors.push(FieldError::invalid(field, &json!(""), "must not be empty"));
            }
        }
    }
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let why = "Only one reference can have Controller set to true";
        errors.push(FieldError::invalid("metadata.ownerReferences", &json!(owners), why));
    }
    errors
}

/// Errors of finalizers. Only custom resources and CustomResourceDefinitions may have a finalizer without a domain that
/// is not a finalizer of Kubernetes.
fn finalizer_errors(object: &Object, definition: &Definition) -> Vec<FieldError> {
    let may_be_plain = definition.custom || definition.group == DEFINITIONS_GROUP;
    let mut errors = Vec::new();
    for (index, finalizer) in finalizers(object).enumerate() {
        errors.extend(broken("metadata.finalizers", finalizer, names::qualified(finalizer)));
        if !may_be_plain && !finalizer.contains('/') && !MCS_FINALIZERS.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), why));
        }
    }
    errors
}
