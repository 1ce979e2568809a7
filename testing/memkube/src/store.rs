//! Storage of objects, with an event log for each resource.
//!
//! An object is encoded once, and all readers share the bytes. The header has the values that are needed without
//! decoding the object.
//!
//! The stored bytes are JSON without `apiVersion` and `kind`, because these two differ between responses (versions,
//! items of lists). Each response adds `apiVersion` and `kind`. See [`Stored::json`].

mod key;
mod stored;
mod table;

pub use key::Key;
use stored::encode;
pub use stored::{Change, ChangeKind, Fields, Header, Pairs, Stored};
use table::LogLimits;
pub(crate) use table::{Ended, Table};

use crate::object::Object;
use crate::registry::ResourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

/// Reason why an object cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unstorable {
    /// The object is larger than [`crate::limits::Limits::object_bytes`].
    TooLarge,
    /// The store already has the maximum number of objects ([`crate::limits::Limits::objects`]).
    Full,
}

/// All objects of a server.
#[derive(Debug)]
pub struct Store {
    tables: BTreeMap<ResourceId, Table>,
    /// Dependents of each owner, by the UID of the owner.
    dependents: BTreeMap<Box<str>, BTreeSet<(ResourceId, Key)>>,
    revision: u64,
    object_count: usize,
    objects_max: usize,
    object_bytes_max: usize,
    log_limits: LogLimits,
    /// Notified after each change of any object.
    moved: Arc<Notify>,
    /// Number of restores from a backup. When the number changes, open watches end, because they show data from before
    /// the restore.
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

    /// resourceVersion of the last change of any object.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns an object, or `None` if it does not exist.
    #[must_use]
    pub fn get(&self, resource: &ResourceId, key: &Key) -> Option<&Arc<Stored>> {
        self.tables.get(resource)?.objects.get(key)
    }

    /// Returns the objects of a namespace, or of all namespaces if `namespace` is empty, in the order of their keys.
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

    /// Returns the objects with an owner reference to this UID. The owner may be absent.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &(ResourceId, Key)> {
        self.dependents.get(uid).into_iter().flatten()
    }

    fn forget_owners(&mut self, resource: &ResourceId, stored: &Stored) {
        for owner in &stored.header.owners {
            if let Some(owned) = self.dependents.get_mut(owner) {
                owned.remove(&(resource.clone(), stored.key.clone()));
                if owned.is_empty() {
                    self.dependents.remove(owner);
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

    /// Stores a new state of an object. The state gets a new resourceVersion.
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

    /// Removes an object. In the returned change, the last state has the resourceVersion of the deletion. `None` if the
    /// object does not exist.
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
                let owned = self.dependents.entry(owner.clone()).or_default();
                owned.insert((resource.clone(), change.after.key.clone()));
            }
        }
        let log_limits = self.log_limits;
        self.table_or_new(resource).record(change.clone(), log_limits);
        self.moved.notify_waiters();
        change
    }

    /// Removes a table with its objects. Open watches can still read its event log.
    pub(crate) fn drop_table(&mut self, resource: &ResourceId) {
        if let Some(table) = self.tables.remove(resource) {
            self.object_count -= table.objects.len();
            for stored in table.objects.values() {
                self.forget_owners(resource, stored);
            }
            table.end();
        }
    }

    /// Returns a copy of the store. Both stores share the bytes of the objects.
    pub(crate) fn fork(&self) -> Self {
        let tables = self.tables.iter().map(|(resource, table)| (resource.clone(), table.fork()));
        Self { tables: tables.collect(), dependents: self.dependents.clone(), moved: Arc::default(), ..*self }
    }

    /// Replaces all data by the data of another store. Open watches end.
    pub(crate) fn replace_with(&mut self, other: &Self) {
        let past = std::mem::replace(self, other.fork());
        self.incarnation = past.incarnation + 1;
        for table in past.tables.values() {
            table.changed().notify_waiters();
        }
        past.moved.notify_waiters();
    }

    /// Continues at a higher revision.
    pub(crate) fn advance_to(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// Continues at a higher revision, and clears all event logs.
    pub(crate) fn bump(&mut self, revision: u64) {
        self.revision = revision;
        self.compact();
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Creates the table of a new resource. The event log of the table starts at the current revision.
    pub(crate) fn begin_table(&mut self, resource: &ResourceId) {
        let revision = self.revision;
        self.tables.entry(resource.clone()).or_insert_with(|| Table::beginning_at(revision));
    }

    /// Clears all event logs. Watches from earlier revisions get 410.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        for table in self.tables.values_mut() {
            table.compact(revision);
        }
    }
}
