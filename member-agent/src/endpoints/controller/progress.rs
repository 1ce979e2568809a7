//! [`Progress`]: how far it is with one Service.

use super::super::due::Due;
use super::super::writes;
use super::Syncs;
use endpointslice::Text;
use endpointslice::plan::{Plan as SlicePlan, PlanError};
use fleetnet_runtime::clock::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// How far it is with a Service.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) due: Due,
    pub(super) syncs: Syncs,
    /// When the writes of the latest plan began.
    pub(super) wrote: Option<Timestamp>,
    /// Since the latest plan with writes, or since it rested, nothing has changed but slices, by other hands.
    pub(super) has_no_news: bool,
    /// The present sync is for news, and not only to put right what other hands did.
    pub(super) carries_news: bool,
    /// Slices that news is to be written to, or on its way.
    pub(super) news_for: BTreeSet<Text>,
    /// So many writes in a row have met what another hand made of their slices.
    pub(super) conflicts: u32,
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
    /// When to write again what met another hand's change: at once, and after that as others' changes are put right.
    pub(super) fn retry(&mut self, at: Timestamp, foreign_change_delay: Duration) -> Timestamp {
        self.has_no_news = false;
        self.syncs.has_news();
        self.conflicts += 1;
        if self.conflicts == 1 { at } else { at + foreign_change_delay }
    }

    /// Something else has changed than slices by other hands, to be planned by that time.
    pub(super) const fn news(&mut self, by: Timestamp) -> Timestamp {
        self.has_no_news = false;
        self.syncs.has_news();
        by
    }

    /// There is nothing left to do.
    pub(super) fn rest(&mut self) {
        (self.has_no_news, self.carries_news) = (true, false);
        self.news_for.clear();
    }

    /// A plan has writes to these slices.
    pub(super) fn writes(&mut self, slices: impl Iterator<Item = Text>, now: Timestamp) {
        self.wrote = Some(now);
        if !std::mem::replace(&mut self.has_no_news, true) {
            self.carries_news = true;
            self.news_for.extend(slices);
        }
    }

    /// A write was carried out.
    pub(super) fn written(&mut self, slice: &str) {
        self.round.outstanding.remove(slice);
        self.news_for.remove(slice);
        self.conflicts = 0;
    }

    /// What may wait for the pace of writes waits for it.
    pub(super) fn paced(&self, by: Timestamp, pace: Duration) -> Timestamp {
        self.wrote.map_or(by, |wrote| by.max(wrote + pace))
    }
}
