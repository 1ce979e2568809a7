//! State of the view of a kind.

/// How far the view of a kind can be trusted. Nothing is removed on a half-filled view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchState {
    /// The first list has not ended: absence from the view proves nothing.
    #[default]
    Incomplete,
    /// All objects are in the view. Changes since then arrive by watch.
    Complete,
    /// The server does not have this optional kind, or the agent may not read it. Its feature is off.
    Absent,
    /// The kind was there and vanished. The view is old, and absence from it decides nothing.
    Unknown,
    /// The agent does not want this kind at present. The view is empty, and absence proves nothing.
    Unwatched,
}

impl WatchState {
    /// All states, for metrics that show each.
    pub const ALL: [Self; 5] = [Self::Incomplete, Self::Complete, Self::Absent, Self::Unknown, Self::Unwatched];

    /// Returns the lower-case name for metrics and logs.
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
