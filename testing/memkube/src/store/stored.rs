//! State of an object, and its changes.

use super::key::Key;
use crate::object::{self, Object};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values of selectable fields by field name.
pub type Fields = BTreeMap<String, String>;

/// Sorted pairs of names and values. This form needs less memory than a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Box<[(Box<str>, Box<str>)]>);

impl Pairs {
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.0.get(at).map(|(_, value)| &**value)
    }
}

impl FromIterator<(String, String)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        let ordered: BTreeMap<String, String> = pairs.into_iter().collect();
        let boxed = ordered.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(boxed.collect())
    }
}

/// Values of an object that are needed without decoding the object.
#[derive(Clone, Debug)]
pub struct Header {
    pub uid: Box<str>,
    pub revision: u64,
    pub labels: Pairs,
    /// Selectable fields, except name and namespace.
    pub fields: Pairs,
    /// True if the object has a deletionTimestamp.
    pub deleting: bool,
    /// UIDs of the owners.
    pub owners: Box<[Box<str>]>,
}

/// One state of an object.
#[derive(Debug)]
pub struct Stored {
    pub key: Key,
    pub header: Header,
    /// JSON of the object, without `apiVersion` and `kind`.
    pub json: Bytes,
}

impl Stored {
    /// Returns the object, without `apiVersion`, `kind` and `metadata.managedFields`.
    #[must_use]
    pub fn decode(&self) -> Object {
        let mut object: Object = serde_json::from_slice(&self.json).expect("it was encoded by us");
        object::remove_meta(&mut object, "managedFields");
        object
    }

    /// Returns the same state with another resourceVersion.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        let fields = self.header.fields.0.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        encode(self.key.clone(), self.decode(), fields.collect(), revision)
    }

    /// Returns the object with `apiVersion` and `kind`.
    #[must_use]
    pub fn decode_as(&self, api_version: &str, kind: &str) -> Object {
        let mut object = self.decode();
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        object
    }
}

/// Type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// Change of an object.
#[derive(Clone, Debug)]
pub struct Change {
    pub revision: u64,
    pub kind: ChangeKind,
    /// State before the change. `None` for a new object.
    pub before: Option<Arc<Stored>>,
    /// State after the change. For a deletion, the last state with the resourceVersion of the deletion.
    pub after: Arc<Stored>,
}

/// Encodes an object for storage.
pub(super) fn encode(key: Key, mut object: Object, fields: Fields, revision: u64) -> Stored {
    object.remove("apiVersion");
    object.remove("kind");
    object::set_meta(&mut object, "resourceVersion", revision.to_string());
    object::remove_meta(&mut object, "selfLink");
    let header = Header {
        uid: object::meta_text(&object, "uid").into(),
        revision,
        labels: labels(&object),
        fields: fields.into_iter().collect(),
        deleting: object::deleting(&object),
        owners: owners(&object),
    };
    let json = serde_json::to_vec(&object).expect("JSON values can be encoded");
    Stored { key, header, json: json.into() }
}

fn owners(object: &Object) -> Box<[Box<str>]> {
    let references = object::meta(object, "ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().map(|reference| reference["uid"].as_str().unwrap_or_default().into()).collect()
}

fn labels(object: &Object) -> Pairs {
    let labels = object::meta(object, "labels").and_then(Value::as_object);
    let texts =
        labels.into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    texts.collect()
}
