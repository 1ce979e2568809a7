//! Encoding of objects and lists for responses.

use crate::columns::{self, Column};
use crate::object::Object;
use crate::registry::{Definition, Registered};
use crate::store::Stored;
use crate::wire::Form;
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

/// JSON before the metadata of an object of which a response contains only the metadata.
const METADATA_PREFIX: &str = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;

/// Encoder for the objects of one resource in one request.
pub(crate) struct Encoder {
    definition: Arc<Definition>,
    version: String,
    form: Form,
    columns: Vec<Column>,
    now: Timestamp,
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
    pub(crate) fn new(registered: &Registered, version: &str, form: Form, now: Timestamp) -> Self {
        let definition = Arc::clone(&registered.definition);
        let api_version = Value::from(definition.api_version(version));
        let kind = Value::from(definition.kind.as_str());
        Self {
            prefix: format!(r#"{{"kind":{kind},"apiVersion":{api_version},"#).into(),
            converts: !registered.strategy.stored_form_serves(version),
            columns: registered.strategy.columns(version),
            version: version.to_owned(),
            definition,
            form,
            now,
        }
    }

    /// Encodes a stored object, for a response or an event.
    pub(crate) fn object(&self, registered: Option<&Registered>, stored: &Stored) -> Vec<Bytes> {
        let json = self.converted(registered, stored);
        match self.form {
            Form::Whole => vec![self.prefix.clone(), json.slice(1..)],
            Form::MetadataOnly => metadata_alone(&json),
            Form::Table { .. } => vec![self.table_of(&self.decoded(&json)).to_string().into()],
        }
    }

    /// Encodes a stored object as an item of a list, or as a row of a table. Items of built-in kinds have neither
    /// `apiVersion` nor `kind`.
    pub(crate) fn item(&self, registered: Option<&Registered>, stored: &Stored) -> Vec<Bytes> {
        match self.form {
            Form::Whole if !self.definition.custom => vec![self.converted(registered, stored)],
            Form::Table { .. } => {
                vec![self.row(&self.decoded(&self.converted(registered, stored))).to_string().into()]
            }
            _ => self.object(registered, stored),
        }
    }

    /// Encodes an object that is not stored.
    pub(crate) fn loose(&self, mut object: Object) -> Vec<Bytes> {
        object.insert("apiVersion".to_owned(), self.definition.api_version(&self.version).into());
        object.insert("kind".to_owned(), self.definition.kind.as_str().into());
        let shown = match self.form {
            Form::Whole => Value::Object(object),
            Form::MetadataOnly => columns::metadata_of(&object),
            Form::Table { .. } => self.table_of(&object),
        };
        vec![shown.to_string().into()]
    }

    /// Object of a bookmark: it has only `metadata.resourceVersion` and annotations.
    pub(crate) fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let annotations =
            if initial_events_end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        let metadata = format!(r#"{{"resourceVersion":"{revision}"{annotations}}}"#);
        match self.form {
            Form::MetadataOnly => format!("{METADATA_PREFIX}{metadata}}}").into(),
            Form::Whole => {
                let prefix = std::str::from_utf8(&self.prefix).unwrap_or_default();
                format!(r#"{prefix}"metadata":{metadata}}}"#).into()
            }
            Form::Table { .. } => {
                let version = Map::from_iter([("resourceVersion".to_owned(), revision.to_string().into())]);
                columns::empty(&columns::definitions(&self.columns), &version).to_string().into()
            }
        }
    }

    /// Returns the JSON before the items of a list, and the JSON after them.
    pub(crate) fn list_frame(&self, metadata: &Object) -> (Bytes, Bytes) {
        let (kind, api_version, items) = match self.form {
            Form::Whole => (self.definition.list_kind.as_str(), self.definition.api_version(&self.version), "items"),
            Form::MetadataOnly => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned(), "items"),
            Form::Table { .. } => ("Table", "meta.k8s.io/v1".to_owned(), "rows"),
        };
        let columns = match self.form {
            Form::Table { .. } => format!(r#""columnDefinitions":{},"#, columns::definitions(&self.columns)),
            _ => String::new(),
        };
        let metadata = Value::Object(metadata.clone());
        let (kind, api_version) = (Value::from(kind), Value::from(api_version));
        let begin = format!(r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{metadata},{columns}"{items}":["#);
        (begin.into(), Bytes::from_static(b"]}"))
    }

    fn row(&self, object: &Object) -> Value {
        let shown = match self.form {
            Form::Table { whole: true } => Value::Object(object.clone()),
            _ => columns::metadata_of(object),
        };
        columns::row(&self.columns, object, shown, self.now)
    }

    fn table_of(&self, object: &Object) -> Value {
        let mut table = columns::empty(&columns::definitions(&self.columns), &columns::version_of(object));
        table["rows"] = Value::Array(vec![self.row(object)]);
        table
    }

    fn decoded(&self, json: &[u8]) -> Object {
        let mut object: Object = serde_json::from_slice(json).expect("it was encoded by us");
        object.insert("apiVersion".to_owned(), self.definition.api_version(&self.version).into());
        object.insert("kind".to_owned(), self.definition.kind.as_str().into());
        object
    }

    fn converted(&self, registered: Option<&Registered>, stored: &Stored) -> Bytes {
        let Some(registered) = registered.filter(|_| self.converts) else {
            return stored.json.clone();
        };
        let mut object = stored.decode();
        registered.strategy.convert(&mut object, &self.version);
        Value::Object(object).to_string().into()
    }
}

fn metadata_alone(json: &Bytes) -> Vec<Bytes> {
    let alone: MetadataAlone<'_> = serde_json::from_slice(json).expect("every stored object has metadata");
    let metadata = json.slice_ref(alone.metadata.get().as_bytes());
    vec![Bytes::from_static(METADATA_PREFIX.as_bytes()), metadata, Bytes::from_static(b"}")]
}
