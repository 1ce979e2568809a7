//! [`Progress`]: how far it is with one Service.

use super::super::due::Due;
use super::super::writes;
use endpointslice::Text;
use endpointslice::plan::{Plan as SlicePlan, PlanError};
use fleetnet_runtime::clock::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// How far it is with a Service.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) due: Due,
    /// What the present sync began with, if it has writes to make.
    pub(super) sync: Option<SlicePlan>,
    /// When the writes of the latest plan began.
    pub(super) wrote: Option<Timestamp>,
    /// After those writes there are others of the same sync.
    pub(super) has_more_phases: bool,
    pub(super) round: Round,
    /// What was told to stand in its way, so that it is told once.
    pub(super) told: Vec<PlanError>,
}

/// Deletes wait for all that a plan adds and changes. A Service whose pods change faster than writes land never has a plan
/// without changes: there the deletes of one plan go with the next, once all writes of the first have landed.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Slices that were written and have not been seen as they were asked to be.
    pub(super) outstanding: BTreeSet<Text>,
    /// Slices to delete once there are none of those.
    deletes: BTreeSet<Text>,
}

impl Round {
    /// What of that which a plan holds back may be deleted together with its phase.
    pub(super) fn may_go(&self, held_back: &BTreeSet<Text>) -> BTreeSet<Text> {
        if !self.outstanding.is_empty() {
            return BTreeSet::new();
        }
        held_back.intersection(&self.deletes).cloned().collect()
    }

    /// The writes of a plan begin.
    pub(super) fn begin(&mut self, plan: &SlicePlan, held_back: BTreeSet<Text>, written: impl Iterator<Item = Text>) {
        if self.outstanding.is_empty() {
            self.deletes = if writes::is_all_but_deletes(plan) { held_back } else { BTreeSet::new() };
        } else {
            self.deletes.retain(|slice| held_back.contains(slice));
        }
        self.outstanding.extend(written);
    }
}

impl Progress {
    /// What may wait for the pace of writes waits for it.
    pub(super) fn paced(&self, by: Timestamp, pace: Duration) -> Timestamp {
        self.wrote.map_or(by, |wrote| by.max(wrote + pace))
    }
}
