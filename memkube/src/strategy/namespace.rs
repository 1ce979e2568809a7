//! Rules of Namespaces.

use super::shape::{Shape, Struct, TEXT, TEXTS, always, full};
use super::{Context, Findings, Strategy, Undecodable, addresses, builtin, copy_member, shape};
use crate::object::{self, Object, at, meta_text, metadata_mut, names, text_at};
use crate::status::{FieldError, Status};
use crate::store::Fields;
use serde_json::{Value, json};

static NAMESPACE: Struct = Struct {
    name: "v1.Namespace",
    fields: &[always("spec", Shape::Struct(&SPEC)), always("status", Shape::Struct(&STATUS))],
};

static SPEC: Struct = Struct { name: "v1.NamespaceSpec", fields: &[full("finalizers", TEXTS)] };

static STATUS: Struct = Struct {
    name: "v1.NamespaceStatus",
    fields: &[
        full("phase", Shape::Text("v1.NamespacePhase")),
        full("conditions", Shape::List(&Shape::Struct(&CONDITION))),
    ],
};

static CONDITION: Struct = Struct {
    name: "v1.NamespaceCondition",
    fields: &[
        always("type", Shape::Text("v1.NamespaceConditionType")),
        always("status", Shape::Text("v1.ConditionStatus")),
        always("lastTransitionTime", Shape::Time),
        full("reason", TEXT),
        full("message", TEXT),
    ],
};

/// Finalizer that keeps a namespace that is being deleted until the namespace is empty.
const KUBERNETES_FINALIZER: &str = "kubernetes";

/// Label with the name of the namespace, so that label selectors can select it.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Strategy of Namespaces. The module `verbs`, not this strategy, removes the content of a namespace that is being deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namespace;

impl Strategy for Namespace {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        shape::read(&NAMESPACE, object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        let name = meta_text(object, "name").to_owned();
        if name.is_empty() {
            return;
        }
        let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = labels {
            labels.insert(NAME_LABEL.to_owned(), json!(name));
        }
    }

    fn prepare_for_create(&self, _: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        // A generated name exists only now, after the first call of `set_defaults`. So set the label with the name again.
        self.set_defaults("v1", object);
        let mut finalizers = at(object, "spec.finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        if !finalizers.iter().any(|own| own == KUBERNETES_FINALIZER) {
            finalizers.push(json!(KUBERNETES_FINALIZER));
        }
        object.insert("spec".to_owned(), json!({"finalizers": finalizers}));
        object.insert("status".to_owned(), json!({"phase": "Active"}));
        Ok(())
    }

    fn prepare_for_update(&self, _: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        copy_member("spec", old, object);
        copy_member("status", old, object);
        Ok(())
    }

    fn prepare_for_finalize(&self, object: &mut Object, old: &Object) {
        copy_member("status", old, object);
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let finalizers = at(object, "spec.finalizers").and_then(Value::as_array);
        let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
        finalizers.flat_map(finalizer_errors).collect()
    }

    fn validate_status_update(&self, _: &mut Context<'_>, object: &Object, _: &Object) -> Vec<FieldError> {
        let phase = text_at(object, "status.phase");
        let (wanted, when) = match object::deleting(object) {
            true => ("Terminating", "not empty"),
            false => ("Active", "empty"),
        };
        let why = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
        let wrong = (phase != wanted).then(|| FieldError::invalid("status.Phase", &json!(phase), &why));
        wrong.into_iter().collect()
    }

    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        names::label(name, prefix)
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        vec!["status.phase".to_owned()]
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        builtin::namespace_fields(text_at(object, "status.phase"))
    }

    fn mark_deleting(&self, object: &mut Object) {
        let status = object.entry("status").or_insert_with(|| json!({}));
        status["phase"] = json!("Terminating");
    }

    fn keeps_deleted(&self, object: &Object) -> bool {
        let finalizers = object::at(object, "spec.finalizers").and_then(Value::as_array);
        finalizers.is_some_and(|finalizers| !finalizers.is_empty())
    }
}

fn finalizer_errors(finalizer: &str) -> Vec<FieldError> {
    let mut errors = addresses::qualified("spec.finalizers", finalizer);
    if errors.is_empty() && !finalizer.contains('/') && finalizer != KUBERNETES_FINALIZER {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid("spec.finalizers", &json!(finalizer), why));
    }
    errors
}
