//! [`WatchState`]: what the view of a source is worth.

/// What the view of a source is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchState {
    /// The first list has not ended: absence proves nothing.
    Incomplete,
    /// Everything that exists is held, as of the last word from the server.
    Complete,
    /// An optional kind that the server does not have or does not let us read: the feature is off.
    Absent,
    /// The kind was there and has vanished: what is held is old, and nothing may be decided by its absence.
    Unknown,
    /// The agent does not want it at present ([`crate::Logic::wants`]): nothing is held, and absence proves nothing.
    Unwatched,
}

impl WatchState {
    /// All states, for metrics that show each.
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
