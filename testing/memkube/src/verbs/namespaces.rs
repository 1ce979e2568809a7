//! Deletion of namespaces, with the behaviour of kube-apiserver and kube-controller-manager.
//!
//! - A create is rejected if the namespace does not exist or is being deleted.
//! - A namespace that is being deleted is emptied and then removed.

use crate::object::{self, Object, create, finalizers};
use crate::registry::{ResourceId, Scope};
use crate::server::State;
use crate::status::{Named, Status};
use crate::store::{Key, Stored};
use crate::strategy::builtin;
use jiff::Timestamp;
use std::sync::Arc;

/// Namespaces that cannot be deleted.
pub(super) const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl State {
    /// Rejects a create in a namespace that does not exist or is being deleted.
    pub(super) fn open_namespace(&self, namespace: &str, what: Named<'_>) -> Result<(), Status> {
        let Some(stored) = self.namespace(namespace) else {
            let named = Named { group: "", kind: "namespaces", name: namespace };
            return Err(Status::not_found(named));
        };
        if !stored.header.deleting {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(Status::forbidden(what, &why).with_cause("NamespaceTerminating", "metadata.namespace"))
    }

    fn namespace(&self, name: &str) -> Option<&Arc<Stored>> {
        self.store.get(&builtin::namespaces(), &Key::new("", name))
    }

    /// Deletes the content of a namespace that is being deleted, and removes the namespace if it is empty.
    pub(super) fn empty_namespace(&mut self, name: &str, now: Timestamp) {
        if !self.namespace(name).is_some_and(|stored| stored.header.deleting) {
            return;
        }
        let mut left = 0;
        for resource in self.namespaced_resources() {
            let objects: Vec<Arc<Stored>> = self.store.list(&resource, name).cloned().collect();
            for stored in objects {
                left += usize::from(!self.sweep(&resource, &stored, now));
            }
        }
        if left == 0 {
            self.finish_namespace(name, now);
        }
    }

    fn namespaced_resources(&self) -> Vec<ResourceId> {
        let definitions = self.registry.definitions();
        let namespaced = definitions.filter(|definition| definition.scope == Scope::Namespaced && definition.stored());
        namespaced.map(|definition| definition.id()).collect()
    }

    /// Deletes an object, or sets its deletionTimestamp if the object has finalizers. Returns true if the object does
    /// not exist any more.
    pub(super) fn sweep(&mut self, resource: &ResourceId, stored: &Stored, now: Timestamp) -> bool {
        let mut object = stored.decode();
        let kept = finalizers(&object).next().is_some();
        if !kept {
            self.remove(resource, &stored.key, now);
            return true;
        }
        if !stored.header.deleting {
            mark(&mut object, now);
            object::set_meta(&mut object, "deletionGracePeriodSeconds", 0);
            // This write fails if the deletionTimestamp makes the object too large. Then the object stays, and its
            // namespace is not removed.
            let _ = self.put(resource, stored.key.clone(), object);
        }
        false
    }

    fn finish_namespace(&mut self, name: &str, now: Timestamp) {
        let Some(stored) = self.namespace(name).cloned() else { return };
        if finalizers(&stored.decode()).next().is_none() {
            self.remove(&builtin::namespaces(), &stored.key, now);
        }
    }
}

/// Sets the deletionTimestamp of an object, and increments its generation if the object has a generation.
pub(super) fn mark(object: &mut Object, at: Timestamp) {
    object::set_meta(object, "deletionTimestamp", create::timestamp(at));
    let generation = object::generation(object);
    if generation > 0 {
        object::set_meta(object, "generation", generation + 1);
    }
}
