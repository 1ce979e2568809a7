//! Progress of the writes for one Service: [`Progress`].

use super::super::due::Due;
use super::super::writes;
use super::Syncs;
use endpointslice::Text;
use endpointslice::plan::{Plan as SlicePlan, PlanError};
use fleetnet_types::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Progress of the writes for one Service.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) due: Due,
    pub(super) syncs: Syncs,
    /// Time at which the writes of the latest plan started.
    pub(super) wrote: Option<Timestamp>,
    /// True if nothing but foreign writes to slices has happened since the latest plan with writes, or since nothing was left
    /// to do.
    pub(super) has_no_news: bool,
    /// True if the current sync publishes a change of a Service, pod or Node. False if it only repairs foreign writes.
    pub(super) carries_news: bool,
    /// Slices to which the change is still to be written, or is being written.
    pub(super) news_for: BTreeSet<Text>,
    /// Number of writes in a row that failed because of a foreign write to the same slice.
    pub(super) conflicts: u32,
    /// True if the plan has more phases after the writes that are in flight.
    pub(super) has_more_phases: bool,
    pub(super) round: Round,
    /// Errors of the latest plan, so that each is reported once.
    pub(super) reported: Vec<PlanError>,
}

/// Deletes of slices that wait until other slices are written.
///
/// Deletes wait for everything that a plan adds and changes. If pods change faster than writes finish, every plan has changes.
/// Then the deletes of one plan go with a later plan, once all writes of the first have succeeded.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Slices whose writes have not succeeded yet.
    pub(super) outstanding: BTreeSet<Text>,
    /// Slices to delete once no write is outstanding.
    deletes: BTreeSet<Text>,
}

impl Round {
    /// Returns the waiting deletes that may run together with the current phase.
    pub(super) fn may_go(&self, held_back: &BTreeSet<Text>) -> BTreeSet<Text> {
        // fault Y7.3: !self.outstanding.is_empty() ~> false
        if !self.outstanding.is_empty() {
            return BTreeSet::new();
        }
        held_back.intersection(&self.deletes).cloned().collect()
    }

    /// Records that the writes of a plan start, and that the deletes `held_back` wait for them.
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
    /// Returns when to retry a write that failed because of a foreign write. The first retry is at once, later ones have the
    /// delay of foreign writes.
    pub(super) fn retry(&mut self, at: Timestamp, foreign_change_delay: Duration) -> Timestamp {
        self.has_no_news = false;
        self.syncs.has_news();
        self.conflicts += 1;
        // fault Y6.2: self.conflicts == 1 ~> true
        // fault Y6.3: self.conflicts == 1 ~> false
        if self.conflicts == 1 { at } else { at + foreign_change_delay }
    }

    /// Records a change other than a foreign write to a slice, and returns when to plan it.
    pub(super) const fn news(&mut self, by: Timestamp) -> Timestamp {
        self.has_no_news = false;
        self.syncs.has_news();
        by
    }

    /// Records that the Service has nothing left to write.
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

    /// Records a write to this slice that succeeded.
    pub(super) fn written(&mut self, slice: &str) {
        self.round.outstanding.remove(slice);
        self.news_for.remove(slice);
        self.conflicts = 0;
    }

    /// Returns the time at which to plan a change, delayed so that writes of one Service keep their pace.
    pub(super) fn paced(&self, by: Timestamp, pace: Duration) -> Timestamp {
        // fault Y8.1: by.max(wrote + pace) ~> by
        self.wrote.map_or(by, |wrote| by.max(wrote + pace))
    }
}
