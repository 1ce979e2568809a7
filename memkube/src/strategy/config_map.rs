//! Rules of ConfigMaps and Secrets.

use super::shape::{Shape, Struct, TEXT_MAP, full, present};
use super::{Context, Findings, Strategy, Undecodable, metadata_again, shape};
use crate::object::{Object, meta, text_at};
use crate::status::{FieldError, Status};
use crate::store::Fields;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Maximum size of all values of an object together, in bytes (kube-apiserver's `MaxSecretSize`).
const DATA_BYTES: usize = 1 << 20;
const KEY_BYTES: usize = 253;
const BYTES_MAP: Shape = Shape::Map(&Shape::Bytes);

static CONFIG_MAP: Struct = Struct {
    name: "v1.ConfigMap",
    fields: &[present("immutable", Shape::Flag), full("data", TEXT_MAP), full("binaryData", BYTES_MAP)],
};

static SECRET: Struct = Struct {
    name: "v1.Secret",
    fields: &[
        present("immutable", Shape::Flag),
        full("data", BYTES_MAP),
        full("stringData", TEXT_MAP),
        full("type", Shape::Text("v1.SecretType")),
    ],
};

/// Keys that a Secret of a type must have.
const REQUIRED_KEYS: [(&str, &[&str]); 4] = [
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
];
const ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";

#[derive(Clone, Copy, Debug)]
pub(super) struct ConfigMap;

impl Strategy for ConfigMap {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        shape::read(&CONFIG_MAP, object, findings)
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut bytes = 0;
        for (key, value) in members(object, "data") {
            errors.extend(key_errors("data", key));
            if members(object, "binaryData").any(|(other, _)| other == key) {
                let why = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(format!("data[{key}]"), &json!(key), why));
            }
            bytes += value.as_str().map_or(0, str::len);
        }
        for (key, value) in members(object, "binaryData") {
            errors.extend(key_errors("binaryData", key));
            bytes += decoded_bytes(value);
        }
        errors.extend((bytes > DATA_BYTES).then(|| FieldError::too_long("[]", DATA_BYTES)));
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = immutable_errors(object, old, &["data", "binaryData"]);
        errors.extend(metadata_again(self, context, object));
        errors.extend(self.validate(context, object));
        errors
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Secret;

impl Strategy for Secret {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        shape::read(&SECRET, object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        if let Some(Value::Object(texts)) = object.remove("stringData") {
            let data = object.entry("data").or_insert_with(|| json!({}));
            for (key, text) in texts {
                data[&key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
            }
        }
        object.entry("type").or_insert_with(|| json!("Opaque"));
    }

    fn prepare_for_update(&self, _: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        // An update without a type keeps the old type, because some clients do not know the field.
        if text_at(object, "type").is_empty() {
            super::copy_member("type", old, object);
        }
        Ok(())
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut bytes = 0;
        for (key, value) in members(object, "data") {
            errors.extend(key_errors("data", key));
            bytes += decoded_bytes(value);
        }
        errors.extend((bytes > DATA_BYTES).then(|| FieldError::too_long("data", DATA_BYTES)));
        let kind = text_at(object, "type");
        let required = REQUIRED_KEYS.iter().find(|(own, _)| *own == kind).map_or(&[][..], |(_, keys)| keys);
        let missing = required.iter().filter(|key| members(object, "data").all(|(own, _)| own != *key));
        errors.extend(missing.map(|key| FieldError::required(format!("data[{key}]"), "")));
        let annotations = meta(object, "annotations");
        let account = annotations.and_then(|all| all.get(ACCOUNT_ANNOTATION)?.as_str()).unwrap_or_default();
        if kind == "kubernetes.io/service-account-token" && account.is_empty() {
            errors.push(FieldError::required(format!("metadata.annotations[{ACCOUNT_ANNOTATION}]"), ""));
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if object.get("type") != old.get("type") {
            errors.push(FieldError::invalid("type", &object["type"], "field is immutable"));
        }
        errors.extend(immutable_errors(object, old, &["data"]));
        errors.extend(metadata_again(self, context, object));
        errors.extend(self.validate(context, object));
        errors
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        vec!["type".to_owned()]
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        Fields::from([("type".to_owned(), text_at(object, "type").to_owned())])
    }
}

fn members<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn decoded_bytes(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    STANDARD.decode(text).map_or(text.len(), |bytes| bytes.len())
}

fn key_errors(within: &str, key: &str) -> Vec<FieldError> {
    let mut why = Vec::new();
    if key.len() > KEY_BYTES {
        why.push("must be no more than 253 characters");
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(is_letter) {
        why.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        );
    }
    match key {
        "." => why.push("must not be '.'"),
        ".." => why.push("must not be '..'"),
        _ if key.starts_with("..") => why.push("must not start with '..'"),
        _ => {}
    }
    why.into_iter().map(|why| FieldError::invalid(format!("{within}[{key}]"), &json!(key), why)).collect()
}

/// Returns errors for changed fields of an object with `immutable: true`. The field `immutable` must not change either.
fn immutable_errors(object: &Object, old: &Object, names: &[&str]) -> Vec<FieldError> {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let changed = ["immutable"].iter().chain(names).filter(|name| object.get(**name) != old.get(**name));
    changed.map(|name| FieldError::forbidden(*name, why)).collect()
}
