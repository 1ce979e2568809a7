//! State that the controller keeps for one Service between plans: [`Progress`].

use super::super::due::Due;
use super::super::writes;
use super::Syncs;
use endpointslice::Text;
use endpointslice::plan::{Plan as SlicePlan, PlanError};
use fleetnet_types::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// State that the controller keeps for one Service between plans: the time of the next plan, and the writes that are
/// not done yet.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) due: Due,
    pub(super) syncs: Syncs,
    /// Time at which the engine got the writes of the latest plan.
    pub(super) wrote: Option<Timestamp>,
    /// True if no Service, pod or Node has changed since the latest plan, so the next plan only repairs foreign writes
    /// to slices. False after a write that failed because of a foreign write.
    pub(super) has_no_news: bool,
    /// True if the present writes publish a change of a Service, pod or Node. False if they only repair foreign writes
    /// to slices.
    pub(super) carries_news: bool,
    /// Slices that must still be written to publish the change of a Service, pod or Node. Slices with a write in flight
    /// are included.
    pub(super) news_for: BTreeSet<Text>,
    /// Number of consecutive writes that failed because of a foreign write to the same slice.
    pub(super) conflicts: u32,
    /// True if the plan has more phases after the writes that are in flight.
    pub(super) has_more_phases: bool,
    pub(super) round: Round,
    /// Errors of the latest plan. If the next plan has one of these errors again, no Event reports the error again.
    pub(super) reported: Vec<PlanError>,
}

/// Round of writes for one Service: writes that must succeed before slices are deleted, and the deletes that wait for
/// them.
///
/// The deletes of a plan wait for all creates and updates of the same plan. If pods change faster than writes finish,
/// every plan has updates, so its deletes would never run. Therefore the deletes of a plan wait only for the writes
/// that the same plan requires. Once these writes have succeeded, a later plan runs the deletes, together with its own
/// updates.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Slices whose writes have not succeeded yet.
    pub(super) outstanding: BTreeSet<Text>,
    /// Slices to delete once no write is outstanding.
    deletes: BTreeSet<Text>,
}

impl Round {
    /// Returns the deletes in `delayed_deletes` that need not wait any longer. Returns none while a write is
    /// outstanding.
    pub(super) fn may_go(&self, delayed_deletes: &BTreeSet<Text>) -> BTreeSet<Text> {
        if !self.outstanding.is_empty() {
            return BTreeSet::new();
        }
        delayed_deletes.intersection(&self.deletes).cloned().collect()
    }

    /// Records that the writes of a plan start. `delayed_deletes` are the deletes that must wait for these writes.
    pub(super) fn begin(
        &mut self,
        plan: &SlicePlan,
        delayed_deletes: BTreeSet<Text>,
        written: impl Iterator<Item = Text>,
    ) {
        if self.outstanding.is_empty() {
            self.deletes = if writes::is_all_but_deletes(plan) { delayed_deletes } else { BTreeSet::new() };
        } else {
            self.deletes.retain(|slice| delayed_deletes.contains(slice));
        }
        self.outstanding.extend(written);
    }
}

impl Progress {
    /// Returns the time to retry a write that failed because of a foreign write. The first retry is immediate. Each
    /// later retry has the same delay as a plan after a foreign write.
    pub(super) fn retry(&mut self, at: Timestamp, foreign_change_delay: Duration) -> Timestamp {
        self.has_no_news = false;
        self.syncs.has_news();
        self.conflicts += 1;
        if self.conflicts == 1 { at } else { at + foreign_change_delay }
    }

    /// Records a change of a Service, pod or Node. Returns `by`, the time to plan the change.
    pub(super) const fn news(&mut self, by: Timestamp) -> Timestamp {
        self.has_no_news = false;
        self.syncs.has_news();
        by
    }

    /// Records that a plan of the Service has nothing left to write.
    pub(super) fn rest(&mut self) {
        (self.has_no_news, self.carries_news) = (true, false);
        self.news_for.clear();
    }

    /// Records that a plan has writes to these slices.
    pub(super) fn writes(&mut self, slices: impl Iterator<Item = Text>, now: Timestamp) {
        self.wrote = Some(now);
        if !std::mem::replace(&mut self.has_no_news, true) {
            self.carries_news = true;
            self.news_for.extend(slices);
        }
    }

    /// Records that a write to this slice succeeded.
    pub(super) fn written(&mut self, slice: &str) {
        self.round.outstanding.remove(slice);
        self.news_for.remove(slice);
        self.conflicts = 0;
    }

    /// Returns the time to plan a change that should be planned at `by`. The result is later than `by` if less than
    /// `pace` would lie between the last writes of the Service and `by`.
    pub(super) fn paced(&self, by: Timestamp, pace: Duration) -> Timestamp {
        self.wrote.map_or(by, |wrote| by.max(wrote + pace))
    }
}
