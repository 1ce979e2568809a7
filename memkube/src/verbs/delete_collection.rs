//! Delete all that selectors select in a namespace.

use super::Work;
use super::delete::DeleteOptions;
use crate::object::Object;
use crate::selector::Selection;
use crate::service::{Content, Reply};
use crate::status::Status;
use crate::store::Stored;
use serde_json::json;
use std::sync::Arc;

impl Work<'_> {
    /// The answer has the objects as they were before.
    pub(super) fn delete_collection(&mut self) -> Result<Reply, Status> {
        let options = DeleteOptions::of(self.request)?;
        self.dry_run = options.dry_run;
        let selection = Selection::of(self.request, self.state)?;
        let all = self.state.store.list(&self.request.resource(), self.request.namespace());
        let chosen: Vec<Arc<Stored>> = all.filter(|stored| selection.matches(stored)).cloned().collect();
        let mut metadata = Object::new();
        metadata.insert("resourceVersion".to_owned(), json!(self.state.store.revision().to_string()));
        if self.request.definition.custom {
            metadata.insert("continue".to_owned(), json!(""));
        }
        let content = self.listed(&metadata, &chosen)?;
        for stored in &chosen {
            // What went while the others were deleted (a namespace's content) is gone as wanted.
            let current = self.state.store.get(&self.request.resource(), &stored.key).cloned();
            if let Some(current) = current {
                self.delete_object(&current, &options)?;
            }
        }
        Ok(Reply::new(200, Content::Json(content)))
    }
}
