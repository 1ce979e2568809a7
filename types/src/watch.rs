//! State of the watch of a kind: how complete the agent's view of the kind is.

/// State of the watch of a kind. An agent removes nothing while its view of the kind may be incomplete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchState {
    /// The first list has not ended: an object's absence from the view proves nothing.
    #[default]
    Incomplete,
    /// All objects are in the view. Later changes arrive by watch.
    Complete,
    /// The kind is optional, and the server does not have the kind or denies the agent to read it. The feature that
    /// needs the kind is off.
    Absent,
    /// The server had the kind before and no longer has it. The view is outdated, and an object's absence proves
    /// nothing.
    Unknown,
}

impl WatchState {
    /// All states. A metric has one series for each state.
    pub const ALL: [Self; 4] = [Self::Incomplete, Self::Complete, Self::Absent, Self::Unknown];

    /// Returns the state's name in lower case, for metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Complete => "complete",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}
