//! [`WatchState`]: how complete and current the view of a source is.

/// Completeness and currency of the view of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchState {
    /// The first list has not ended. The absence of an object proves nothing.
    Incomplete,
    /// The view has every object that exists, according to the latest answer of the server.
    Complete,
    /// An optional kind that the server does not have or does not let the agent read. The feature is off.
    Absent,
    /// The kind existed and has vanished. The view is old, so no decision may rely on the absence of an object.
    Unknown,
    /// The agent is not subscribed at present ([`crate::Logic::wants`]). The view is empty, and absence proves nothing.
    Unwatched,
}

impl WatchState {
    pub const ALL: [Self; 5] = [Self::Incomplete, Self::Complete, Self::Absent, Self::Unknown, Self::Unwatched];

    /// Lower-case name for metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Complete => "complete",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
            Self::Unwatched => "unwatched",
        }
    }
}
