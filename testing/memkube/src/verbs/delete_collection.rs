//! The verb deletecollection: deletes the objects that a list with the same query would return.

use super::Work;
use super::delete::DeleteOptions;
use crate::faults;
use crate::service::{Content, Reply};
use crate::status::Status;

impl Work<'_> {
    /// Deletes the objects. The response contains the objects as they were before.
    pub(super) fn delete_collection(&mut self) -> Result<Reply, Status> {
        let (metadata, chosen) = self.asked(faults::State::Newest)?;
        let options = DeleteOptions::of(self.request)?;
        self.dry_run = options.dry_run;
        let content = self.listed(&metadata, &chosen)?;
        for stored in &chosen {
            // An earlier deletion in this loop may have removed the object, for example as content of a namespace.
            let current = self.state.store.get(&self.request.resource(), &stored.key).cloned();
            if let Some(current) = current {
                self.delete_object(&current, &options)?;
            }
        }
        Ok(Reply::new(200, Content::Json(content)))
    }
}
