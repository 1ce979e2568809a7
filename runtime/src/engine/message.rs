//! Messages of the watches to the engine.

use std::time::Duration;

use fleetnet_types::{ObjectName, Observed, Timestamp, Uid, Undecodable};

use super::versions::Mark;

/// Message from a watch task to the engine.
#[derive(Debug)]
pub(crate) struct WatchMessage<S, O> {
    pub(crate) source: S,
    /// Time at which the watch read the message.
    pub(crate) at: Timestamp,
    /// Processor time that decoding the message took.
    pub(crate) decoding: Duration,
    pub(crate) event: WatchEvent<O>,
}

/// Content of a [`WatchMessage`].
#[derive(Debug, PartialEq)]
pub(crate) enum WatchEvent<O> {
    /// A list begins (the first, or one after a 410). Every object until `ListEnded` belongs to it. A second
    /// `ListStarted` without a `ListEnded` replaces the first.
    ListStarted {
        /// Mark of the source when the list was requested.
        requested: Mark,
        /// Number of restores of the server that its watches had noticed when the list was requested.
        restores: u64,
    },
    /// The object exists in this state.
    Applied(Observed<O>),
    /// The object exists but does not decode. The object counts as listed, and its previous known state stays.
    Undecodable(Undecodable),
    /// The object was deleted. `resource_version` is the version of the deletion.
    Deleted { name: ObjectName, uid: Uid, resource_version: u64 },
    /// The list is complete: it had every object that existed at this version.
    ListEnded { resource_version: u64 },
    /// The server does not have the kind (404), or denies access to the kind (403).
    NotServed { status: u16, message: String },
    /// Any other failure of the watch. The watch retries by itself, and earlier messages stay valid.
    Failed { message: String },
    /// The watch continues after a failure, from the last version that it had seen.
    Resumed,
    /// The object exists in this state, as the response to a write of another agent of this process shows.
    Response(Observed<O>),
    /// The object no longer exists, as the response to a write of another agent of this process shows.
    Gone { name: ObjectName, uid: Uid },
}
