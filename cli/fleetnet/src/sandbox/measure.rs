//! Numbers of writes and latencies of changes. Does no I/O.

use super::event::{Latency, Writes};
use crate::limits::{PERCENTILE_SAMPLES, SAMPLES};
use fleetnet_core::names::cluster_of;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// First part of the user name of a service account.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Numbers of successful writes to the servers of a fleet, by kind of write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger(BTreeMap<Written, u64>);

/// Kind of a write: cluster, verb, resource and user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written {
    /// Name of the cluster that received the write.
    pub(crate) cluster: String,
    pub(crate) user: String,
    /// Verb, such as `create` or `patch`.
    pub(crate) verb: String,
    /// Plural of the resource, without its group.
    pub(crate) resource: String,
}

impl Ledger {
    /// Adds writes of agents. Ignores writes of other users, and writes of Leases and Events, because they are not
    /// caused by a change of endpoints.
    pub(crate) fn add(&mut self, written: Written, times: u64) {
        let agents = written.user.ends_with("hub-agent") || written.user.ends_with("member-agent");
        if agents && !matches!(written.resource.as_str(), "leases" | "events") && times > 0 {
            *self.0.entry(written).or_default() += times;
        }
    }

    /// Adds the writes of another ledger.
    pub(crate) fn join(&mut self, other: &Self) {
        for (written, times) in &other.0 {
            *self.0.entry(written.clone()).or_default() += times;
        }
    }

    /// Returns the writes since `earlier`, an older ledger of the same servers.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let news = self.0.iter().map(|(written, times)| {
            (written.clone(), times.saturating_sub(earlier.0.get(written).copied().unwrap_or_default()))
        });
        Self(news.filter(|(_, times)| *times > 0).collect())
    }

    /// Returns the number of writes in each cluster, and in total.
    pub(crate) fn sums(&self) -> Writes {
        let mut writes = Writes { total: self.0.values().sum(), ..Writes::default() };
        for (written, times) in &self.0 {
            *writes.by_cluster.entry(written.cluster.clone()).or_default() += times;
        }
        writes
    }

    /// Returns one line of text for each kind of write.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |(written, times): (&Written, &u64)| {
            let Written { cluster, user, verb, resource } = written;
            format!("{times} {verb} {resource} in {cluster} by {}", known_as(user))
        };
        self.0.iter().map(line).collect()
    }
}

/// Returns a short name for the user of a service account, such as `hub-agent`. For a service account in a member
/// namespace, the short name also contains the member: `member-agent of member-1`. Other users keep their names.
fn known_as(user: &str) -> String {
    let Some((namespace, name)) = user.strip_prefix(SERVICE_ACCOUNT).and_then(|account| account.split_once(':')) else {
        return user.to_owned();
    };
    cluster_of(namespace).map_or_else(|| name.to_owned(), |cluster| format!("{name} of {cluster}"))
}

/// Newest latencies in milliseconds, at most [`SAMPLES`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(VecDeque<f64>);

impl Samples {
    /// Adds a latency in milliseconds.
    pub(crate) fn add(&mut self, milliseconds: f64) {
        if self.0.len() >= SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(milliseconds);
    }

    /// Returns the percentiles of the latencies; `None` if there are no latencies.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let mut sorted: Vec<f64> = self.0.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let rank = |percent: usize| (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        Some(Latency {
            samples: sorted.len(),
            p50_milliseconds: *sorted.get(rank(50))?,
            p99_milliseconds: (sorted.len() >= PERCENTILE_SAMPLES).then(|| sorted.get(rank(99)).copied()).flatten(),
            max_milliseconds: *sorted.last()?,
        })
    }
}

/// Latencies in importers with a slice stream and in those without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByStream {
    with: Samples,
    without: Samples,
}

impl ByStream {
    /// Adds a latency in milliseconds. Ignores a latency of which it is not known if a stream was used.
    pub(crate) fn add(&mut self, has_stream: Option<bool>, milliseconds: f64) {
        match has_stream {
            Some(true) => self.with.add(milliseconds),
            Some(false) => self.without.add(milliseconds),
            None => {}
        }
    }

    /// Returns the percentiles with a stream and without one.
    pub(crate) fn latencies(&self) -> (Option<Latency>, Option<Latency>) {
        (self.with.latency(), self.without.latency())
    }
}

/// Returns a duration in milliseconds, with a precision of one microsecond.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::fleet::{HUB_AGENT, hub_user};

    fn written(cluster: &str, user: &str, resource: &str) -> Written {
        let [cluster, user, resource] = [cluster, user, resource].map(str::to_owned);
        Written { cluster, user, verb: "patch".to_owned(), resource }
    }

    #[test]
    fn only_the_agents_objects_are_counted() {
        let mut ledger = Ledger::default();
        ledger.add(written("hub", HUB_AGENT, "endpointsliceimports"), 2);
        let member_agent = hub_user("fleet-member-member-1");
        ledger.add(written("hub", &member_agent, "endpointsliceexports"), 1);
        ledger.add(written("hub", HUB_AGENT, "leases"), 5);
        ledger.add(written("member-1", "member-agent", "events"), 5);
        ledger.add(written("member-1", "sandbox", "endpointslices"), 1);
        assert_eq!(ledger.sums().total, 3);
        assert_eq!(
            ledger.lines(),
            [
                "1 patch endpointsliceexports in hub by member-agent of member-1",
                "2 patch endpointsliceimports in hub by hub-agent"
            ]
        );
    }

    #[test]
    fn a_change_costs_what_was_written_since_it_began() {
        let mut before = Ledger::default();
        before.add(written("hub", HUB_AGENT, "endpointsliceimports"), 2);
        let mut after = before.clone();
        after.add(written("hub", HUB_AGENT, "endpointsliceimports"), 1);
        after.add(written("member-2", "member-agent", "endpointslices"), 1);
        let cost = after.since(&before).sums();
        assert_eq!(cost.total, 2);
        assert_eq!(cost.by_cluster, BTreeMap::from([("hub".to_owned(), 1), ("member-2".to_owned(), 1)]));
        assert_eq!(after.since(&after), Ledger::default());
    }

    #[test]
    fn latencies_with_and_without_a_stream_are_apart() {
        let mut latencies = ByStream::default();
        for (has_stream, sample) in [(Some(true), 4.0), (Some(false), 7.0), (None, 99.0), (Some(true), 5.0)] {
            latencies.add(has_stream, sample);
        }
        let (with, without) = latencies.latencies();
        assert_eq!(with.map(|it| (it.samples, it.p50_milliseconds, it.max_milliseconds)), Some((2, 4.0, 5.0)));
        assert_eq!(without.map(|it| (it.samples, it.p50_milliseconds, it.max_milliseconds)), Some((1, 7.0, 7.0)));
    }

    #[test]
    fn percentiles_are_samples_that_were_seen_and_of_few_there_is_no_99th() {
        let of = |samples: &Samples| {
            let latency = samples.latency()?;
            Some((latency.samples, latency.p50_milliseconds, latency.p99_milliseconds, latency.max_milliseconds))
        };
        let mut samples = Samples::default();
        assert_eq!(of(&samples), None);
        samples.add(7.0);
        assert_eq!(of(&samples), Some((1, 7.0, None, 7.0)));
        let mut samples = Samples::default();
        (1..=99).rev().for_each(|sample| samples.add(f64::from(sample)));
        assert_eq!(of(&samples), Some((99, 50.0, None, 99.0)));
        (100..=200).for_each(|sample| samples.add(f64::from(sample)));
        assert_eq!(of(&samples), Some((200, 100.0, Some(198.0), 200.0)));
        (1..=2000).for_each(|_| samples.add(5.0));
        assert_eq!(of(&samples), Some((1000, 5.0, Some(5.0), 5.0)));
    }
}
