//! Rules of Deployments and ReplicaSets: defaults, validation and columns. memkube runs no controller of them.

use super::typed::{self, default};
use super::{Context, Findings, Generation, Strategy, Undecodable};
use crate::columns::{AGE, Column, NAME};
use crate::object::{Object, at};
use crate::registry::{Definition, Scope, Subresource};
use crate::status::FieldError;
use k8s_openapi::api::apps::v1;
use serde_json::{Map, Value, json};

/// Kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workload {
    Deployment,
    ReplicaSet,
}

/// Returns Deployments and ReplicaSets with their strategies.
pub(crate) fn all() -> Vec<(Definition, Box<dyn Strategy>)> {
    let of = |kind: &str, plural: &str, short: &str, workload| -> (Definition, Box<dyn Strategy>) {
        let definition = Definition::built_in("apps", "v1", kind, plural, Scope::Namespaced)
            .short(&[short])
            .in_categories(&["all"])
            .with(&[Subresource::Status, Subresource::Scale]);
        (definition, Box::new(workload))
    };
    vec![
        of("Deployment", "deployments", "deploy", Workload::Deployment),
        of("ReplicaSet", "replicasets", "rs", Workload::ReplicaSet),
    ]
}

impl Strategy for Workload {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        match self {
            Self::Deployment => typed::decode::<v1::Deployment>(object, findings),
            Self::ReplicaSet => typed::decode::<v1::ReplicaSet>(object, findings),
        }
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
        default(spec, "replicas", json!(1));
        if *self == Self::Deployment {
            default(spec, "revisionHistoryLimit", json!(10));
            default(spec, "progressDeadlineSeconds", json!(600));
            default(spec, "strategy", json!({"type": "RollingUpdate"}));
            default_strategy(&mut spec["strategy"]);
        }
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        errors(object)
    }

    fn validate_update(&self, _: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = errors(object);
        let [new, old] = [object, old].map(|object| at(object, "spec.selector").cloned().unwrap_or_default());
        if new != old {
            errors.push(FieldError::invalid("spec.selector", &new, "field is immutable"));
        }
        errors
    }

    fn validate_status_update(&self, _: &mut Context<'_>, _: &Object, _: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        let numbers: &[(&str, &str)] = match self {
            Self::Deployment => &[
                ("Desired", "spec.replicas"),
                ("Ready", "status.readyReplicas"),
                ("Up-to-date", "status.updatedReplicas"),
                ("Available", "status.availableReplicas"),
            ],
            Self::ReplicaSet => {
                &[("Desired", "spec.replicas"), ("Current", "status.replicas"), ("Ready", "status.readyReplicas")]
            }
        };
        let numbers = numbers.iter().map(|(name, path)| Column::text(name, path));
        std::iter::once(Column::text(NAME.0, NAME.1)).chain(numbers).chain([Column::age(AGE.0, AGE.1)]).collect()
    }
}

fn default_strategy(strategy: &mut Value) {
    let Value::Object(strategy) = strategy else { return };
    default(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] != "RollingUpdate" {
        return;
    }
    default(strategy, "rollingUpdate", json!({}));
    if let Value::Object(rolling) = &mut strategy["rollingUpdate"] {
        default(rolling, "maxSurge", json!("25%"));
        default(rolling, "maxUnavailable", json!("25%"));
    }
}

/// Returns the errors that users make most often: a selector that is empty or does not match the template, a template
/// without containers, and a negative number of replicas.
fn errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if at(object, "spec.replicas").and_then(Value::as_i64).is_some_and(|replicas| replicas < 0) {
        errors.push(FieldError::invalid(
            "spec.replicas",
            &object["spec"]["replicas"],
            "must be greater than or equal to 0",
        ));
    }
    let no_labels = Map::new();
    let labels = at(object, "spec.template.metadata.labels").and_then(Value::as_object).unwrap_or(&no_labels);
    let selected = at(object, "spec.selector.matchLabels").and_then(Value::as_object).unwrap_or(&no_labels);
    let has_expressions =
        at(object, "spec.selector.matchExpressions").is_some_and(|it| it.as_array().is_some_and(|it| !it.is_empty()));
    if selected.is_empty() && !has_expressions {
        let why = "empty selector is invalid for deployment";
        errors.push(FieldError::invalid("spec.selector", &json!({}), why));
    }
    if selected.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", &json!(labels), why));
    }
    let containers = at(object, "spec.template.spec.containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.template.spec.containers", ""));
    }
    errors
}
