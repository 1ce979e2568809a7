//! From a planned write ([`fleetnet_core::plan::Write`]) to what is sent to the API server.

mod create;
mod parts;
mod patch;

pub(crate) use parts::content;

use fleetnet_core::ids::Text;
use fleetnet_core::plan::{Action, Write};
use serde_json::Value;

/// A request, but for its address and its precondition on the version, which the writer adds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// POST of the whole object.
    Create {
        /// With apiVersion, kind and metadata.
        body: Value,
    },
    /// JSON merge patch (RFC 7386) of the fields that we own; what it does not name stays as it is.
    Patch {
        /// `None`, or `Some("status")`.
        subresource: Option<&'static str>,
        /// The version that the patch was made for.
        resource_version: u64,
        /// The patch, without that precondition.
        body: Value,
    },
    /// DELETE of the object with this UID.
    Delete {
        /// The precondition.
        uid: Text,
    },
}

/// What is sent for a write.
pub fn encode(write: &Write) -> Body {
    match &write.action {
        Action::Create(desired) => Body::Create { body: create::body(write.kind, &write.at, desired) },
        Action::Patch { resource_version, patch } => {
            let (subresource, body) = patch::body(write.kind, patch);
            Body::Patch { subresource, resource_version: *resource_version, body }
        }
        Action::Delete { uid } => Body::Delete { uid: uid.clone() },
    }
}
