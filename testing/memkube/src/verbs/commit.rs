//! Commit of a write: a valid object is stored, and then the effects of the change are executed.

use super::Work;
use crate::auth::User;
use crate::object::create::timestamp;
use crate::object::{Object, meta_text, remove_meta, set_meta};
use crate::observe::Commit;
use crate::registry::{Registered, ResourceId};
use crate::server::State;
use crate::status::Status;
use crate::store::{Change, Fields, Key, Stored, Unstorable};
use crate::strategy::{Context, Strategy};
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;

impl Work<'_> {
    /// Calls a method of the kind's strategy, with the context of this request.
    pub(super) fn ask<T>(&mut self, question: impl FnOnce(&dyn Strategy, &mut Context<'_>) -> T) -> Result<T, Status> {
        let State { store, registry, random, issuer, .. } = &mut *self.state;
        let registered = registry.get(&self.request.resource()).ok_or_else(Status::no_such_resource)?;
        let user: &User = &self.request.call.user;
        let mut context = Context {
            definition: &registered.definition,
            version: self.request.version(),
            store,
            user,
            now: self.now,
            random,
            policy: &*self.settings.policy,
            tokens: &self.settings.tokens,
            issuer: *issuer,
        };
        Ok(question(&*registered.strategy, &mut context))
    }

    /// Returns a stored object in the version of the request.
    pub(super) fn decoded(&self, stored: &Stored) -> Object {
        let definition = &self.request.definition;
        let version = self.request.version();
        let mut object = stored.decode_as(&definition.api_version(version), &definition.kind);
        self.convert(&mut object, version);
        object
    }

    /// Converts an object between the version of the request and the storage version, if they differ.
    fn convert(&self, object: &mut Object, to: &str) {
        let registered = self.state.registry.get(&self.request.resource());
        let converting =
            registered.filter(|registered| !registered.strategy.stored_form_serves(self.request.version()));
        if let Some(registered) = converting {
            registered.strategy.convert(object, to);
        }
    }

    /// Stores an object that has the form of the request's version.
    pub(super) fn put(&mut self, mut object: Object) -> Result<Arc<Stored>, Status> {
        let definition = Arc::clone(&self.request.definition);
        self.convert(&mut object, definition.storage_version());
        self.put_stored(object)
    }

    /// Stores an object that has the form of the storage version.
    pub(super) fn put_stored(&mut self, object: Object) -> Result<Arc<Stored>, Status> {
        let key = Key::new(self.request.namespace(), meta_text(&object, "name"));
        let stored = self.state.put(&self.request.resource(), key, object)?;
        self.after_commit(&stored);
        Ok(stored)
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Stored>> {
        let stored = self.state.remove(&self.request.resource(), key, self.now)?;
        self.after_commit(&stored);
        Some(stored)
    }

    fn after_commit(&mut self, stored: &Stored) {
        let user = self.state.user.take(); // controllers make the next changes
        if self.namespace_controller {
            let namespace = match stored.key.namespace() {
                "" => stored.key.name(),
                namespace => namespace,
            };
            self.state.empty_namespace(namespace, self.now);
        }
        self.state.collect_garbage(self.namespace_controller, self.now);
        self.state.user = user;
    }
}

impl State {
    /// Stores an object that has the form of the storage version, and executes the effects of the commit.
    pub(crate) fn put(&mut self, resource: &ResourceId, key: Key, mut object: Object) -> Result<Arc<Stored>, Status> {
        remove_meta(&mut object, "managedFields");
        if let Some(clock) = &self.write_clock {
            let manager = self.user.as_ref().map_or("memkube", |user| &*user.name);
            let entry = json!({"manager": manager, "operation": "Update", "time": timestamp(clock.now())});
            set_meta(&mut object, "managedFields", json!([entry]));
        }
        let fields = self.fields(resource, &object);
        let change = self.store.put(resource, key, object, fields).map_err(unstorable)?;
        Ok(self.committed(resource, &change))
    }

    /// Removes an object, and executes the effects of the commit. Returns `None` if the object does not exist.
    pub(crate) fn remove(&mut self, resource: &ResourceId, key: &Key, now: Timestamp) -> Option<Arc<Stored>> {
        let change = self.store.remove(resource, key)?;
        let stored = self.committed(resource, &change);
        self.finish_definition(resource, now);
        Some(stored)
    }

    fn fields(&self, resource: &ResourceId, object: &Object) -> Fields {
        let registered = self.registry.get(resource);
        registered.map(|registered| registered.strategy.selectable_fields(object)).unwrap_or_default()
    }

    fn committed(&mut self, resource: &ResourceId, change: &Change) -> Arc<Stored> {
        if let Some(observer) = &self.observer {
            observer.committed(&Commit { resource, change, user: self.user.as_ref() });
        }
        let strategy = self.registry.get_mut(resource).map(|Registered { strategy, .. }| strategy);
        let effects = strategy.map(|strategy| strategy.committed(change)).unwrap_or_default();
        self.carry_out(effects);
        self.note_garbage(resource, change);
        Arc::clone(&change.after)
    }
}

fn unstorable(why: Unstorable) -> Status {
    match why {
        Unstorable::TooLarge => Status::unexpected("etcdserver: request is too large"),
        Unstorable::Full => Status::unexpected("etcdserver: mvcc: database space exceeded"),
    }
}

/// Returns the time this many seconds after `now`.
pub(super) fn later(now: Timestamp, seconds: i64) -> Timestamp {
    now.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
