//! Strength of an exporting cluster for one port: how many ready endpoints it has, and how many it had before a loss.

use crate::limits::{FAILBACK_AFTER_MICROS, LOSSES_MAX};
use fleetnet_types::Timestamp;

/// Times of a failback, all in proportion to one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time for which a cluster must hold its strength after its first loss, in microseconds.
    failback_after: i64,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(FAILBACK_AFTER_MICROS)
    }
}

impl Pace {
    /// Returns the times of a failback; `failback_after_micros` is the time after the first loss.
    pub fn new(failback_after_micros: i64) -> Self {
        Self { failback_after: failback_after_micros }
    }

    /// Returns the time after which a number of endpoints that has not grown counts as full strength. It is also the
    /// longest time for a proof.
    fn settled_after(self) -> i64 {
        self.failback_after.saturating_mul(10)
    }

    /// Returns the time for which a loss counts.
    fn loss_counts_for(self) -> i64 {
        self.failback_after.saturating_mul(60)
    }

    /// Returns the time for which a cluster must hold its strength after this number of losses.
    fn hold_after(self, losses: usize) -> i64 {
        let doublings = losses.saturating_sub(1).min(LOSSES_MAX);
        self.failback_after.saturating_mul(1 << doublings).min(self.settled_after())
    }
}

/// Number of ready endpoints of a cluster over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strength {
    ready: usize,
    /// Greatest number of ready endpoints since their number last fell by more than a third, with the time of the first
    /// such number. `None` before the first number.
    peak: Option<(usize, Timestamp)>,
    /// Number before the last fall by more than a third. `None` if this process has not seen it.
    before: Option<usize>,
    /// Time since which the cluster holds two thirds of its full strength.
    held_since: Option<Timestamp>,
    /// Times at which the cluster lost its last ready endpoint, the newest last.
    losses: Vec<Timestamp>,
}

/// Share of a cluster in the proof of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Ready endpoints, if the cluster has held its strength for long enough; otherwise 0.
    pub(crate) held: usize,
    /// Full strength. If it is unknown, the number of ready endpoints.
    pub(crate) full: usize,
}

impl Strength {
    /// Records the number of ready endpoints. A silent member has none.
    pub(crate) fn set(&mut self, ready: usize, pace: Pace, now: Timestamp) {
        if ready == 0 && self.ready > 0 {
            self.losses.push(now);
            self.losses.drain(..self.losses.len().saturating_sub(LOSSES_MAX));
        }
        let peak = self.peak.map_or(0, |(peak, _)| peak);
        if self.peak.is_none() || ready > peak || !is_two_thirds(ready, peak) {
            // A lost cluster keeps its strength, however long it is away.
            self.before = if peak == 0 { self.before } else { self.full(pace, now) };
            self.peak = Some((ready, now));
        }
        self.ready = ready;
        let holds = ready > 0 && self.full(pace, now).is_some_and(|full| is_two_thirds(ready, full));
        self.held_since = holds.then_some(self.held_since.unwrap_or(now));
    }

    /// Returns the full strength; `None` if it is unknown.
    fn full(&self, pace: Pace, now: Timestamp) -> Option<usize> {
        let (peak, at) = self.peak?;
        let is_settled = now >= at.plus_micros(pace.settled_after());
        if is_settled { Some(peak) } else { self.before.map(|before| before.max(peak)) }
    }

    pub(crate) fn proof(&self, pace: Pace, now: Timestamp) -> Proof {
        let is_proven = self.proven_at(pace).is_some_and(|at| now >= at);
        let full = self.full(pace, now).unwrap_or(self.ready);
        Proof { held: if is_proven { self.ready } else { 0 }, full }
    }

    /// Returns the next time at which the proof changes, if the number of endpoints stays.
    pub(crate) fn next_proof(&self, pace: Pace, now: Timestamp) -> Option<Timestamp> {
        self.proven_at(pace).filter(|at| now < *at)
    }

    /// Returns the time at which the cluster is proven, if its number of endpoints stays.
    fn proven_at(&self, pace: Pace) -> Option<Timestamp> {
        let (_, peak_at) = self.peak?;
        let settled = peak_at.plus_micros(pace.settled_after());
        let held = self.held_since.map(|since| {
            let counting = |loss: &&Timestamp| loss.plus_micros(pace.loss_counts_for()) > since;
            since.plus_micros(pace.hold_after(self.losses.iter().filter(counting).count()))
        });
        Some(held.map_or(settled, |held| held.min(settled)))
    }

    /// Moves all times by `micros`, after the wall clock was set.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        let peak_at = self.peak.as_mut().map(|(_, at)| at);
        let all = peak_at.into_iter().chain(&mut self.held_since).chain(&mut self.losses);
        all.for_each(|at| *at = at.plus_micros(micros));
    }
}

/// True if a number is at least two thirds of another.
fn is_two_thirds(number: usize, of: usize) -> bool {
    3 * number >= 2 * of
}
