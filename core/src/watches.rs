//! State of the watch of each kind. Nothing is removed while the view is incomplete.

use crate::ids::Timestamp;
use crate::model::Kind;
use std::collections::BTreeMap;

/// State of one watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    /// Not all objects have been listed yet.
    #[default]
    Incomplete,
    /// All objects have been listed; later changes arrive by watch.
    Complete,
    /// An optional kind that is not served or may not be read: its feature is off.
    Absent,
    /// A kind that was served and disappeared. Its table may be out of date, so no decision uses it. Without MemberAgents
    /// decisions continue (`feature_set.rs`).
    Unknown,
}

/// States of all watches of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watches(BTreeMap<Kind, (WatchState, Timestamp)>);

impl Watches {
    /// Sets the state of a watch at this time. True if it changed.
    pub fn set(&mut self, kind: Kind, state: WatchState, at: Timestamp) -> bool {
        if self.state(kind) == state {
            return false;
        }
        self.0.insert(kind, (state, at));
        true
    }

    pub fn state(&self, kind: Kind) -> WatchState {
        self.0.get(&kind).map(|(state, _)| *state).unwrap_or_default()
    }

    /// Moves all stored times after the wall clock was set.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        self.0.values_mut().for_each(|(_, since)| *since = since.plus_micros(micros));
    }

    /// Time since when a watch has its state.
    pub fn since(&self, kind: Kind) -> Timestamp {
        self.0.get(&kind).map_or(Timestamp(0), |(_, since)| *since)
    }

    /// True if all these kinds are complete, so that a decision may depend on them.
    pub fn complete(&self, required: &[Kind]) -> bool {
        required.iter().all(|kind| self.state(*kind) == WatchState::Complete)
    }
}
