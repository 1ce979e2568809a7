//! Writes to the API server.

use super::cluster::{Key, Kind};
use serde_json::Value;

/// Write to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Create(Kind, Value),
    /// Merge patch of an object.
    Patch(Kind, Key, Value),
    /// Merge patch of the status of an object.
    Status(Kind, Key, Value),
    Delete(Kind, Key),
    /// Assignment of a pod to a Node.
    Bind {
        pod: Key,
        uid: String,
        node: String,
    },
    /// End of a pod that is terminating.
    End {
        pod: Key,
        uid: String,
    },
}
