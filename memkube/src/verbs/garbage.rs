//! Garbage collector: an object without remaining owners is deleted, as kube-controller-manager's garbage collector does.

use crate::object::{self, Object, meta};
use crate::registry::{ResourceId, Scope};
use crate::server::State;
use crate::store::{Change, ChangeKind, Key, Stored};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Entry in the queue of the garbage collector: an object that the collector must check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    resource: ResourceId,
    key: Key,
}

impl State {
    /// Queues the objects that the garbage collector must check after a change.
    pub(super) fn note_garbage(&mut self, resource: &ResourceId, change: &Change) {
        if !self.collects_garbage {
            return;
        }
        let after = &change.after;
        if change.kind == ChangeKind::Deleted {
            let owned = self.store.dependents(&after.header.uid);
            self.looks.extend(owned.map(|(resource, key)| Look { resource: resource.clone(), key: key.clone() }));
        } else if !after.header.owners.is_empty()
            && change.before.as_ref().is_none_or(|before| before.header.owners != after.header.owners)
        {
            self.looks.push_back(Look { resource: resource.clone(), key: after.key.clone() });
        }
    }

    /// Checks all queued objects and deletes objects without owners. These deletions can queue more objects.
    pub(super) fn collect_garbage(&mut self, namespace_controller: bool, now: Timestamp) {
        while let Some(Look { resource, key }) = self.looks.pop_front() {
            let Some(stored) = self.store.get(&resource, &key).cloned() else { continue };
            if stored.header.deleting {
                continue;
            }
            self.look(&resource, &stored, now);
            if namespace_controller {
                self.empty_namespace(key.namespace(), now);
            }
        }
    }

    fn look(&mut self, resource: &ResourceId, stored: &Arc<Stored>, now: Timestamp) {
        let mut object = stored.decode();
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

    /// True if the owner that a reference names exists. Also true for an unknown kind, and for a reference from a cluster-scoped
    /// dependent to a namespaced owner. `namespace` is the namespace of the dependent.
    fn has_owner(&self, reference: &Value, namespace: &str) -> bool {
        let [version, kind, name] =
            ["apiVersion", "kind", "name"].map(|member| reference[member].as_str().unwrap_or_default());
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let mut definitions = self.registry.definitions();
        let Some(definition) = definitions.find(|it| it.group == group && it.kind == kind && it.stored()) else {
            return true;
        };
        let key = match (definition.scope, namespace) {
            (Scope::Cluster, _) => Key::new("", name),
            (Scope::Namespaced, "") => return true,
            (Scope::Namespaced, namespace) => Key::new(namespace, name),
        };
        let owner = self.store.get(&definition.id(), &key);
        owner.is_some_and(|owner| reference["uid"] == *owner.header.uid)
    }
}

fn references(object: &Object) -> Vec<Value> {
    meta(object, "ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}
