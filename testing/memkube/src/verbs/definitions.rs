//! Deletion of CustomResourceDefinitions: the server first deletes the objects of the kind. In memkube this happens in
//! one request, unless finalizers keep objects.

use super::Work;
use super::delete::{Last, Outcome};
use super::namespaces::mark;
use crate::object::{self, Object, finalizers};
use crate::registry::{Definition, ResourceId};
use crate::server::State;
use crate::status::Status;
use crate::store::{Key, Stored};
use crate::strategy::builtin;
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Finalizer that keeps a CustomResourceDefinition that is being deleted until all objects of its kind are deleted.
const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Work<'_> {
    /// Starts the deletion of a CustomResourceDefinition and its objects. The response contains the state before the
    /// objects are deleted.
    pub(super) fn delete_definition(&mut self, stored: &Arc<Stored>) -> Result<Outcome, Status> {
        if stored.header.deleting {
            return Ok(Outcome::Stays(Last::Stored(Arc::clone(stored))));
        }
        let mut object = stored.decode();
        mark(&mut object, self.now);
        let kept: Vec<Value> = finalizers(&object).chain([CLEANUP_FINALIZER]).map(Value::from).collect();
        object::set_meta(&mut object, "finalizers", kept);
        let outcome = self.stays(object)?;
        if !self.dry_run {
            let resource = builtin::described(&stored.decode());
            let objects: Vec<Arc<Stored>> = self.state.store.list(&resource, "").cloned().collect();
            for stored in objects {
                self.state.sweep(&resource, &stored, self.now);
            }
            self.state.finish_definition(&resource, self.now);
        }
        Ok(outcome)
    }

    /// Rejects a create if the kind's CustomResourceDefinition is being deleted.
    pub(super) fn check_definition(&self, name: &str) -> Result<(), Status> {
        let definition: &Definition = &self.request.definition;
        let stored = self.state.store.get(&builtin::definitions(), &definition_key(&definition.id()));
        if stored.is_some_and(|stored| definition.custom && stored.header.deleting) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(self.request.named(name), why));
        }
        Ok(())
    }
}

impl State {
    /// Removes the server's finalizer from a CustomResourceDefinition that is being deleted, if no object of its kind
    /// is left.
    pub(super) fn finish_definition(&mut self, resource: &ResourceId, now: Timestamp) {
        let key = definition_key(resource);
        let stored = self.store.get(&builtin::definitions(), &key).filter(|stored| stored.header.deleting);
        let Some(stored) = stored.cloned() else { return };
        let mut object: Object = stored.decode();
        let others: Vec<Value> =
            finalizers(&object).filter(|finalizer| *finalizer != CLEANUP_FINALIZER).map(Value::from).collect();
        let waits = finalizers(&object).count() > others.len();
        if !waits || self.store.list(resource, "").next().is_some() {
            return;
        }
        if others.is_empty() {
            self.remove(&builtin::definitions(), &key, now);
            return;
        }
        object::set_meta(&mut object, "finalizers", others);
        // This write cannot fail: the object is smaller than before, so it is not too large.
        let _ = self.put(&builtin::definitions(), key, object);
    }
}

fn definition_key(resource: &ResourceId) -> Key {
    Key::new("", &format!("{}.{}", resource.plural, resource.group))
}
