//! Summary of the latency samples of the last minutes, for each exporting member. The member agent writes the summary
//! to its MemberAgent, so that `fleetnet latency` needs no access to the members.
//!
//! The summary has counts for each bucket of the histogram, not quantiles: counts of several members can be added up.

use super::{BUCKETS_MILLISECONDS, Import, Latency};
use crate::limits::{LATENCY_MINUTES, LATENCY_ORIGINS_MAX, LATENCY_QUIET_MICROS, LATENCY_REPORT_MICROS};
use crate::model::{LatencyChange, LatencyReport, OriginLatency};
use fleetnet_types::{ClusterId, Timestamp};
use std::collections::BTreeMap;

/// Number of buckets: one for each upper bound, and one for longer latencies.
// no limit: it follows from the bounds
const BUCKETS: usize = BUCKETS_MILLISECONDS.len() + 1;

// no limit: a unit of time
const MINUTE_MICROS: i64 = 60_000_000;

/// Latency samples of the last [`LATENCY_MINUTES`] minutes, and the times of the last reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    origins: BTreeMap<ClusterId, [Minute; LATENCY_MINUTES]>,
    /// Begin of the newest minute of each origin.
    newest: Timestamp,
    last_sample: Option<Timestamp>,
    first_heartbeat: Option<Timestamp>,
    last_report: Option<Timestamp>,
    /// True if the MemberAgent has no summary, because there was no sample for [`LATENCY_QUIET_MICROS`].
    is_removed: bool,
}

/// Samples of one minute.
#[derive(Clone, Debug, Default, PartialEq)]
struct Minute {
    buckets: [u32; BUCKETS],
    /// Number of samples with a difference of the two clocks that cannot be right.
    clamped: u32,
    first_imports: u32,
    sum_micros: u64,
}

impl Summary {
    /// Adds a sample.
    pub(crate) fn observe(&mut self, origin: &ClusterId, import: Import, latency: Latency, now: Timestamp) {
        self.advance(now);
        (self.last_sample, self.is_removed) = (Some(now), false);
        if !self.origins.contains_key(origin) {
            self.origins.insert(origin.clone(), Default::default());
        }
        let Some([minute, ..]) = self.origins.get_mut(origin) else { return };
        if import == Import::First {
            minute.first_imports = minute.first_imports.saturating_add(1);
        } else if latency.clamped {
            minute.clamped = minute.clamped.saturating_add(1);
        } else {
            let longer = |bound: &&f64| latency.milliseconds > **bound;
            let bucket = BUCKETS_MILLISECONDS.iter().take_while(longer).count();
            minute.buckets[bucket] = minute.buckets[bucket].saturating_add(1);
            minute.sum_micros = minute.sum_micros.saturating_add(micros(latency));
        }
    }

    /// Returns the change of the MemberAgent's summary that the next heartbeat must write; `None` to leave the summary
    /// as it is. The summary alone never causes a write.
    pub(crate) fn change(&self, now: Timestamp) -> Option<LatencyChange> {
        let origins = self.origins(now);
        if origins.is_empty() {
            let quiet_since = self.last_sample.or(self.first_heartbeat)?;
            let is_quiet = now >= quiet_since.plus_micros(LATENCY_QUIET_MICROS);
            return (is_quiet && !self.is_removed).then_some(LatencyChange::Remove);
        }
        // A report in the future means that the wall clock was set back.
        let is_recent = |at: Timestamp| at <= now && now < at.plus_micros(LATENCY_REPORT_MICROS);
        let is_due = !self.last_report.is_some_and(is_recent);
        is_due.then_some(LatencyChange::Report(LatencyReport { updated: now, origins }))
    }

    /// Records that a heartbeat was written.
    pub(crate) fn heartbeat_written(&mut self, at: Timestamp) {
        self.first_heartbeat.get_or_insert(at);
    }

    /// Records that a heartbeat with a change of the summary was written.
    pub(crate) fn change_written(&mut self, at: Timestamp) {
        self.last_report = Some(at);
        self.is_removed = self.origins(at).is_empty();
    }

    /// Moves all recorded times, because the wall clock was set.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        self.newest = self.newest.plus_micros(micros);
        let times = [&mut self.last_sample, &mut self.first_heartbeat, &mut self.last_report];
        for at in times.into_iter().flatten() {
            *at = at.plus_micros(micros);
        }
    }

    /// Begins a new minute if the newest one is over. Drops minutes and origins that are older than the window.
    fn advance(&mut self, now: Timestamp) {
        let minutes = self.minutes_since_newest(now);
        if minutes == 0 {
            return;
        }
        for ring in self.origins.values_mut() {
            let kept = LATENCY_MINUTES.saturating_sub(minutes);
            ring.rotate_right(LATENCY_MINUTES - kept);
            ring[..LATENCY_MINUTES - kept].fill(Minute::default());
        }
        self.origins.retain(|_, ring| ring.iter().any(|minute| *minute != Minute::default()));
        self.newest = Timestamp(now.0 - now.0.rem_euclid(MINUTE_MICROS));
    }

    fn minutes_since_newest(&self, now: Timestamp) -> usize {
        usize::try_from(now.0.saturating_sub(self.newest.0).div_euclid(MINUTE_MICROS)).unwrap_or_default()
    }

    /// Returns the sums of each origin with samples in the window, sorted by cluster. With too many origins, those with
    /// the fewest samples are left out.
    fn origins(&self, now: Timestamp) -> Vec<OriginLatency> {
        let kept = LATENCY_MINUTES.saturating_sub(self.minutes_since_newest(now));
        let sums = self.origins.iter().map(|(cluster, ring)| sum(cluster, &ring[..kept]));
        let mut origins: Vec<OriginLatency> = sums.filter(|origin| origin.samples() > 0).collect();
        origins.sort_by_key(|origin| std::cmp::Reverse(origin.samples()));
        origins.truncate(LATENCY_ORIGINS_MAX);
        origins.sort_by(|one, other| one.cluster.cmp(&other.cluster));
        origins
    }
}

fn sum(cluster: &ClusterId, minutes: &[Minute]) -> OriginLatency {
    let mut total = Minute::default();
    for minute in minutes {
        for (sum, count) in total.buckets.iter_mut().zip(minute.buckets) {
            *sum = sum.saturating_add(count);
        }
        total.clamped = total.clamped.saturating_add(minute.clamped);
        total.first_imports = total.first_imports.saturating_add(minute.first_imports);
        total.sum_micros = total.sum_micros.saturating_add(minute.sum_micros);
    }
    // Trailing zeros are left out, so that the summary of many origins stays small.
    let used = total.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    OriginLatency {
        cluster: cluster.clone(),
        buckets: total.buckets[..used].to_vec(),
        clamped: total.clamped,
        first_imports: total.first_imports,
        sum_milliseconds: total.sum_micros / 1_000,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency is positive and at most 100 s")]
fn micros(latency: Latency) -> u64 {
    (latency.milliseconds * 1_000.0).round() as u64
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
