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
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Fields of metadata that an update must not change.
const IMMUTABLE: [&str; 6] =
    ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Validates the metadata of a new object. `check_name` is the kind's rule for names.
pub(crate) fn create(object: &Object, scope: Scope, check_name: impl Fn(&str, bool) -> Vec<String>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = meta_text(object, "generateName");
    if !prefix.is_empty() {
        let wrong = check_name(prefix, true).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.generateName", &json!(prefix), &why)));
    }
    let name = meta_text(object, "name");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = check_name(name, false).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.name", &json!(name), &why)));
    }
    if scope == Scope::Namespaced {
        let namespace = meta_text(object, "namespace");
        let wrong = names::label(namespace, false).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.namespace", &json!(namespace), &why)));
    }
    let generation = super::generation(object);
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", &json!(generation), why));
    }
    errors.extend(common(object));
    errors.extend(finalizer_errors(object));
    errors
}

/// Validates the metadata of an update.
pub(crate) fn update(object: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if deleting(old) {
        errors.extend(new_finalizers(object, old));
    }
    errors.extend(finalizer_errors(object));
    for name in IMMUTABLE {
        let (new, old) = (meta(object, name), meta(old, name));
        if new != old {
            let shown = new.cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid(format!("metadata.{name}"), &shown, "field is immutable"));
        }
    }
    errors.extend(common(object));
    errors
}

/// Returns the errors of checks that apply to new objects and to updates.
fn common(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let texts = |name: &str| meta(object, name).and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in texts("labels") {
        let wrong = names::qualified(&key).into_iter().map(|why| why.replace("a qualified name", "a valid label key"));
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.labels", &json!(key), &why)));
        let text = value.as_str().unwrap_or_default();
        let wrong = names::label_value(text).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.labels", &value, &why)));
    }
    let mut bytes = 0;
    for (key, value) in texts("annotations") {
        // Check the key in lower case: upper case letters are allowed in the domain of an annotation key, because older objects
        // have such keys.
        let wrong = names::qualified(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.annotations", &json!(key), &why)));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES));
    }
    errors.extend(owner_errors(object));
    errors
}

fn owner_errors(object: &Object) -> Vec<FieldError> {
    let owners = meta(object, "ownerReferences").and_then(Value::as_array);
    let owners = owners.map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    let mut controller: Option<&Value> = None;
    for owner in owners {
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        if text("apiVersion").is_empty() {
            let field = "metadata.ownerReferences.apiVersion";
            errors.push(FieldError::invalid(field, &json!(""), "version must not be empty"));
        }
        for name in ["kind", "name", "uid"] {
            if text(name).is_empty() {
                let field = format!("metadata.ownerReferences.{name}");
                errors.push(FieldError::invalid(field, &json!(""), "must not be empty"));
            }
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid("metadata.ownerReferences", owner, why));
        }
        if owner["controller"] == true {
            match controller {
                None => controller = Some(owner),
                Some(first) => errors.push(two_controllers(owners, first, owner)),
            }
        }
    }
    errors
}

fn two_controllers(owners: &[Value], first: &Value, second: &Value) -> FieldError {
    let named = |owner: &Value| {
        let text = |name: &str| owner[name].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", text("kind"), text("name"))
    };
    let why = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
        named(first),
        named(second)
    );
    FieldError::invalid("metadata.ownerReferences", &json!(owners), &why)
}

/// Returns errors for finalizers without a domain, except the finalizers of Kubernetes.
///
/// Custom resources and CustomResourceDefinitions may have finalizers without a domain. kube-apiserver checks the finalizers
/// of these kinds elsewhere.
pub(crate) fn unqualified_finalizers(definition: &Definition, object: &Object) -> Vec<FieldError> {
    if definition.custom || definition.group == DEFINITIONS_GROUP {
        return Vec::new();
    }
    let all = finalizers(object).enumerate();
    let wrong = all.filter(|(_, finalizer)| !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    wrong
        .map(|(index, finalizer)| FieldError::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), why))
        .collect()
}

fn finalizer_errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let all: Vec<&str> = finalizers(object).collect();
    for finalizer in &all {
        let wrong = names::qualified(finalizer).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid("metadata.finalizers", &json!(finalizer), &why)));
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", &json!(all), why));
    }
    errors
}

fn new_finalizers(object: &Object, old: &Object) -> Option<FieldError> {
    let before: Vec<&str> = finalizers(old).collect();
    let added: Vec<String> = finalizers(object)
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    (!added.is_empty()).then(|| FieldError::forbidden("metadata.finalizers", &why))
}
