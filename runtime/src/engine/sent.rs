//! Write on its way to a server, and its failure.

use super::fights::{Requested, State};
use super::logic::{Request, WriteFailure};
use super::outcome::WriteResult;
use super::retries::Attempt;
use super::slots::Target;
use super::source_info::SourceInfo;

/// Id of a write of a key: its object and its verb.
pub(crate) type Write<S> = (Target<S>, &'static str);

/// Write that was sent, with what the engine knew about the object when the write began.
pub(crate) struct Sent<K, S, R> {
    pub(crate) key: K,
    /// Hash of the write's content, without its precondition.
    pub(crate) content: u64,
    pub(crate) attempt: Attempt,
    pub(crate) requested: Requested,
    pub(crate) known_before: State,
    pub(crate) request: Request<S, R>,
}

impl<K, S: Copy, R> Sent<K, S, R> {
    pub(crate) fn write(&self) -> Write<S> {
        (Target::of(&self.request), self.request.verb.as_str())
    }

    /// Returns the description of the failure for the agent. `None` if the write succeeded.
    pub(crate) fn failure(&self, about: &SourceInfo<S>, result: &WriteResult) -> Option<WriteFailure<S>> {
        let (status, reason, message) = match result {
            WriteResult::Done => return None,
            WriteResult::Conflict { message } => (409, "", message),
            WriteResult::Rejected { status, reason, message } | WriteResult::Denied { status, reason, message } => {
                (*status, reason.as_str(), message)
            }
            WriteResult::Failed { message, .. } => (0, "", message),
        };
        Some(WriteFailure {
            source: about.source,
            cluster: about.side.clone(),
            kind: about.resource.kind.to_owned(),
            name: self.request.name.clone(),
            verb: self.request.verb.as_str(),
            status,
            reason: reason.to_owned(),
            message: message.clone(),
        })
    }
}
