//! Results of the measurement, compared with targets.

use super::{Connections, PreStop, Scenario};
use crate::environment::Role;
use crate::quantiles::{Quantiles, ratio};
use crate::report::{Target, target};
use packets::image::result::{Latency, Totals};
use packets::replicas::Successor;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Time after which a dead cluster must get no requests: the soft limit of 60 s, and 2 s for the way to the importers.
const SOFT_LIMIT_MILLISECONDS: f64 = 62_000.0;

/// Place of a client.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Exporting cluster, behind the Service's own address: the baseline.
    Local,
    /// Importing cluster, behind the address of the import.
    Importer,
}

impl Side {
    pub const ALL: [Self; 2] = [Self::Local, Self::Importer];

    pub(super) fn index(self) -> usize {
        match self {
            Self::Local => 0,
            Self::Importer => 1,
        }
    }
}

/// Requests of a client.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    pub sent: u64,
    pub lost: u64,
    /// Lost requests by the kind of failure.
    pub kinds: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn between(before: &Totals, after: &Totals) -> Self {
        let since = |(kind, count): (&String, &u64)| {
            let more = count - before.kinds.get(kind).copied().unwrap_or_default();
            (more > 0).then(|| (kind.clone(), more))
        };
        let kinds = after.kinds.iter().filter_map(since).collect();
        Self { sent: after.sent - before.sent, lost: after.lost - before.lost, kinds }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }
}

/// Requests that the importer's client may lose.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    None,
    /// The number that the client of the exporting cluster loses in the same run.
    Baseline,
    /// Any number: the measurement counts them.
    Counted,
}

/// Results of one scenario and client.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub scenario: Scenario,
    pub pre_stop: PreStop,
    /// Further description of the scenario; can be empty.
    pub detail: String,
    pub allowed: Allowed,
    pub client: Side,
    #[serde(flatten)]
    pub counts: Counts,
    /// Measured times. `None` for scenarios that count only.
    pub time: Option<Quantiles>,
}

impl Row {
    /// Returns the rows of both clients in a scenario that counts only.
    pub(super) fn of(
        scenario: Scenario,
        pre_stop: Option<u32>,
        detail: &str,
        allowed: Allowed,
        counts: [(Side, Counts); 2],
    ) -> Vec<Self> {
        let pre_stop = PreStop(pre_stop);
        let row = |(client, counts)| {
            let detail = detail.to_owned();
            Self { scenario, pre_stop, detail, allowed, client, counts, time: None }
        };
        counts.map(row).to_vec()
    }

    fn name(&self) -> String {
        let scenario = match self.scenario {
            Scenario::Ready => "pod ready",
            Scenario::Deleted => "pod deleted",
            Scenario::Rollout => "rollout",
            Scenario::Kills => "kills",
            Scenario::Interruptions => "interruption",
            Scenario::Outside => "outside",
            Scenario::Death => "death",
            Scenario::Versions => "versions",
            Scenario::Overhead => "overhead",
        };
        let PreStop(seconds) = self.pre_stop;
        let hook = seconds.map_or_else(|| "no preStop".to_owned(), |seconds| format!("preStop {seconds} s"));
        let detail = if self.detail.is_empty() { String::new() } else { format!(", {}", self.detail) };
        format!("{scenario}, {hook}{detail}")
    }
}

pub(super) fn name(successor: Successor) -> &'static str {
    match successor {
        Successor::SamePod => "same pod",
        Successor::NewPod => "new pod",
    }
}

/// Kill of an agent during a rolling update.
#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// Agent that was killed.
    pub agent: Role,
    pub successor: Successor,
    /// From the kill until the importer has a pod that became ready after the kill.
    pub next_import_milliseconds: Option<f64>,
    /// Requests of each client that were lost in this rolling update.
    pub lost: BTreeMap<Side, u64>,
}

/// Death of an exporting cluster.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Death {
    pub connections: Connections,
    /// From the death until the last request of the importer that was lost.
    pub last_loss_milliseconds: f64,
}

/// Target of the requests in a measurement of the cost of a way.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Pod's own address: the baseline.
    Pod,
    /// Address of the import.
    Import,
}

/// One measurement of a way.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Overhead {
    pub way: Way,
    /// Answers in a second over 8 kept connections, as many as the pod gives.
    pub requests_per_second: u64,
    /// Times until the answers at a fixed rate, each over a new connection, in microseconds.
    pub latency: Latency,
    pub lost: u64,
}

/// Results of all scenarios.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub rows: Vec<Row>,
    pub kills: Vec<Kill>,
    pub deaths: Vec<Death>,
    pub overheads: Vec<Overhead>,
}

impl Figures {
    /// Compares the results with their targets.
    pub(super) fn targets(&self) -> Vec<Target> {
        let pairs = self.rows.chunks_exact(2).flat_map(|pair| targets_of(&pair[0], &pair[1]));
        let mut targets: Vec<Target> = pairs.collect();
        for (successor, at_most) in [(Successor::SamePod, 2_000.0), (Successor::NewPod, 3_000.0)] {
            let kills = self.kills.iter().filter(|kill| kill.successor == successor);
            let times = kills.filter_map(|kill| kill.next_import_milliseconds);
            if let Some(longest) = times.reduce(f64::max) {
                let name = format!("kills, {}: next import, longest, ms", name(successor));
                targets.push(target(&name, at_most, longest));
            }
        }
        for connections in Connections::ALL {
            let deaths = self.deaths.iter().filter(|death| death.connections == connections);
            if let Some(longest) = deaths.map(|death| death.last_loss_milliseconds).reduce(f64::max) {
                let name = format!("death, {} connections: last lost request, longest, ms", connections.as_str());
                targets.push(target(&name, SOFT_LIMIT_MILLISECONDS, longest));
            }
        }
        targets.extend(targets_of_overhead(&self.overheads));
        targets
    }
}

/// Returns the targets of the way through a derived Service: the medians of its measurements, as parts of those of the
/// pod's address.
fn targets_of_overhead(overheads: &[Overhead]) -> Vec<Target> {
    let median = |way, of: fn(&Overhead) -> u64| {
        let mut values: Vec<u64> = overheads.iter().filter(|it| it.way == way).map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).and_then(|value| u32::try_from(*value).ok()).map(f64::from)
    };
    let parts = |of| Some(ratio(median(Way::Import, of)?, median(Way::Pod, of)?));
    let slower = parts(|it| it.requests_per_second).map(|part| 1.0 / part);
    let later = parts(|it| it.latency.p50);
    let named = [("time for a request at full load", slower), ("latency p50", later)];
    // Equal within the noise of a machine with two cores.
    let target = |(name, part): (&str, Option<f64>)| {
        part.map(|part| target(&format!("overhead: {name}, import / pod address"), 1.1, part))
    };
    named.into_iter().filter_map(target).collect()
}

/// Returns the targets of the importer, given the results of the baseline in the same run.
fn targets_of(local: &Row, importer: &Row) -> Vec<Target> {
    let name = importer.name();
    let lost = |row: &Row| f64::from(u32::try_from(row.counts.lost).unwrap_or(u32::MAX));
    let at_most = match importer.allowed {
        Allowed::None => Some(0.0),
        Allowed::Baseline => Some(lost(local)),
        Allowed::Counted => None,
    };
    let lost = |at_most| target(&format!("{name}: lost by the importer"), at_most, lost(importer));
    let mut targets: Vec<Target> = at_most.map(lost).into_iter().collect();
    if let (Some(local), Some(importer)) = (&local.time, &importer.time) {
        let more = |of: fn(&Quantiles) -> f64| of(importer) - of(local);
        targets.push(target(&format!("{name}: p50 above the baseline, ms"), 30.0, more(|it| it.p50_milliseconds)));
        targets.push(target(&format!("{name}: p90 above the baseline, ms"), 30.0, more(|it| it.p90_milliseconds)));
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::Counts;
    use packets::image::result::Totals;
    use std::collections::BTreeMap;

    #[test]
    fn counts_are_the_difference_of_two_results() {
        let totals = |sent, lost, kinds: &[(&str, u64)]| {
            let kinds = kinds.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
            Totals { sent, lost, kinds, ..Totals::default() }
        };
        let before = totals(100, 3, &[("refused", 3)]);
        let after = totals(300, 5, &[("refused", 3), ("timeout", 2)]);
        let kinds = BTreeMap::from([("timeout".to_owned(), 2)]);
        assert_eq!(Counts::between(&before, &after), Counts { sent: 200, lost: 2, kinds });
    }
}
