//! The garbage collector: what has lost its last owner is deleted, and an owner that is deleted in the foreground waits for
//! what it owns, as kube-controller-manager sees to in a cluster.

use crate::object::{self, Object, finalizers, meta};
use crate::registry::{ResourceId, Scope};
use crate::server::State;
use crate::store::{Change, ChangeKind, Key, Stored};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Keeps an owner until what blocks its deletion is gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until what it owned does not refer to it any more.
pub(super) const ORPHAN: &str = "orphan";

/// Objects that the collector has to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    resource: ResourceId,
    key: Key,
}

/// What stands behind an owner reference.
enum Owner {
    Absent,
    /// It is deleted in the foreground.
    Waits,
    /// It is there, or nobody can tell.
    Stands,
}

impl State {
    /// Notes what a change means for owners and what they own.
    pub(super) fn note_garbage(&mut self, resource: &ResourceId, change: &Change) {
        if !self.collects_garbage {
            return;
        }
        let (after, gone) = (&change.after, change.kind == ChangeKind::Deleted);
        let before = change.before.as_ref().filter(|before| !before.header.owners.is_empty());
        let released = before.filter(|before| gone || before.header.owners != after.header.owners);
        if let Some(before) = released {
            let references = references(&before.decode());
            let owners = references.iter().filter_map(|reference| self.place(reference, before.key.namespace()));
            let owners: Vec<Look> = owners.collect();
            self.looks.extend(owners);
        }
        if gone {
            let owned = self.store.dependents(&after.header.uid);
            self.looks.extend(owned.map(|(resource, key)| Look { resource: resource.clone(), key: key.clone() }));
        } else if after.header.deleting || (!after.header.owners.is_empty() && (before.is_none() || released.is_some()))
        {
            self.looks.push_back(Look { resource: resource.clone(), key: after.key.clone() });
        }
    }

    /// Deletes what has no owner any more, and what follows from that.
    pub(super) fn collect_garbage(&mut self, namespace_controller: bool, now: Timestamp) {
        while let Some(Look { resource, key }) = self.looks.pop_front() {
            let Some(stored) = self.store.get(&resource, &key).cloned() else { continue };
            self.look(&resource, &stored, now);
            if namespace_controller {
                self.empty_namespace(key.namespace(), now);
            }
        }
    }

    fn look(&mut self, resource: &ResourceId, stored: &Arc<Stored>, now: Timestamp) {
        let mut object = stored.decode();
        if stored.header.deleting {
            if finalizers(&object).any(|finalizer| finalizer == ORPHAN) {
                self.orphan(stored);
                self.release(resource, stored, ORPHAN, now);
            } else if finalizers(&object).any(|finalizer| finalizer == FOREGROUND) {
                self.await_owned(resource, stored, now);
            }
            return;
        }
        let references = references(&object);
        let (mut standing, mut waits) = (Vec::new(), false);
        for reference in &references {
            match self.owner(reference, stored.key.namespace()) {
                Owner::Stands => standing.push(reference.clone()),
                Owner::Waits => waits = true,
                Owner::Absent => {}
            }
        }
        if standing.len() == references.len() {
            return;
        }
        if !standing.is_empty() {
            object::set_meta(&mut object, "ownerReferences", standing);
            // It is smaller than it was.
            let _ = self.put(resource, stored.key.clone(), object);
            return;
        }
        if waits && self.store.dependents(&stored.header.uid).next().is_some() {
            let kept = finalizers(&object).chain([FOREGROUND]).map(Value::from).collect::<Vec<_>>();
            object::set_meta(&mut object, "finalizers", kept);
            // Were it too large, what it owns would be deleted after it.
            let _ = self.put(resource, stored.key.clone(), object);
        }
        if let Some(stored) = self.store.get(resource, &stored.key).cloned() {
            self.sweep(resource, &stored, now);
        }
    }

    /// Lets an owner go that is deleted in the foreground, once nothing is left that blocks it.
    fn await_owned(&mut self, resource: &ResourceId, stored: &Stored, now: Timestamp) {
        let uid = &stored.header.uid;
        let owned = self.store.dependents(uid).filter_map(|(resource, key)| {
            let stored = self.store.get(resource, key)?;
            Some((Look { resource: resource.clone(), key: key.clone() }, Arc::clone(stored)))
        });
        let owned: Vec<(Look, Arc<Stored>)> = owned.collect();
        let blocks = |owned: &Stored| owned.header.owners.iter().any(|owner| owner.uid == *uid && owner.blocks);
        let waits = owned.iter().any(|(_, owned)| blocks(owned));
        self.looks.extend(owned.into_iter().filter(|(_, owned)| !owned.header.deleting).map(|(look, _)| look));
        if !waits {
            self.release(resource, stored, FOREGROUND, now);
        }
    }

    /// Takes an owner's name out of what it owned.
    fn orphan(&mut self, owner: &Stored) {
        let uid = &owner.header.uid;
        let owned = self.store.dependents(uid).map(|(resource, key)| (resource.clone(), key.clone()));
        for (resource, key) in owned.collect::<Vec<_>>() {
            let Some(stored) = self.store.get(&resource, &key).cloned() else { continue };
            let mut object = stored.decode();
            let others = references(&object).into_iter().filter(|reference| reference["uid"] != **uid);
            let others: Vec<Value> = others.collect();
            set_list(&mut object, "ownerReferences", others);
            // It is smaller than it was.
            let _ = self.put(&resource, key, object);
        }
    }

    /// Takes one of the collector's finalizers away, and the object with its last.
    fn release(&mut self, resource: &ResourceId, stored: &Stored, finalizer: &str, now: Timestamp) {
        let mut object = stored.decode();
        let others: Vec<Value> = finalizers(&object).filter(|other| *other != finalizer).map(Value::from).collect();
        let graceful = meta(&object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) > 0;
        let kept = self.registry.get(resource).is_some_and(|registered| registered.strategy.keeps_deleted(&object));
        let goes = others.is_empty() && !graceful && !kept;
        set_list(&mut object, "finalizers", others);
        if goes {
            self.remove(resource, &stored.key, now);
        } else {
            // It is smaller than it was.
            let _ = self.put(resource, stored.key.clone(), object);
        }
    }

    fn owner(&self, reference: &Value, namespace: &str) -> Owner {
        let Some(Look { resource, key }) = self.place(reference, namespace) else { return Owner::Stands };
        let stored = self.store.get(&resource, &key).filter(|stored| reference["uid"] == *stored.header.uid);
        match stored {
            None => Owner::Absent,
            Some(stored) if stored.header.deleting => {
                let object = stored.decode();
                let waits = finalizers(&object).any(|finalizer| finalizer == FOREGROUND);
                if waits { Owner::Waits } else { Owner::Stands }
            }
            Some(_) => Owner::Stands,
        }
    }

    /// Where the owner is that a reference of an object in `namespace` names. None of a kind that is not known, and of one in
    /// namespaces that is to own an object outside of them.
    fn place(&self, reference: &Value, namespace: &str) -> Option<Look> {
        let [version, kind, name] =
            ["apiVersion", "kind", "name"].map(|member| reference[member].as_str().unwrap_or_default());
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let mut definitions = self.registry.definitions();
        let definition = definitions.find(|it| it.group == group && it.kind == kind && it.stored())?;
        let key = match (definition.scope, namespace) {
            (Scope::Cluster, _) => Key::new("", name),
            (Scope::Namespaced, "") => return None,
            (Scope::Namespaced, namespace) => Key::new(namespace, name),
        };
        Some(Look { resource: definition.id(), key })
    }
}

fn references(object: &Object) -> Vec<Value> {
    meta(object, "ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Sets a list of `metadata`. An empty one is removed, as a Go API server leaves it out.
fn set_list(object: &mut Object, name: &str, list: Vec<Value>) {
    match list.is_empty() {
        true => drop(object::remove_meta(object, name)),
        false => object::set_meta(object, name, list),
    }
}
