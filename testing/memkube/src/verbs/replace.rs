//! The verb replace (PUT).

use super::Work;
use super::options::WriteOptions;
use crate::object::{Object, meta_text};
use crate::registry::Subresource;
use crate::service::Reply;
use crate::status::Status;
use crate::store::Key;

impl Work<'_> {
    pub(super) fn replace(&mut self) -> Result<Reply, Status> {
        let options = WriteOptions::of(self.request, "UpdateOptions")?;
        self.dry_run = options.dry_run;
        let mut object = self.read_object(options.field_validation)?;
        self.check_place(&mut object)?;
        let key = self.key()?;
        let old = self.state.store.get(&self.request.resource(), &key).cloned();
        let creates = old.is_none() && self.ask(|strategy, _| strategy.allows_create_on_update())?;
        if old.is_none() && (!creates || self.is_about(Subresource::Status)) {
            return Err(Status::not_found(self.request.named(key.name())));
        }
        let own = old.as_ref().map_or("", |old| &old.header.uid);
        self.check_uid(&object, &key, own)?;
        let Some(old) = old else {
            // If the object does not exist, this replace is a create, and the resourceVersion of the request is
            // ignored.
            crate::object::remove_meta(&mut object, "resourceVersion");
            return self.create_object(object);
        };
        self.update(&old, object)
    }

    /// Checks that the UID in the request, if there is one, is the UID of the stored object.
    fn check_uid(&self, object: &Object, key: &Key, own: &str) -> Result<(), Status> {
        let uid = meta_text(object, "uid");
        if uid.is_empty() || uid == own {
            return Ok(());
        }
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own}");
        Err(Status::conflict(self.request.named(key.name()), &why))
    }
}
