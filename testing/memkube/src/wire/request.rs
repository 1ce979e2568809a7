//! Decoded request.

use super::accept::Form;
use super::query::Query;
use crate::auth::Call;
use crate::registry::{Definition, ResourceId};
use crate::status::Named;
use bytes::Bytes;
use std::sync::Arc;

/// Decoded request to a resource.
pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) definition: Arc<Definition>,
    pub(crate) query: Query,
    /// Content type without parameters. Empty if the request has no content type.
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    pub(crate) form: Form,
}

impl Request {
    pub(crate) fn resource(&self) -> ResourceId {
        self.definition.id()
    }

    pub(crate) fn version(&self) -> &str {
        &self.call.target.version
    }

    /// Resource with its plural name, for an error.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> Named<'a> {
        Named { group: &self.definition.group, kind: &self.definition.plural, name }
    }

    /// Resource with its kind, for a validation error.
    pub(crate) fn named_kind<'a>(&'a self, name: &'a str) -> Named<'a> {
        Named { group: &self.definition.group, kind: &self.definition.kind, name }
    }
}
