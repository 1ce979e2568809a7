//! The verb delete.

mod options;

pub(super) use options::DeleteOptions;

use super::namespaces::{IMMORTAL, mark};
use super::{Work, commit};
use crate::object::{self, Object, finalizers, meta};
use crate::service::{Content, Reply};
use crate::status::{Details, Status};
use crate::store::Stored;
use crate::strategy::builtin;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;

/// Result of deleting an object.
pub(super) enum Outcome {
    /// The object is deleted. In a dry run, the object would be deleted. The value is its last state.
    Gone(Last),
    /// The object still exists, with a deletionTimestamp.
    Stays(Last),
}

pub(super) enum Last {
    Stored(Arc<Stored>),
    Loose(Object),
}

impl Work<'_> {
    pub(super) fn delete(&mut self) -> Result<Reply, Status> {
        let options = DeleteOptions::of(self.request)?;
        self.dry_run = options.dry_run;
        let key = self.key()?;
        self.check_mortal(key.name())?;
        let stored = self.state.store.get(&self.request.resource(), &key).cloned();
        let stored = stored.ok_or_else(|| Status::not_found(self.request.named(key.name())))?;
        let outcome = self.delete_object(&stored, &options)?;
        let shows = self.ask(|strategy, _| strategy.returns_deleted())?;
        let content = match outcome {
            Outcome::Gone(_) if !shows => vec![self.success(&stored)],
            Outcome::Gone(last) | Outcome::Stays(last) => self.shown(last)?,
        };
        Ok(Reply::new(200, Content::Json(content)))
    }

    fn check_mortal(&self, name: &str) -> Result<(), Status> {
        if self.request.resource() == builtin::namespaces() && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(self.request.named(name), "this namespace may not be deleted"));
        }
        Ok(())
    }

    /// Deletes an object. If finalizers or a grace period delay the deletion, the object gets a deletionTimestamp
    /// instead.
    pub(super) fn delete_object(&mut self, stored: &Arc<Stored>, options: &DeleteOptions) -> Result<Outcome, Status> {
        options.check(self.request.named_kind(stored.key.name()), stored)?;
        if self.request.resource() == builtin::definitions() {
            return self.delete_definition(stored);
        }
        let mut object = stored.decode();
        if let Some(finalizer) = options.finalizer.filter(|_| !stored.header.deleting) {
            let all: Vec<Value> = finalizers(&object).chain([finalizer]).map(Value::from).collect();
            object::set_meta(&mut object, "finalizers", all);
        }
        let grace = self.ask(|strategy, _| strategy.grace_period_seconds(&object, options.grace_period_seconds))?;
        let kept = self.ask(|strategy, _| strategy.keeps_deleted(&object))? || finalizers(&object).next().is_some();
        match grace {
            None if !kept => Ok(Outcome::Gone(self.gone(stored))),
            None if stored.header.deleting => Ok(Outcome::Stays(Last::Stored(Arc::clone(stored)))),
            None => {
                mark(&mut object, self.now);
                self.ask(|strategy, _| strategy.mark_deleting(&mut object))?;
                self.stays(object)
            }
            Some(seconds) => self.delete_gracefully(stored, object, seconds, kept),
        }
    }

    fn delete_gracefully(
        &mut self,
        stored: &Arc<Stored>,
        mut object: Object,
        seconds: i64,
        kept: bool,
    ) -> Result<Outcome, Status> {
        let before = meta(&object, "deletionGracePeriodSeconds").and_then(Value::as_i64);
        let pending = before.is_some_and(|before| before <= seconds) && stored.header.deleting;
        if pending && (kept || seconds > 0) {
            return Ok(Outcome::Stays(Last::Stored(Arc::clone(stored))));
        }
        if !stored.header.deleting {
            mark(&mut object, commit::later(self.now, seconds));
        } else if !pending {
            let at = object::create::timestamp(commit::later(self.now, seconds));
            object::set_meta(&mut object, "deletionTimestamp", at);
        }
        object::set_meta(&mut object, "deletionGracePeriodSeconds", seconds);
        match self.stays(object)? {
            // The update stored the deletionTimestamp, so watches get an event with this time. Now remove the object.
            Outcome::Stays(Last::Stored(marked)) if seconds == 0 && !kept => Ok(Outcome::Gone(self.gone(&marked))),
            Outcome::Stays(last) if seconds == 0 && !kept => Ok(Outcome::Gone(last)),
            outcome => Ok(outcome),
        }
    }

    fn gone(&mut self, stored: &Arc<Stored>) -> Last {
        let removed = if self.dry_run { None } else { self.remove(&stored.key) };
        Last::Stored(removed.unwrap_or_else(|| Arc::clone(stored)))
    }

    pub(super) fn stays(&mut self, object: Object) -> Result<Outcome, Status> {
        let last = if self.dry_run { Last::Loose(object) } else { Last::Stored(self.put_stored(object)?) };
        Ok(Outcome::Stays(last))
    }

    fn shown(&self, last: Last) -> Result<Vec<Bytes>, Status> {
        let encoder = self.encoder()?;
        Ok(match last {
            Last::Stored(stored) => encoder.object(self.state.registry.get(&self.request.resource()), &stored),
            Last::Loose(object) => encoder.loose(object),
        })
    }

    /// Response to a completed delete: a Status.
    fn success(&self, stored: &Stored) -> Bytes {
        let details = Details { uid: stored.header.uid.to_string(), ..self.request.named(stored.key.name()).details() };
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        });
        status.to_string().into()
    }
}
