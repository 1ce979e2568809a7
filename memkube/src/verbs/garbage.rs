//! Garbage collector, with the rules of kube-controller-manager's garbage collector.
//!
//! - An object without remaining owners is deleted.
//! - An owner that is deleted in the foreground waits for its dependents.

use crate::object::{self, Object, finalizers, meta};
use crate::registry::{ResourceId, Scope};
use crate::server::State;
use crate::store::{Change, ChangeKind, Key, Stored};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Finalizer of foreground deletion: keeps an owner until no dependent blocks its deletion.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer that keeps an owner until no object refers to it.
pub(super) const ORPHAN: &str = "orphan";

/// Entry in the queue of the garbage collector: an object that the collector must check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    resource: ResourceId,
    key: Key,
}

/// State of the owner that an owner reference names.
enum Owner {
    Absent,
    /// The owner is being deleted in the foreground.
    Waits,
    /// The owner exists, or its kind is unknown.
    Stands,
}

impl State {
    /// Queues the objects that the garbage collector must check after a change.
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

    /// Checks all queued objects and deletes objects without owners. These deletions can queue more objects.
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
            // This write cannot fail: the object is smaller than before, so it is not too large.
            let _ = self.put(resource, stored.key.clone(), object);
            return;
        }
        if waits && self.store.dependents(&stored.header.uid).next().is_some() {
            let kept = finalizers(&object).chain([FOREGROUND]).map(Value::from).collect::<Vec<_>>();
            object::set_meta(&mut object, "finalizers", kept);
            // This write fails if the finalizer makes the object too large. Then the finalizer is not stored, and the
            // dependents are deleted after the object.
            let _ = self.put(resource, stored.key.clone(), object);
        }
        if let Some(stored) = self.store.get(resource, &stored.key).cloned() {
            self.sweep(resource, &stored, now);
        }
    }

    /// Completes the foreground deletion of an owner if no dependent blocks the deletion. Queues the dependents whose deletion
    /// has not started.
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

    /// Removes the owner reference from all dependents of an owner.
    fn orphan(&mut self, owner: &Stored) {
        let uid = &owner.header.uid;
        let owned = self.store.dependents(uid).map(|(resource, key)| (resource.clone(), key.clone()));
        for (resource, key) in owned.collect::<Vec<_>>() {
            let Some(stored) = self.store.get(&resource, &key).cloned() else { continue };
            let mut object = stored.decode();
            let others = references(&object).into_iter().filter(|reference| reference["uid"] != **uid);
            let others: Vec<Value> = others.collect();
            set_list(&mut object, "ownerReferences", others);
            // This write cannot fail: the object is smaller than before, so it is not too large.
            let _ = self.put(&resource, key, object);
        }
    }

    /// Removes a finalizer of the garbage collector. Deletes the object if nothing else delays its deletion.
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
            // This write cannot fail: the object is smaller than before, so it is not too large.
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

    /// Returns the object that an owner reference names. `namespace` is the namespace of the dependent.
    ///
    /// Returns `None` for an unknown kind, and for a reference from a cluster-scoped dependent to a namespaced owner.
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

/// Sets a list in `metadata`. Removes an empty list, because Go omits empty lists.
fn set_list(object: &mut Object, name: &str, list: Vec<Value>) {
    match list.is_empty() {
        true => drop(object::remove_meta(object, name)),
        false => object::set_meta(object, name, list),
    }
}
