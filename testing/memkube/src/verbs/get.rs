//! The verb get.

use super::Work;
use super::encode::Encoder;
use super::options;
use crate::faults;
use crate::object::names;
use crate::service::{Content, Reply};
use crate::status::Status;
use crate::store::{Key, Stored};
use std::sync::Arc;

impl Work<'_> {
    pub(super) fn get(&mut self, seen: faults::State) -> Result<Reply, Status> {
        options::get(&self.request.query)?;
        let key = self.key()?;
        // Only a fault makes a get return an earlier state. Otherwise a get returns the newest state, also if the
        // request has a resourceVersion.
        let past = self.state.past(self.request, seen);
        let stored: Option<Arc<Stored>> = match &past {
            Some(past) => past.objects.get(&key).cloned(),
            None => self.state.store.get(&self.request.resource(), &key).cloned(),
        };
        let stored = stored.ok_or_else(|| Status::not_found(self.request.named(key.name())))?;
        let encoder = self.encoder()?;
        let registered = self.state.registry.get(&self.request.resource());
        Ok(Reply::new(200, Content::Json(encoder.object(registered, &stored))))
    }

    /// Key of the object in the request's path.
    pub(super) fn key(&self) -> Result<Key, Status> {
        let name = &*self.request.call.target.name;
        if let Some(why) = names::path_segment(name, false) {
            return Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {why}")));
        }
        Ok(Key::new(self.request.namespace(), name))
    }

    pub(super) fn encoder(&self) -> Result<Encoder, Status> {
        let registered = self.state.registry.get(&self.request.resource());
        let registered = registered.ok_or_else(Status::no_such_resource)?;
        Ok(Encoder::new(registered, self.request.version(), self.request.form, self.now))
    }
}
