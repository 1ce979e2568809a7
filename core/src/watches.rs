//! State of the watch of each kind. A rule removes nothing while a kind that the rule needs is not completely listed.

use crate::model::Kind;
use fleetnet_types::{Timestamp, WatchState};
use std::collections::BTreeMap;

/// States of all watches of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watches(BTreeMap<Kind, (WatchState, Timestamp)>);

impl Watches {
    /// Sets the state of a watch at this time. Returns true if the state changed.
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

    /// Moves all stored times by `micros`, after the wall clock was set by this duration.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        self.0.values_mut().for_each(|(_, since)| *since = since.plus_micros(micros));
    }

    /// Returns the time at which a kind's watch got its present state.
    pub fn since(&self, kind: Kind) -> Timestamp {
        self.0.get(&kind).map_or(Timestamp(0), |(_, since)| *since)
    }

    /// True if all these kinds are completely listed, so that a plan may rely on the absence of an object.
    pub fn complete(&self, required: &[Kind]) -> bool {
        required.iter().all(|kind| self.state(*kind) == WatchState::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The features of a peer are assumed from the time on at which the state began.
    #[test]
    fn a_state_keeps_the_time_at_which_it_began() {
        let mut watches = Watches::default();
        let mut set = |state, at| {
            let is_changed = watches.set(Kind::MemberAgent, state, Timestamp(at));
            (is_changed, watches.since(Kind::MemberAgent))
        };
        assert_eq!(set(WatchState::Complete, 1), (true, Timestamp(1)));
        assert_eq!(set(WatchState::Complete, 2), (false, Timestamp(1)));
        assert_eq!(set(WatchState::Unknown, 3), (true, Timestamp(3)));
    }
}
