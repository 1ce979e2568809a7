//! Encoder from a planned write ([`fleetnet_core::plan::Write`]) to the request for the API server.

mod create;
mod mcs;
mod parts;
mod patch;

pub(crate) use parts::content;

use crate::names::annotations;
use fleetnet_core::plan::{Action, Write};
use fleetnet_types::{Traceparent, Uid};
use serde_json::Value;

/// Content of a request. The writer adds the URL and the precondition on the resourceVersion.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// POST of the whole object.
    Create {
        /// Object to create, with apiVersion, kind and metadata.
        body: Value,
    },
    /// JSON merge patch (RFC 7386) of the fields that we own. The patch does not change fields of other writers.
    Patch {
        /// Subresource to patch: `None`, or `Some("status")`.
        subresource: Option<&'static str>,
        /// resourceVersion of the object from which the patch was planned.
        resource_version: u64,
        /// Merge patch without `metadata.resourceVersion`.
        body: Value,
    },
    /// DELETE of the object with this UID.
    Delete {
        /// UID that the object must have. Otherwise the server does not delete the object.
        uid: Uid,
    },
}

/// Change of the annotation `tracing.k8s.io/traceparent` by a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceChange {
    #[default]
    Keep,
    Set(Traceparent),
    Remove,
}

/// Converts a planned write to its request, which also changes the annotation for traces.
pub fn encode_traced(write: &Write, change: TraceChange) -> Body {
    let mut encoded = encode(write);
    let value = match change {
        TraceChange::Keep => return encoded,
        TraceChange::Set(traceparent) => traceparent.to_string().into(),
        TraceChange::Remove => Value::Null,
    };
    if let Body::Create { body } | Body::Patch { body, .. } = &mut encoded {
        body["metadata"]["annotations"][annotations::TRACEPARENT] = value;
    }
    encoded
}

/// Converts a planned write to its request.
pub fn encode(write: &Write) -> Body {
    match &write.action {
        Action::Create(desired) => Body::Create { body: create::body(&write.at, desired) },
        Action::Patch { resource_version, patch } => {
            let (subresource, body) = patch::body(patch);
            Body::Patch { subresource, resource_version: *resource_version, body }
        }
        Action::Delete { uid, kind: _ } => Body::Delete { uid: uid.clone() },
    }
}
