//! How far the view of each kind can be trusted: nothing is removed on a half-filled view.

use crate::model::Kind;
use std::collections::BTreeMap;

/// What is known of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    /// Not all objects have been seen yet.
    #[default]
    Incomplete,
    /// All objects have been seen; changes since arrive by watch.
    Complete,
    /// An optional kind that is not served or may not be read: its feature is off.
    Absent,
    /// A kind that was there and vanished: what is held may be wrong, so nothing is decided by it.
    Unknown,
}

/// The state of every watch of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watches(BTreeMap<Kind, WatchState>);

impl Watches {
    /// Takes the new state of a watch; whether it differs from the one before.
    pub fn set(&mut self, kind: Kind, state: WatchState) -> bool {
        self.0.insert(kind, state).unwrap_or_default() != state
    }

    /// The state of a watch.
    pub fn state(&self, kind: Kind) -> WatchState {
        self.0.get(&kind).copied().unwrap_or_default()
    }

    /// Whether a decision that requires these kinds may be made.
    pub fn complete(&self, required: &[Kind]) -> bool {
        required.iter().all(|kind| self.state(*kind) == WatchState::Complete)
    }
}
