//! Outcome of a write.

use std::time::Duration;

use fleetnet_types::{Observed, Timestamp};

use super::logic::WriteEnd;

#[derive(Debug)]
pub(crate) struct Outcome<O> {
    pub(crate) result: WriteResult,
    /// True if the response to the write confirmed the write. False if only a later GET confirmed the write.
    pub(crate) is_answered: bool,
    /// State of the written object in the responses.
    pub(crate) seen: Seen<O>,
    pub(crate) at: Timestamp,
    pub(crate) took: Duration,
}

impl<O> Outcome<O> {
    /// Returns the outcome as the agent sees it.
    pub(crate) fn end(&self) -> WriteEnd {
        match (&self.result, &self.seen) {
            (WriteResult::Done, Seen::Object(observed)) => WriteEnd::Done { version: Some(observed.resource_version) },
            (WriteResult::Done, Seen::Gone | Seen::Nothing) => WriteEnd::Done { version: None },
            (WriteResult::Conflict { .. }, _) => WriteEnd::Conflict,
            (WriteResult::Rejected { .. }, _) => WriteEnd::Rejected,
            (WriteResult::Denied { .. }, _) => WriteEnd::Denied,
            (WriteResult::Failed { .. }, _) => WriteEnd::Unknown,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// The server executed the write.
    Done,
    /// The object differs from the state that the write was planned for.
    Conflict { message: String },
    /// The server rejected the write for its content.
    Rejected { status: u16, reason: String, message: String },
    /// The server denied the write, or the namespace, the kind or the object does not exist.
    Denied { status: u16, reason: String, message: String },
    /// Any other failure; the write is retried.
    Failed { message: String, retry_after: Option<Duration> },
}

impl WriteResult {
    /// Returns the value of the metric label `result`.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict { .. } => "conflict",
            Self::Rejected { .. } => "refused",
            Self::Denied { .. } => "denied",
            Self::Failed { .. } => "failed",
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Seen<O> {
    Object(Observed<O>),
    /// The object no longer exists.
    Gone,
    Nothing,
}

/// Outcome of a read of an object.
#[derive(Debug)]
pub(crate) enum Reread<O> {
    Found(Observed<O>),
    Undecodable,
    /// The object is gone, or the server did not answer.
    Nothing,
}
