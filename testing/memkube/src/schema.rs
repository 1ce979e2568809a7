//! Structural schemas of custom resources.
//!
//! A write calls [`Schema::prune`], [`Schema::set_defaults`] and [`Schema::errors`] in this order. The crate `kube-cel`
//! evaluates `x-kubernetes-validations`, which are CEL expressions.

mod check;
mod defaults;
mod node;
mod parse;
mod prune;

use node::{NOWHERE, Node};

use crate::object::{Object, at};
use crate::status::{FieldError, FieldReason};
use kube_cel::{CompiledSchema, ValidationError, Validator, compile_schema};
use serde_json::Value;

thread_local! {
    /// Each thread has one validator, because creating it costs more than evaluating most rules.
    static VALIDATOR: Validator = Validator::new();
}

pub(crate) struct Schema {
    root: Node,
    /// CEL rules. `None` if the schema has no rules.
    rules: Option<CompiledSchema>,
}

impl Schema {
    /// Parses `openAPIV3Schema` of a version. `at` is the field path of this schema in errors.
    ///
    /// # Errors
    /// All errors that the server finds in the schema.
    pub(crate) fn parse(schema: &Value, at: &str) -> Result<Self, Vec<FieldError>> {
        let root = parse::schema(schema, at)?;
        let has_rules = schema.to_string().contains("x-kubernetes-validations");
        Ok(Self { root, rules: has_rules.then(|| compile_schema(schema)) })
    }

    /// Drops members that are not in the schema. Returns their paths, for example `spec.ports[0].foo`.
    pub(crate) fn prune(&self, object: &mut Object) -> Vec<String> {
        prune::object(&self.root, object)
    }

    /// Drops nulls of members that are not nullable, and sets defaults.
    pub(crate) fn set_defaults(&self, object: &mut Object) {
        defaults::apply(&self.root, object);
    }

    /// Validates a new object, or an update if there is an old object. Errors of unchanged values are ignored.
    ///
    /// Rules are not evaluated if other errors make their result meaningless.
    pub(crate) fn errors(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        self.with_rules(check::object(&self.root, object, old), object, old)
    }

    /// Validates an update of the status.
    pub(crate) fn status_errors(&self, object: &Object, old: &Object) -> Vec<FieldError> {
        let only_status = |object: &Object| -> Object {
            object.get("status").map(|status| ("status".to_owned(), status.clone())).into_iter().collect()
        };
        let errors = check::given_members(&self.root, &only_status(object), Some(&only_status(old)));
        self.with_rules(errors, object, Some(old))
    }

    fn with_rules(&self, mut errors: Vec<FieldError>, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let Some(rules) = &self.rules else { return errors };
        let blocks = |error: &FieldError| !matches!(error.reason, FieldReason::Invalid | FieldReason::Duplicate);
        if errors.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid";
            errors.push(FieldError::invalid(NOWHERE, &Value::Null, why));
        } else {
            errors.extend(rule_errors(rules, object, old));
        }
        errors
    }
}

/// Errors of the rules that an object breaks. A rule that an unchanged value breaks is no error.
fn rule_errors(rules: &CompiledSchema, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let validate = |object: &Object, old: Option<&Value>| -> Vec<ValidationError> {
        let object = Value::Object(object.clone());
        let result = VALIDATOR.with(|validator| validator.validate_compiled(rules, &object, old));
        result.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default()
    };
    let old_value = old.map(|old| Value::Object(old.clone()));
    let mut errors = validate(object, old_value.as_ref());
    if let Some(old) = old.filter(|_| !errors.is_empty()) {
        let before = validate(old, None);
        let unchanged = |path: &str| at(object, path).is_some() && at(object, path) == at(old, path);
        errors.retain(|error| !before.contains(error) || !unchanged(&error.field_path));
    }
    errors.into_iter().map(rule_error).collect()
}

fn rule_error(error: ValidationError) -> FieldError {
    let reason = match error.reason.as_deref() {
        Some("FieldValueRequired") => FieldReason::Required,
        Some("FieldValueForbidden") => FieldReason::Forbidden,
        Some("FieldValueDuplicate") => FieldReason::Duplicate,
        _ => FieldReason::Invalid,
    };
    let field = if error.field_path.is_empty() { NOWHERE.to_owned() } else { error.field_path };
    FieldError::new(field, reason, error.message)
}
