//! Rules of custom resources: objects whose kind is defined by a CustomResourceDefinition.

use super::{Context, Findings, Generation, Strategy, Undecodable};
use crate::object::{Object, at, finalizers};
use crate::schema::{Part, Schema};
use crate::status::FieldError;
use crate::store::Fields;
use serde_json::Value;
use std::sync::Arc;

/// Finalizers of the garbage collector, which have no domain.
const OF_THE_COLLECTOR: [&str; 2] = ["orphan", "foregroundDeletion"];

#[derive(Clone, Debug)]
pub(super) struct CustomVersion {
    pub(super) name: String,
    pub(super) schema: Arc<Schema>,
    /// Schema in the form in which the user wrote it, to detect equal schemas.
    pub(super) source: Arc<Value>,
    /// Selectable fields, for example `spec.x`.
    pub(super) selectable: Vec<String>,
    pub(super) storage: bool,
    /// Warning for clients that use this version; `None` if the version is not deprecated.
    pub(super) deprecation: Option<String>,
}

#[derive(Debug)]
pub(super) struct CustomResource {
    pub(super) versions: Vec<CustomVersion>,
    /// True if the schema has changed, so stored objects may be in the form of an earlier schema.
    pub(super) rewritten: bool,
}

impl CustomResource {
    fn version(&self, name: &str) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    fn schema(&self, version: &str) -> Option<&Schema> {
        self.version(version).map(|version| &*version.schema)
    }

    fn storage(&self) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.storage)
    }
}

impl Strategy for CustomResource {
    fn decode(&self, version: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        let Some(schema) = self.schema(version) else { return Ok(()) };
        object.values_mut().for_each(whole_numbers);
        schema.coerce_embedded(object).map_err(Undecodable)?;
        let dropped = schema.prune(object);
        findings.strict.extend(dropped.iter().map(|place| format!("unknown field \"{place}\"")));
        Ok(())
    }

    fn set_defaults(&self, version: &str, object: &mut Object) {
        if let Some(schema) = self.schema(version) {
            schema.set_defaults(object);
        }
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let errors = self.schema(context.version).map(|schema| schema.errors(object)).unwrap_or_default();
        if errors.is_empty() {
            warn_of_finalizers(context, object, None);
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let Some(schema) = self.schema(context.version) else { return Vec::new() };
        let errors = schema.update_errors(object, old, Part::Whole, context.warnings);
        if errors.is_empty() {
            warn_of_finalizers(context, object, Some(old));
        }
        errors
    }

    fn validate_status_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let Some(schema) = self.schema(context.version) else { return Vec::new() };
        schema.update_errors(object, old, Part::Status, context.warnings)
    }

    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn selectable_names(&self, version: &str) -> Vec<String> {
        self.version(version).map(|version| version.selectable.clone()).unwrap_or_default()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        let names = self.versions.iter().flat_map(|version| &version.selectable);
        names.map(|name| (name.clone(), at(object, name).map(text).unwrap_or_default())).collect()
    }

    fn deprecation(&self, version: &str) -> Option<String> {
        self.version(version)?.deprecation.clone()
    }

    fn stored_form_serves(&self, version: &str) -> bool {
        let same = match (self.version(version), self.storage()) {
            (Some(version), Some(storage)) => version.source == storage.source,
            _ => true,
        };
        same && !self.rewritten
    }

    /// Converts an object to the version `to` with the conversion strategy `None`, which does not change the values of fields.
    ///
    /// First the object gets the form of the storage version: unknown fields are dropped and defaults are set. Then fields that
    /// the version `to` does not have are dropped.
    fn convert(&self, object: &mut Object, _: &str, to: &str) {
        if let Some(storage) = self.storage().map(|storage| &storage.schema) {
            storage.prune(object);
            storage.set_defaults(object);
        }
        if let Some(schema) = self.schema(to) {
            schema.prune(object);
        }
    }
}

/// Text with which field selectors compare a value. Empty for null.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Converts numbers such as `1.0` to integers, as Go's decoder does.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            // 2^53: above this limit, floats cannot represent every integer.
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0);
            if let Some(float) = float {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
                let whole = float as i64;
                *value = Value::from(whole);
            }
        }
        _ => {}
    }
}

/// Adds a warning for each new finalizer without a domain.
fn warn_of_finalizers(context: &mut Context<'_>, object: &Object, old: Option<&Object>) {
    let before: Vec<&str> = old.into_iter().flat_map(finalizers).collect();
    let plain = |finalizer: &&str| !finalizer.contains('/') && !OF_THE_COLLECTOR.contains(finalizer);
    for finalizer in finalizers(object).filter(plain).filter(|finalizer| !before.contains(finalizer)) {
        context.warnings.push(format!(
            "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
}
