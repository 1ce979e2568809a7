//! Updates of objects: the common part of replace and patch.

use super::Work;
use crate::object::{Object, deleting, finalizers, meta, meta_text, update, validate};
use crate::registry::Subresource;
use crate::service::{Content, Reply};
use crate::status::{FieldError, Status};
use crate::store::Stored;
use serde_json::{Value, json};
use std::sync::Arc;

impl Work<'_> {
    /// Replaces `old` with `object`, with the changes that the kind's rules allow.
    pub(super) fn update(&mut self, old: &Arc<Stored>, mut object: Object) -> Result<Reply, Status> {
        let name = old.key.name().to_owned();
        self.check_version(&object, old)?;
        let old_object = self.decoded(old);
        update::keep(&mut object, &old_object);
        let is_of_status = self.is_about(Subresource::Status);
        self.mutate(&mut object);
        self.prepare_update(&mut object, &old_object, is_of_status)?;
        update::complete(&mut object, &old_object);
        if !is_of_status {
            let definition = Arc::clone(&self.request.definition);
            let rule = self.ask(|strategy, _| strategy.generation())?;
            update::move_generation(&mut object, &old_object, rule, &definition);
        }
        let errors = self.update_errors(&object, &old_object, is_of_status)?;
        if !errors.is_empty() {
            return Err(Status::invalid(self.request.named_kind(&name), &errors));
        }
        self.answer_update(old, &old_object, object)
    }

    fn prepare_update(&mut self, object: &mut Object, old: &Object, is_of_status: bool) -> Result<(), Status> {
        self.ask(|strategy, context| match is_of_status {
            false => strategy.prepare_for_update(context, object, old),
            true => strategy.prepare_for_status_update(context, object, old),
        })?
    }

    fn update_errors(&mut self, object: &Object, old: &Object, is_of_status: bool) -> Result<Vec<FieldError>, Status> {
        let mut errors = validate::update(object, old, &self.request.definition);
        let own = self.ask(|strategy, context| match is_of_status {
            false => strategy.validate_update(context, object, old),
            true => strategy.validate_status_update(context, object, old),
        })?;
        errors.extend(own);
        Ok(errors)
    }

    /// Checks that the resourceVersion in the request, if there is one, is the current resourceVersion of the object.
    pub(super) fn check_version(&mut self, object: &Object, old: &Stored) -> Result<(), Status> {
        let seen = meta_text(object, "resourceVersion");
        let named = self.request.named(old.key.name());
        let seen: u64 = match seen {
            "" => 0,
            text => text
                .parse()
                .map_err(|_| Status::unexpected(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")))?,
        };
        if seen == 0 {
            if self.ask(|strategy, _| strategy.allows_unconditional_update())? {
                return Ok(());
            }
            let error = FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(Status::invalid(named, &[error]));
        }
        if seen == old.header.revision { Ok(()) } else { Err(Status::modified(named)) }
    }

    fn answer_update(&mut self, old: &Stored, old_object: &Object, object: Object) -> Result<Reply, Status> {
        let encoder = self.encoder()?;
        let kept = self.ask(|strategy, _| strategy.keeps_deleted(&object))?;
        let graceful = meta(old_object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) > 0;
        let goes = deleting(old_object) && finalizers(&object).next().is_none() && !graceful && !kept;
        let chunks = if self.dry_run {
            encoder.loose(object)
        } else if goes {
            self.remove(&old.key);
            encoder.loose(object)
        } else if same(old_object, &object) {
            encoder.object(self.state.registry.get(&self.request.resource()), old)
        } else {
            let stored = self.put(object)?;
            encoder.object(self.state.registry.get(&self.request.resource()), &stored)
        };
        Ok(Reply::new(200, Content::Json(chunks)))
    }
}

/// True if an update changes nothing. The server does not store such an update.
fn same(old: &Object, new: &Object) -> bool {
    let differs = |name: &str| name != "apiVersion" && old.get(name) != new.get(name);
    !old.keys().chain(new.keys()).any(|name| differs(name))
}
