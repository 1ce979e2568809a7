//! The verb create for resources that are not stored: reviews of tokens and of access.

use super::Work;
use super::options::WriteOptions;
use crate::registry::Scope;
use crate::service::{Content, Reply};
use crate::status::Status;

impl Work<'_> {
    pub(super) fn review(&mut self) -> Result<Reply, Status> {
        let options = WriteOptions::of(self.request, "CreateOptions")?;
        self.dry_run = options.dry_run;
        let mut object = self.read_object(options.field_validation)?;
        if self.request.definition.scope == Scope::Namespaced {
            self.check_place(&mut object)?;
        }
        let reviewed = self.ask(|strategy, context| strategy.review(context, object))??;
        let chunks = self.encoder()?.loose(reviewed);
        Ok(Reply::new(201, Content::Json(chunks)))
    }
}
