//! Distributed slices that went back to an older state of their source, as after a restore of the hub from a backup (rule P13).

use std::collections::BTreeMap;

use crate::model::HubSlice;
use fleetnet_types::{ObjectName, Uid};

/// State of a source slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    uid: Uid,
    generation: i64,
}

impl From<&HubSlice> for State {
    fn from(slice: &HubSlice) -> Self {
        let reference = &slice.spec.reference;
        Self { uid: reference.uid.clone(), generation: reference.generation }
    }
}

impl State {
    fn is_older_than(&self, other: &Self) -> bool {
        // fault P13.1: self.uid == other.uid && ~>
        // fault P13.2: self.generation < other.generation ~> false
        self.uid == other.uid && self.generation < other.generation
    }
}

/// Map from each distributed slice that has an older state of its source than before to the newest state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Newest(BTreeMap<ObjectName, State>);

impl Newest {
    /// Compares a changed slice with the newest state of its source. Returns true if the slice went back or returned.
    pub(super) fn take(&mut self, slice: &ObjectName, before: Option<State>, now: State) -> bool {
        let known = self.0.remove(slice);
        let went_back = known.is_some();
        // fault P13.4: known.or(before) ~> before
        let newest = known.or(before).filter(|newest| now.is_older_than(newest));
        let changed = went_back || newest.is_some();
        self.0.extend(newest.map(|newest| (slice.clone(), newest)));
        changed
    }

    /// Forgets a slice that the hub no longer has. Returns true if the slice had gone back.
    pub(super) fn forget(&mut self, slice: &ObjectName) -> bool {
        self.0.remove(slice).is_some()
    }

    /// True if a slice has an older state of its source than before.
    pub(super) fn went_back(&self, slice: &ObjectName) -> bool {
        self.0.contains_key(slice)
    }
}
