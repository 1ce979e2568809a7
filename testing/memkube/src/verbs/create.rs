//! The verb create.

use super::Work;
use super::options::WriteOptions;
use crate::limits;
use crate::object::{self, Object, create, meta, meta_text, validate};
use crate::service::{Content, Reply};
use crate::status::Status;
use crate::store::{Key, Stored};
use crate::strategy::Generation;
use std::sync::Arc;

impl Work<'_> {
    pub(super) fn create(&mut self) -> Result<Reply, Status> {
        let options = WriteOptions::of(self.request, "CreateOptions")?;
        self.dry_run = options.dry_run;
        let mut object = self.read_object(options.field_validation)?;
        self.check_place(&mut object)?;
        self.create_object(object)
    }

    /// Creates an object whose form, name and namespace are already checked.
    pub(super) fn create_object(&mut self, mut object: Object) -> Result<Reply, Status> {
        self.check_definition(meta_text(&object, "name"))?;
        self.check_namespace(meta_text(&object, "name"))?;
        let sent_version = object::remove_meta(&mut object, "resourceVersion");
        let definition = Arc::clone(&self.request.definition);
        let namespace = self.request.namespace().to_owned();
        create::complete(&mut object, definition.scope, &namespace, self.now, &mut self.state.random);
        self.name(&mut object);
        let generation = self.ask(|strategy, _| strategy.generation())?;
        if generation != Generation::Absent {
            object::set_meta(&mut object, "generation", 1);
        }
        self.mutate(&mut object);
        self.ask(|strategy, context| strategy.prepare_for_create(context, &mut object))??;
        let errors = self.ask(|strategy, context| {
            let check_name = |name: &str, prefix: bool| strategy.check_name(name, prefix);
            let mut errors = validate::create(&object, &definition, &check_name);
            errors.extend(strategy.validate(context, &object));
            errors
        })?;
        if !errors.is_empty() {
            return Err(Status::invalid(self.request.named_kind(meta_text(&object, "name")), &errors));
        }
        if sent_version.is_some_and(|version| version != "0") {
            return Err(Status::unexpected("resourceVersion should not be set on objects to be created"));
        }
        let name = meta_text(&object, "name").to_owned();
        if let Some(there) = self.there(&name) {
            let mut status = Status::already_exists(self.request.named(&name));
            if there.header.deleting {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        self.answer_create(object, name)
    }

    fn answer_create(&mut self, object: Object, name: String) -> Result<Reply, Status> {
        let encoder = self.encoder()?;
        let chunks = if self.dry_run {
            encoder.loose(object)
        } else {
            let stored = self.put(object)?;
            encoder.object(self.state.registry.get(&self.request.resource()), &stored)
        };
        let mut reply = Reply::new(201, Content::Json(chunks));
        reply.object_name = Some(name);
        Ok(reply)
    }

    /// Generates an unused name if the object has no name.
    fn name(&mut self, object: &mut Object) {
        let named = meta(object, "name").is_some();
        if named {
            return;
        }
        for _ in 0..limits::GENERATE_NAME_TRIES {
            object::remove_meta(object, "name");
            let made = create::generate_name(object, &mut self.state.random);
            if !made || self.there(meta_text(object, "name")).is_none() {
                return;
            }
        }
    }

    pub(super) fn there(&self, name: &str) -> Option<&Arc<Stored>> {
        let key = Key::new(self.request.namespace(), name);
        self.state.store.get(&self.request.resource(), &key)
    }

    /// Rejects a create in a namespace that does not exist or is being deleted.
    fn check_namespace(&self, name: &str) -> Result<(), Status> {
        let namespace = self.request.namespace();
        if namespace.is_empty() {
            return Ok(());
        }
        self.state.open_namespace(namespace, self.request.named(name))
    }
}
