//! Content negotiation: the form of objects in the response.

use super::Query;
use crate::status::Status;

/// Form of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    Whole,
    /// Only the metadata of objects: `PartialObjectMetadata`, or `PartialObjectMetadataList` for a list.
    MetadataOnly,
    /// A `Table`, as kubectl requests it. `whole` is true if each row contains the whole object, not only its metadata.
    Table { whole: bool },
}

impl Form {
    /// Returns the first supported form in an `Accept` header.
    pub(super) fn negotiate(accept: Option<&str>, query: &Query) -> Result<Self, Status> {
        let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
                continue;
            }
            let parameters: Vec<&str> = parts.collect();
            let has = |parameter| parameters.contains(&parameter);
            match parameters.iter().find_map(|parameter| parameter.strip_prefix("as=")) {
                None => return Ok(Self::Whole),
                Some(_) if !has("g=meta.k8s.io") || !has("v=v1") => {}
                Some("Table") => return Ok(Self::Table { whole: query.text("includeObject") == "Object" }),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Ok(Self::MetadataOnly),
                Some(_) => {}
            }
        }
        let message = "only the following media types are accepted: application/json";
        Err(Status::plain(406, "NotAcceptable", message))
    }
}
