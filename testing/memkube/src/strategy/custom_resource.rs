//! Rules of custom resources: objects whose kind is defined by a CustomResourceDefinition.

use super::{Context, Findings, Generation, Strategy, Undecodable, fields_at, typed};
use crate::columns::{AGE, Column, NAME};
use crate::object::Object;
use crate::schema::Schema;
use crate::status::FieldError;
use crate::store::Fields;
use serde_json::{Value, json};

pub(super) struct CustomVersion {
    pub(super) name: String,
    pub(super) schema: Schema,
    /// Schema in the form in which the user wrote it, to detect equal schemas.
    pub(super) source: Value,
    /// Selectable fields, for example `spec.x`.
    pub(super) selectable: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) storage: bool,
}

pub(super) struct CustomResource {
    pub(super) versions: Vec<CustomVersion>,
}

impl CustomResource {
    fn version(&self, name: &str) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    fn schema(&self, version: &str) -> Option<&Schema> {
        self.version(version).map(|version| &version.schema)
    }

    fn storage(&self) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.storage)
    }
}

impl Strategy for CustomResource {
    fn decode(&self, version: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        let Some(schema) = self.schema(version) else { return Ok(()) };
        object.values_mut().for_each(typed::whole_numbers);
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
        self.schema(context.version).map(|schema| schema.errors(object, None)).unwrap_or_default()
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        self.schema(context.version).map(|schema| schema.errors(object, Some(old))).unwrap_or_default()
    }

    fn validate_status_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        self.schema(context.version).map(|schema| schema.status_errors(object, old)).unwrap_or_default()
    }

    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self, version: &str) -> Vec<Column> {
        let own = self.version(version).map(|version| version.columns.clone()).unwrap_or_default();
        let age = own.is_empty().then(|| Column::printer(&json!({"name": AGE.0, "type": "date", "jsonPath": AGE.1})));
        [Column::text(NAME.0, NAME.1)].into_iter().chain(own).chain(age).collect()
    }

    fn selectable_names(&self, version: &str) -> Vec<String> {
        self.version(version).map(|version| version.selectable.clone()).unwrap_or_default()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        let names: Vec<&str> =
            self.versions.iter().flat_map(|version| &version.selectable).map(String::as_str).collect();
        fields_at(object, &names)
    }

    fn stored_form_serves(&self, version: &str) -> bool {
        match (self.version(version), self.storage()) {
            (Some(version), Some(storage)) => version.source == storage.source,
            _ => true,
        }
    }

    /// Converts an object to the version `to` with the conversion strategy `None`, which does not change the values of
    /// fields.
    ///
    /// First the object gets the form of the storage version: unknown fields are dropped and defaults are set. Then
    /// fields that the version `to` does not have are dropped.
    fn convert(&self, object: &mut Object, to: &str) {
        if let Some(storage) = self.storage().map(|storage| &storage.schema) {
            storage.prune(object);
            storage.set_defaults(object);
        }
        if let Some(schema) = self.schema(to) {
            schema.prune(object);
        }
    }
}
