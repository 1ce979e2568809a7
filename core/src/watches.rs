//! How far the view of each kind can be trusted: nothing is removed on a half-filled view.

use crate::ids::Timestamp;
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
    /// A kind that was there and vanished: what is held may be wrong, so nothing is decided by it. Without MemberAgents
    /// decisions are made nevertheless ([`crate::feature_set`]).
    Unknown,
}

/// The state of every watch of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watches(BTreeMap<Kind, (WatchState, Timestamp)>);

impl Watches {
    /// Takes in the state of a watch at this time. True if it differs from the one before.
    pub fn set(&mut self, kind: Kind, state: WatchState, at: Timestamp) -> bool {
        if self.state(kind) == state {
            return false;
        }
        self.0.insert(kind, (state, at));
        true
    }

    /// State of a watch.
    pub fn state(&self, kind: Kind) -> WatchState {
        self.0.get(&kind).map(|(state, _)| *state).unwrap_or_default()
    }

    /// The wall clock was set by so many microseconds.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        self.0.values_mut().for_each(|(_, since)| *since = since.plus_micros(micros));
    }

    /// When a watch came to be in its state.
    pub fn since(&self, kind: Kind) -> Timestamp {
        self.0.get(&kind).map_or(Timestamp(0), |(_, since)| *since)
    }

    /// Whether a decision that requires these kinds may be made.
    pub fn complete(&self, required: &[Kind]) -> bool {
        required.iter().all(|kind| self.state(*kind) == WatchState::Complete)
    }
}
