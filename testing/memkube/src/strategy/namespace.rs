//! Rules of Namespaces. The module `verbs`, not this strategy, removes the content of a namespace that is being
//! deleted.

use super::typed::{self, default};
use super::{Context, Findings, Strategy, Undecodable, copy_member, fields_at};
use crate::columns::{AGE, Column, NAME};
use crate::object::{Object, meta_text, metadata_mut, names};
use crate::status::Status;
use crate::store::Fields;
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

/// Label with the name of the namespace, so that label selectors can select it.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Selectable fields of a Namespace.
pub(crate) const SELECTABLE: [&str; 1] = ["status.phase"];

#[derive(Clone, Copy, Debug)]
pub(super) struct Namespace;

impl Strategy for Namespace {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::Namespace>(object, findings)?;
        ["spec", "status"].into_iter().for_each(|name| default(object, name, json!({})));
        Ok(())
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        let name = meta_text(object, "name").to_owned();
        let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
        if let (Value::Object(labels), false) = (labels, name.is_empty()) {
            labels.insert(NAME_LABEL.to_owned(), json!(name));
        }
    }

    fn prepare_for_create(&self, _: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        // A generated name exists only now, after the first call of `set_defaults`. So set the label with the name
        // again.
        self.set_defaults("v1", object);
        object.insert("spec".to_owned(), json!({"finalizers": ["kubernetes"]}));
        object.insert("status".to_owned(), json!({"phase": "Active"}));
        Ok(())
    }

    fn prepare_for_update(&self, _: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        copy_member("spec", old, object);
        copy_member("status", old, object);
        Ok(())
    }

    fn check_name(&self, name: &str, prefix: bool) -> Option<&'static str> {
        names::label(name, prefix)
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        vec![Column::text(NAME.0, NAME.1), Column::text("Status", "status.phase"), Column::age(AGE.0, AGE.1)]
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        SELECTABLE.map(str::to_owned).to_vec()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        fields_at(object, &SELECTABLE)
    }

    fn mark_deleting(&self, object: &mut Object) {
        object.insert("status".to_owned(), json!({"phase": "Terminating"}));
    }

    fn keeps_deleted(&self, _: &Object) -> bool {
        // The namespace controller removes a namespace when it is empty.
        true
    }
}
