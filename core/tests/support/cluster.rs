//! Simulated API server, with the behaviour that affects the agents' rules: UIDs, versions, generations, finalizers and
//! preconditions.

use super::agent::{KindChange, applied, removed};
use super::server::{made, merge, specification, without_status};
use fleetnet_core::model::{Kind, Object};
use fleetnet_core::plan::{Action, Write};
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Result of a write. After each of these results, [`Cluster::get`] returns the current object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Conflict,
    AlreadyExists,
    NotFound,
    NoNamespace,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    /// Part of every UID in this cluster, so that no two clusters have the same UID.
    id: String,
    objects: BTreeMap<(Kind, ObjectName), Object>,
    incarnations: BTreeMap<(Kind, ObjectName), u32>,
    version: u64,
    /// Namespaces that do not exist in this cluster. A create in such a namespace fails.
    pub(crate) missing_namespaces: BTreeSet<String>,
    /// Changes that the watches have not received yet.
    pub(crate) changes: Vec<KindChange>,
}

impl Cluster {
    pub(crate) fn called(id: &str) -> Self {
        Self { id: format!("{id}:"), ..Self::default() }
    }

    pub(crate) fn get(&self, kind: Kind, name: &ObjectName) -> Option<&Object> {
        self.objects.get(&(kind, name.clone()))
    }

    pub(crate) fn list(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(move |object| object.kind() == kind)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// POST: stores the object with a new UID and without status. Returns false if the name is in use.
    pub(crate) fn create(&mut self, object: Object, now: Timestamp) -> bool {
        let key = (object.kind(), object.meta().name.clone());
        if self.objects.contains_key(&key) {
            return false;
        }
        let incarnation = self.incarnations.entry(key.clone()).or_default();
        *incarnation += 1;
        let mut object = without_status(object);
        let uid = format!("{}{:?}/{}#{incarnation}", self.id, key.0, key.1);
        let meta = object.meta_mut();
        meta.uid = uid.into();
        meta.deleting = false;
        meta.created = now.whole_seconds();
        self.store(object);
        true
    }

    /// PUT or PATCH by a user or an agent. Returns true if the object changed.
    pub(crate) fn edit(&mut self, kind: Kind, name: &ObjectName, change: impl FnOnce(&mut Object)) -> bool {
        let Some(before) = self.get(kind, name).cloned() else { return false };
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return false;
        }
        if after.meta().generation > 0 && specification(&after) != specification(&before) {
            after.meta_mut().generation = before.meta().generation + 1;
        }
        self.store(after);
        true
    }

    /// DELETE: removes an object without finalizers at once, and any other object when its last finalizer is gone.
    pub(crate) fn delete(&mut self, kind: Kind, name: &ObjectName) {
        let Some(mut object) = self.get(kind, name).cloned() else { return };
        let meta = object.meta_mut();
        if meta.deleting {
            return;
        }
        meta.deleting = true;
        if meta.generation > 0 {
            meta.generation += 1; // setting the deletionTimestamp raises the generation
        }
        self.store(object);
    }

    fn store(&mut self, mut object: Object) {
        self.version += 1;
        let key = (object.kind(), object.meta().name.clone());
        let meta = object.meta_mut();
        meta.resource_version = self.version;
        if meta.deleting && !meta.finalizers.ours && meta.finalizers.others.is_empty() {
            self.changes.push(removed(key.0, key.1.clone(), meta.uid.clone()));
            self.objects.remove(&key);
            return;
        }
        self.changes.push(applied(object.clone()));
        self.objects.insert(key, object);
    }

    /// Executes a planned write.
    pub(crate) fn execute(&mut self, write: &Write, now: Timestamp) -> Answer {
        let stored = self.get(write.kind(), &write.at);
        match &write.action {
            Action::Create(_) if self.missing_namespaces.contains(&*write.at.namespace) => Answer::NoNamespace,
            Action::Create(desired) => {
                let object = made(&write.at, desired);
                if self.create(object, now) { Answer::Done } else { Answer::AlreadyExists }
            }
            Action::Patch { resource_version, patch } => {
                let Some(stored) = stored else { return Answer::NotFound };
                if stored.meta().resource_version != *resource_version {
                    return Answer::Conflict;
                }
                let changed = self.edit(write.kind(), &write.at, |object| merge(object, patch.clone()));
                assert!(changed, "a write that changes nothing: {write:?}");
                Answer::Done
            }
            Action::Delete { uid, kind: _ } => match stored.map(|stored| stored.meta()) {
                None => Answer::NotFound,
                Some(stored) if stored.uid != *uid => Answer::Conflict,
                Some(_) => {
                    self.delete(write.kind(), &write.at); // no effect if somebody has just deleted the object
                    Answer::Done
                }
            },
        }
    }
}
