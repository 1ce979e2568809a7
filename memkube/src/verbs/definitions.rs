//! Deletion of CustomResourceDefinitions.
//!
//! As in kube-apiserver, the server first deletes the objects of the kind. During this time it rejects new objects of the kind.
//! In memkube this happens in one request, unless finalizers keep objects.

use super::Work;
use super::delete::{Last, Outcome};
use crate::auth::Verb;
use crate::object::{self, Object, create, finalizers, meta, text_at};
use crate::registry::{Definition, ResourceId};
use crate::server::{MemKube, State};
use crate::status::Status;
use crate::store::{Key, Stored};
use crate::strategy::builtin;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// Finalizer that keeps a CustomResourceDefinition that is being deleted until all objects of its kind are deleted.
const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Verbs that discovery shows for a kind whose CustomResourceDefinition is being deleted. kube-apiserver still accepts updates
/// of objects of this kind, although discovery does not show these verbs.
const VERBS_OF_THE_GOING: [Verb; 5] = [Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Watch];

const PENDING: [&str; 3] = [
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
];
const IN_PROGRESS: [&str; 3] = ["True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"];
const COMPLETED: [&str; 3] = ["False", "InstanceDeletionCompleted", "removed all instances"];

impl Work<'_> {
    /// Starts the deletion of a CustomResourceDefinition and its objects. The response contains the state before the objects
    /// are deleted.
    pub(super) fn delete_definition(&mut self, stored: &Arc<Stored>) -> Result<Outcome, Status> {
        let mut object = stored.decode();
        if stored.header.deleting {
            if meta(&object, "deletionGracePeriodSeconds").is_some() {
                return Ok(Outcome::Stays(Last::Stored(Arc::clone(stored))));
            }
            object::set_meta(&mut object, "deletionGracePeriodSeconds", 0);
            return self.stays(object);
        }
        object::set_meta(&mut object, "deletionTimestamp", create::timestamp(self.now));
        let kept = finalizers(&object).filter(|finalizer| *finalizer != CLEANUP_FINALIZER);
        let kept: Vec<&str> = kept.chain([CLEANUP_FINALIZER]).collect();
        let kept = json!(kept);
        object::set_meta(&mut object, "finalizers", kept);
        set_terminating(&mut object, self.now, PENDING);
        let outcome = self.stays(object)?;
        if !self.dry_run {
            self.state.end_definition(&stored.key, self.now);
        }
        Ok(outcome)
    }

    /// Rejects a create if the kind's CustomResourceDefinition is being deleted.
    pub(super) fn check_definition(&self, name: &str) -> Result<(), Status> {
        if !self.state.is_going(&self.request.definition) {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        let mut status = Status::forbidden(self.request.named(name), why);
        if name.is_empty() {
            status.message = format!("{} is forbidden: {why}", self.request.definition.qualified_plural());
        }
        Err(status)
    }
}

impl MemKube {
    /// Returns the definitions of all resources as discovery shows them.
    pub(crate) fn discovered(&self) -> Vec<Arc<Definition>> {
        let state = self.0.state.lock();
        let told = state.registry.definitions().map(|definition| match state.is_going(definition) {
            true => Arc::new(Definition { verbs: VERBS_OF_THE_GOING.to_vec(), ..Definition::clone(definition) }),
            false => Arc::clone(definition),
        });
        told.collect()
    }
}

impl State {
    /// Deletes the objects of a CustomResourceDefinition. If no object is left, deletes the CustomResourceDefinition too.
    fn end_definition(&mut self, key: &Key, now: Timestamp) {
        let Some(stored) = self.store.get(&builtin::definitions(), key).cloned() else { return };
        let mut object = stored.decode();
        let resource = ResourceId::new(text_at(&object, "spec.group"), text_at(&object, "spec.names.plural"));
        set_terminating(&mut object, now, IN_PROGRESS);
        // This write cannot fail: the new message of the condition is shorter than the previous message, so the object is not
        // too large.
        let _ = self.put(&builtin::definitions(), key.clone(), object);
        let custom = self.registry.get(&resource).is_some_and(|registered| registered.definition.custom);
        if custom {
            let objects: Vec<Arc<Stored>> = self.store.list(&resource, "").cloned().collect();
            for stored in objects {
                self.sweep(&resource, &stored, now);
            }
        }
        self.finish_definition(&resource, now);
    }

    /// Removes the server's finalizer from a CustomResourceDefinition that is being deleted, if no object of its kind is left.
    pub(super) fn finish_definition(&mut self, resource: &ResourceId, now: Timestamp) {
        let key = definition_key(resource);
        let stored = self.store.get(&builtin::definitions(), &key).filter(|stored| stored.header.deleting);
        let Some(stored) = stored.cloned() else { return };
        let mut object = stored.decode();
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
        set_terminating(&mut object, now, COMPLETED);
        // This write cannot fail: the object is smaller than before, so it is not too large.
        let _ = self.put(&builtin::definitions(), key, object);
    }

    /// True if a custom kind is being deleted with its CustomResourceDefinition.
    fn is_going(&self, definition: &Definition) -> bool {
        let stored = self.store.get(&builtin::definitions(), &definition_key(&definition.id()));
        let deleting = stored.filter(|stored| definition.custom && stored.header.deleting);
        deleting.is_some_and(|stored| {
            let object = stored.decode();
            let conditions = object::at(&object, "status.conditions").and_then(Value::as_array);
            let going = |condition: &Value| condition["type"] == "Terminating" && condition["status"] == "True";
            conditions.is_some_and(|conditions| conditions.iter().any(going))
        })
    }
}

fn definition_key(resource: &ResourceId) -> Key {
    Key::new("", &format!("{}.{}", resource.plural, resource.group))
}

/// Sets the condition `Terminating`, which shows the progress of the deletion.
fn set_terminating(object: &mut Object, now: Timestamp, [status, reason, message]: [&str; 3]) {
    let mut conditions = object::at(object, "status.conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut fresh = json!({
        "type": "Terminating", "status": status, "lastTransitionTime": create::timestamp(now),
        "reason": reason, "message": message,
    });
    match conditions.iter_mut().find(|condition| condition["type"] == "Terminating") {
        Some(condition) => {
            if condition["status"] == status {
                fresh["lastTransitionTime"] = condition["lastTransitionTime"].take();
            }
            *condition = fresh;
        }
        None => conditions.push(fresh),
    }
    let status = object.entry("status").or_insert_with(|| json!({}));
    status["conditions"] = json!(conditions);
}
