//! Encoding of objects and lists for responses.

use crate::object::Object;
use crate::registry::{Definition, Registered};
use crate::store::Stored;
use crate::wire::{Form, MetadataForm, MetadataVersion};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

impl MetadataVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }

    /// JSON before the metadata.
    fn prefix(self) -> &'static str {
        match self {
            Self::V1 => r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#,
            Self::V1beta1 => r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":"#,
        }
    }
}

/// Encoder for the objects of one resource in one request.
pub(crate) struct Encoder {
    definition: Arc<Definition>,
    version: String,
    form: Form,
    /// JSON before the fields of a stored object. This prefix replaces the first brace of the stored JSON.
    prefix: Bytes,
    /// True if stored objects must be converted to the version of the request.
    converts: bool,
}

#[derive(Deserialize)]
struct MetadataAlone<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Encoder {
    pub(crate) fn new(registered: &Registered, version: &str, form: Form) -> Self {
        let definition = Arc::clone(&registered.definition);
        let api_version = Value::from(definition.api_version(version));
        let kind = Value::from(definition.kind.as_str());
        Self {
            prefix: format!(r#"{{"kind":{kind},"apiVersion":{api_version},"#).into(),
            converts: !registered.strategy.stored_form_serves(version),
            version: version.to_owned(),
            definition,
            form,
        }
    }

    /// Encodes a stored object, for a response or an event.
    pub(crate) fn object(&self, registered: Option<&Registered>, stored: &Stored) -> Vec<Bytes> {
        let json = self.converted(registered, stored);
        match self.form {
            Form::Whole => vec![self.prefix.clone(), json.slice(1..)],
            Form::MetadataOnly(form) => metadata_alone(&json, form.version),
        }
    }

    /// Encodes a stored object as an item of a list. Items of built-in kinds have neither `apiVersion` nor `kind`.
    pub(crate) fn item(&self, registered: Option<&Registered>, stored: &Stored) -> Vec<Bytes> {
        match self.form {
            Form::Whole if !self.definition.custom => vec![self.converted(registered, stored)],
            _ => self.object(registered, stored),
        }
    }

    /// Encodes an object that is not stored.
    pub(crate) fn loose(&self, mut object: Object) -> Vec<Bytes> {
        if let Form::MetadataOnly(MetadataForm { version, .. }) = self.form {
            let metadata = object.remove("metadata").unwrap_or_default();
            return vec![format!("{}{metadata}}}", version.prefix()).into()];
        }
        object.insert("apiVersion".to_owned(), self.definition.api_version(&self.version).into());
        object.insert("kind".to_owned(), self.definition.kind.as_str().into());
        vec![Value::Object(object).to_string().into()]
    }

    /// Object of a bookmark: it has only `metadata.resourceVersion` and annotations.
    pub(crate) fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let annotations =
            if initial_events_end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        let metadata = format!(r#"{{"resourceVersion":"{revision}"{annotations}}}"#);
        match self.form {
            Form::MetadataOnly(form) => format!("{}{metadata}}}", form.version.prefix()).into(),
            Form::Whole => {
                let prefix = std::str::from_utf8(&self.prefix).unwrap_or_default();
                format!(r#"{prefix}"metadata":{metadata}}}"#).into()
            }
        }
    }

    /// Returns the JSON before the items of a list, and the JSON after them.
    pub(crate) fn list_frame(&self, metadata: &Object) -> (Bytes, Bytes) {
        let metadata = Value::Object(metadata.clone());
        let (kind, api_version) = match self.form {
            Form::MetadataOnly(form) => ("PartialObjectMetadataList", form.version.api_version().to_owned()),
            Form::Whole => (self.definition.list_kind.as_str(), self.definition.api_version(&self.version)),
        };
        let (kind, api_version) = (Value::from(kind), Value::from(api_version));
        let begin = format!(r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{metadata},"items":["#);
        (begin.into(), Bytes::from_static(b"]}"))
    }

    fn converted(&self, registered: Option<&Registered>, stored: &Stored) -> Bytes {
        let Some(registered) = registered.filter(|_| self.converts) else {
            return stored.json.clone();
        };
        let storage = self.definition.storage_version();
        let mut object = stored.decode_as(&self.definition.api_version(storage), &self.definition.kind);
        registered.strategy.convert(&mut object, storage, &self.version);
        object.remove("apiVersion");
        object.remove("kind");
        Value::Object(object).to_string().into()
    }
}

fn metadata_alone(json: &Bytes, version: MetadataVersion) -> Vec<Bytes> {
    let alone: MetadataAlone<'_> = serde_json::from_slice(json).expect("every stored object has metadata");
    let metadata = json.slice_ref(alone.metadata.get().as_bytes());
    vec![Bytes::from_static(version.prefix().as_bytes()), metadata, Bytes::from_static(b"}")]
}
