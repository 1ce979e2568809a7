//! Rules of Secrets.

use super::typed::{self, default};
use super::{Context, Findings, Strategy, Undecodable};
use crate::object::Object;
use crate::status::FieldError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug)]
pub(super) struct Secret;

impl Strategy for Secret {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::Secret>(object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        if let Some(Value::Object(texts)) = object.remove("stringData") {
            let data = object.entry("data").or_insert_with(|| json!({}));
            for (key, text) in texts {
                data[&key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
            }
        }
        default(object, "type", json!("Opaque"));
    }

    fn validate_update(&self, _: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let changed = object.get("type") != old.get("type");
        let error = changed.then(|| FieldError::invalid("type", &object["type"], "field is immutable"));
        error.into_iter().collect()
    }
}
