//! State of the watched sources.

use super::logic::{Resource, WatchState};

/// State of the agent's view of one source, for `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    pub cluster: String,
    pub resource: Resource,
    /// True if the agent works without this source.
    pub optional: bool,
    pub state: WatchState,
}

impl SourceStatus {
    /// True if the first list has ended, or if the kind is known to be absent.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.state, WatchState::Complete | WatchState::Absent)
    }
}
