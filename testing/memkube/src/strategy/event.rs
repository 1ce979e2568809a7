//! Rules of Events of the core group.

use super::typed::{self, default};
use super::{Context, Findings, Strategy, Undecodable, fields_at};
use crate::columns::Column;
use crate::object::{Object, at, meta_text, text_at};
use crate::status::FieldError;
use crate::store::Fields;
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

/// Namespace of Events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";
const TEXT_BYTES: usize = 128;

const SELECTABLE: [&str; 10] = [
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "type",
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Event;

impl Strategy for Event {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::Event>(object, findings)?;
        for name in ["eventTime", "firstTimestamp", "lastTimestamp"] {
            default(object, name, Value::Null);
        }
        for name in ["reportingComponent", "reportingInstance"] {
            default(object, name, json!(""));
        }
        default(object, "source", json!({}));
        Ok(())
    }

    /// An Event must be in the namespace of the object that the Event is about. An Event with an `eventTime` must have
    /// all fields of newer Events.
    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let about = text_at(object, "involvedObject.namespace");
        let wanted = if about.is_empty() { DEFAULT_NAMESPACE } else { about };
        if meta_text(object, "namespace") != wanted {
            let why = "does not match event.namespace";
            errors.push(FieldError::invalid("involvedObject.namespace", &json!(about), why));
        }
        if at(object, "eventTime").is_some_and(|time| !time.is_null()) {
            for name in ["reportingComponent", "reportingInstance", "action", "reason"] {
                match text_at(object, name).len() {
                    0 => errors.push(FieldError::required(name, "")),
                    bytes if bytes > TEXT_BYTES => {
                        errors.push(FieldError::invalid(name, &json!(""), "can have at most 128 characters"));
                    }
                    _ => {}
                }
            }
        }
        errors
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        let texts = [("Type", "type"), ("Reason", "reason"), ("Object", "involvedObject.name"), ("Message", "message")];
        let texts = texts.map(|(name, path)| Column::text(name, path));
        [Column::age("Last Seen", "lastTimestamp")].into_iter().chain(texts).collect()
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        SELECTABLE.map(str::to_owned).to_vec()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        fields_at(object, &SELECTABLE)
    }
}
