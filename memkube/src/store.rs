//! Where objects are: encoded once, shared by all who read them, with a small header each; and what happened to them.
//!
//! An object is stored as the bytes of its JSON without `apiVersion` and `kind`: these differ between answers (versions,
//! items of lists) and are put before it. See [`Stored::json`].

mod key;
mod table;

pub use key::Key;
use table::LogLimits;
pub(crate) use table::{Ended, Table};

use crate::object::{self, Object};
use crate::registry::ResourceId;
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

/// Fields that selectors know, by name.
pub type Fields = BTreeMap<String, String>;

/// Names and values, ordered by name; smaller than a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Box<[(Box<str>, Box<str>)]>);

impl Pairs {
    /// The value of a name.
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

/// What is asked of objects without decoding them.
#[derive(Clone, Debug)]
pub struct Header {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion`.
    pub revision: u64,
    /// `metadata.labels`.
    pub labels: Pairs,
    /// Selectable fields beside name and namespace.
    pub fields: Pairs,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// `metadata.ownerReferences`.
    pub owners: Box<[Owner]>,
}

/// An owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its UID.
    pub uid: Box<str>,
    /// Whether its deletion in the foreground waits for the object.
    pub blocks: bool,
}

/// A state of an object.
#[derive(Debug)]
pub struct Stored {
    /// Where it is.
    pub key: Key,
    /// What is asked of it often.
    pub header: Header,
    /// Its JSON, without `apiVersion` and `kind`.
    pub json: Bytes,
}

impl Stored {
    /// The object, without `apiVersion` and `kind`.
    #[must_use]
    pub fn decode(&self) -> Object {
        serde_json::from_slice(&self.json).expect("it was encoded by us")
    }

    /// The same with another resourceVersion.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        let fields = self.header.fields.0.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        encode(self.key.clone(), self.decode(), fields.collect(), revision)
    }

    /// The object with `apiVersion` and `kind`.
    #[must_use]
    pub fn decode_as(&self, api_version: &str, kind: &str) -> Object {
        let mut object = self.decode();
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        object
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resourceVersion that it made.
    pub revision: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// The state before; absent where it was added.
    pub before: Option<Arc<Stored>>,
    /// The state after; where it was deleted its last state, with the resourceVersion of the deletion.
    pub after: Arc<Stored>,
}

/// Why something cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unstorable {
    /// The object is larger than [`crate::limits::Limits::object_bytes`].
    TooLarge,
    /// There are [`crate::limits::Limits::objects`] objects.
    Full,
}

/// All objects of a server.
#[derive(Debug)]
pub struct Store {
    tables: BTreeMap<ResourceId, Table>,
    /// What refers to an owner, by the owner's UID.
    dependents: BTreeMap<Box<str>, BTreeSet<(ResourceId, Key)>>,
    revision: u64,
    object_count: usize,
    objects_max: usize,
    object_bytes_max: usize,
    log_limits: LogLimits,
    /// Told of each change of any object.
    moved: Arc<Notify>,
    /// Moves when the data is replaced by other data: watches of before end.
    incarnation: u64,
}

impl Store {
    pub(crate) fn new(limits: &crate::limits::Limits) -> Self {
        Self {
            tables: BTreeMap::new(),
            dependents: BTreeMap::new(),
            revision: 1,
            object_count: 0,
            objects_max: limits.objects,
            object_bytes_max: limits.object_bytes,
            log_limits: LogLimits { changes: limits.log_changes, bytes: limits.log_bytes },
            moved: Arc::default(),
            incarnation: 0,
        }
    }

    /// The resourceVersion of the last change of anything.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// One object.
    #[must_use]
    pub fn get(&self, resource: &ResourceId, key: &Key) -> Option<&Arc<Stored>> {
        self.tables.get(resource)?.objects.get(key)
    }

    /// The objects of a namespace, or of all where it is empty, in the order of their keys.
    pub fn list<'a>(
        &'a self,
        resource: &ResourceId,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let table = self.tables.get(resource);
        let begin = Key::first_of(namespace);
        let namespace = namespace.to_owned();
        let tail = table.into_iter().flat_map(move |table| table.objects.range(begin.clone()..));
        tail.take_while(move |(key, _)| namespace.is_empty() || key.namespace() == namespace).map(|(_, stored)| stored)
    }

    /// What refers to an owner of that UID, whether that is there or not.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &(ResourceId, Key)> {
        self.dependents.get(uid).into_iter().flatten()
    }

    fn forget_owners(&mut self, resource: &ResourceId, stored: &Stored) {
        for owner in &stored.header.owners {
            if let Some(owned) = self.dependents.get_mut(&owner.uid) {
                owned.remove(&(resource.clone(), stored.key.clone()));
                if owned.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    pub(crate) fn moved(&self) -> Arc<Notify> {
        Arc::clone(&self.moved)
    }

    pub(crate) fn table(&self, resource: &ResourceId) -> Option<&Table> {
        self.tables.get(resource)
    }

    pub(crate) fn table_or_new(&mut self, resource: &ResourceId) -> &mut Table {
        self.tables.entry(resource.clone()).or_default()
    }

    /// Stores a new state of an object, with a resourceVersion of its own.
    pub(crate) fn put(
        &mut self,
        resource: &ResourceId,
        key: Key,
        object: Object,
        fields: Fields,
    ) -> Result<Change, Unstorable> {
        let before = self.get(resource, &key).cloned();
        if before.is_none() && self.object_count >= self.objects_max {
            return Err(Unstorable::Full);
        }
        let revision = self.revision + 1;
        let after = Arc::new(encode(key, object, fields, revision));
        if after.json.len() > self.object_bytes_max {
            return Err(Unstorable::TooLarge);
        }
        let kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.object_count += usize::from(before.is_none());
        Ok(self.record(resource, Change { revision, kind, before, after }))
    }

    /// Removes an object. Its last state is what was stored, with the resourceVersion of the deletion.
    pub(crate) fn remove(&mut self, resource: &ResourceId, key: &Key) -> Option<Change> {
        let before = self.get(resource, key).cloned()?;
        let revision = self.revision + 1;
        let after = Arc::new(before.at_revision(revision));
        self.object_count -= 1;
        let change = Change { revision, kind: ChangeKind::Deleted, before: Some(before), after };
        Some(self.record(resource, change))
    }

    fn record(&mut self, resource: &ResourceId, change: Change) -> Change {
        self.revision = change.revision;
        if let Some(before) = &change.before {
            self.forget_owners(resource, before);
        }
        if change.kind != ChangeKind::Deleted {
            for owner in &change.after.header.owners {
                let owned = self.dependents.entry(owner.uid.clone()).or_default();
                owned.insert((resource.clone(), change.after.key.clone()));
            }
        }
        let log_limits = self.log_limits;
        self.table_or_new(resource).record(change.clone(), log_limits);
        self.moved.notify_waiters();
        change
    }

    /// Forgets a table and its objects. Watches that are open still read what happened.
    pub(crate) fn drop_table(&mut self, resource: &ResourceId) {
        if let Some(table) = self.tables.remove(resource) {
            self.object_count -= table.objects.len();
            for stored in table.objects.values() {
                self.forget_owners(resource, stored);
            }
            table.end();
        }
    }

    /// A copy that shares the objects.
    pub(crate) fn fork(&self) -> Self {
        let tables = self.tables.iter().map(|(resource, table)| (resource.clone(), table.fork()));
        Self { tables: tables.collect(), dependents: self.dependents.clone(), moved: Arc::default(), ..*self }
    }

    /// Takes the data of another; watches end.
    pub(crate) fn replace_with(&mut self, other: &Self) {
        let past = std::mem::replace(self, other.fork());
        self.incarnation = past.incarnation + 1;
        for table in past.tables.values() {
            table.changed().notify_waiters();
        }
        past.moved.notify_waiters();
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Makes the table of a resource that is new: nothing is known of it from before now.
    pub(crate) fn begin_table(&mut self, resource: &ResourceId) {
        let revision = self.revision;
        self.tables.entry(resource.clone()).or_insert_with(|| Table::beginning_at(revision));
    }

    /// Forgets the log up to now, of all tables: watches from before are told that they are too late.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        for table in self.tables.values_mut() {
            table.compact(revision);
        }
    }
}

/// The form in which objects are stored.
fn encode(key: Key, mut object: Object, fields: Fields, revision: u64) -> Stored {
    object.remove("apiVersion");
    object.remove("kind");
    object::set_meta(&mut object, "resourceVersion", revision.to_string());
    object::remove_meta(&mut object, "managedFields");
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

fn owners(object: &Object) -> Box<[Owner]> {
    let references = object::meta(object, "ownerReferences").and_then(Value::as_array);
    let owner = |reference: &Value| Owner {
        uid: reference["uid"].as_str().unwrap_or_default().into(),
        blocks: reference["blockOwnerDeletion"] == true,
    };
    references.into_iter().flatten().map(owner).collect()
}

fn labels(object: &Object) -> Pairs {
    let labels = object::meta(object, "labels").and_then(Value::as_object);
    let texts =
        labels.into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    texts.collect()
}
