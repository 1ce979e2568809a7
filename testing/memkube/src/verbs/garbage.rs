//! Garbage collector, with the rules of kube-controller-manager's garbage collector.
//!
//! - An object without remaining owners is deleted.
//! - An owner that is deleted in the foreground waits for its dependents. Dependents of an orphaning owner lose the
//!   reference.

use crate::object::{self, Object, finalizers, meta};
use crate::registry::{ResourceId, Scope};
use crate::server::{Look, State};
use crate::store::{Change, ChangeKind, Key, Stored};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Finalizer of foreground deletion: keeps an owner until it has no dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer that keeps an owner until no object refers to it.
pub(super) const ORPHAN: &str = "orphan";

impl State {
    /// Queues the objects that the garbage collector must check after a change.
    pub(super) fn note_garbage(&mut self, resource: &ResourceId, change: &Change) {
        if !self.collects_garbage {
            return;
        }
        let after = &change.after;
        let gone = change.kind == ChangeKind::Deleted;
        if gone {
            let owned = self.store.dependents(&after.header.uid);
            let owned = owned.map(|(resource, key)| Look { resource: resource.clone(), key: key.clone() });
            self.looks.extend(owned.collect::<Vec<_>>());
        }
        let moved = change.before.as_ref().is_none_or(|before| gone || before.header.owners != after.header.owners);
        let released = change.before.as_ref().filter(|before| moved && !before.header.owners.is_empty());
        for reference in released.map(|before| references(&before.decode())).unwrap_or_default() {
            // The owner may wait for this object.
            self.looks.extend(self.place(&reference, after.key.namespace()));
        }
        if !gone && (after.header.deleting || (moved && !after.header.owners.is_empty())) {
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
            let policy =
                finalizers(&object).find(|finalizer| [FOREGROUND, ORPHAN].contains(finalizer)).map(str::to_owned);
            if let Some(policy) = policy {
                self.release(resource, stored, &policy, now);
            }
            return;
        }
        let references = references(&object);
        let exists = |reference: &&Value| self.has_owner(reference, stored.key.namespace());
        let standing: Vec<Value> = references.iter().filter(exists).cloned().collect();
        if standing.len() == references.len() {
            return;
        }
        if standing.is_empty() {
            self.sweep(resource, stored, now);
            return;
        }
        object::set_meta(&mut object, "ownerReferences", standing);
        // This write cannot fail: the object is smaller than before, so it is not too large.
        let _ = self.put(resource, stored.key.clone(), object);
    }

    /// Completes a deletion in the foreground or with orphans. In the foreground, the dependents are deleted first.
    fn release(&mut self, resource: &ResourceId, owner: &Stored, policy: &str, now: Timestamp) {
        let owned = self.store.dependents(&owner.header.uid).cloned().collect::<Vec<_>>();
        let mut left = false;
        for (resource, key) in owned {
            let Some(stored) = self.store.get(&resource, &key).cloned() else { continue };
            if policy == FOREGROUND {
                left |= !self.sweep(&resource, &stored, now);
                continue;
            }
            let mut object = stored.decode();
            let others = references(&object).into_iter().filter(|reference| reference["uid"] != *owner.header.uid);
            let others = others.collect();
            set_list(&mut object, "ownerReferences", others);
            // This write cannot fail: the object is smaller than before, so it is not too large.
            let _ = self.put(&resource, key, object);
        }
        if left {
            return;
        }
        let mut object = owner.decode();
        let others: Vec<Value> = finalizers(&object).filter(|other| *other != policy).map(Value::from).collect();
        let goes = others.is_empty();
        set_list(&mut object, "finalizers", others);
        if goes {
            self.remove(resource, &owner.key, now);
        } else {
            // This write cannot fail: the object is smaller than before, so it is not too large.
            let _ = self.put(resource, owner.key.clone(), object);
        }
    }

    /// True if the owner that a reference names exists. Also true if nobody can tell. `namespace` is the namespace of
    /// the dependent.
    fn has_owner(&self, reference: &Value, namespace: &str) -> bool {
        let Some(Look { resource, key }) = self.place(reference, namespace) else { return true };
        let owner = self.store.get(&resource, &key);
        owner.is_some_and(|owner| reference["uid"] == *owner.header.uid)
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

/// Sets a list in `metadata`. Removes an empty list, because Go omits empty lists.
fn set_list(object: &mut Object, name: &str, list: Vec<Value>) {
    match list.is_empty() {
        true => drop(object::remove_meta(object, name)),
        false => object::set_meta(object, name, list),
    }
}

fn references(object: &Object) -> Vec<Value> {
    meta(object, "ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}
