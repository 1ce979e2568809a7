//! Result of the image `client`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of a client, as one line of JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Requests that have an outcome.
    pub sent: u64,
    /// Requests without a right answer.
    pub lost: u64,
    /// Lost requests by the kind of failure: `refused`, `reset`, `timeout`, `unreachable`, `eof`, `status`, `dns`,
    /// `local` (the client itself could not send) or `other`.
    pub kinds: BTreeMap<String, u64>,
    /// Time at which the last lost request was due, in microseconds since 1970.
    pub last_loss: Option<i64>,
    /// Answers by the name of the server.
    pub servers: BTreeMap<String, Server>,
    /// Times until the answers. `None` while the client sends.
    pub latency: Option<Latency>,
}

/// Percentiles of the times until the answers, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
}

/// Times until the answers, in microseconds, rounded down to three digits: a client that sends for days needs no more
/// memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    pub(super) fn add(&mut self, microseconds: u64) {
        let unit = 10_u64.pow(microseconds.max(1).ilog10().saturating_sub(2));
        *self.0.entry(microseconds / unit * unit).or_default() += 1;
    }

    /// Returns the percentiles; `None` without an answer.
    pub(super) fn percentiles(&self) -> Option<Latency> {
        let all: u64 = self.0.values().sum();
        let rank = |percent: u64| {
            let wanted = (all * percent).div_ceil(100);
            let mut passed = 0;
            self.0.iter().find(|(_, count)| {
                passed += **count;
                passed >= wanted
            })
        };
        let time = |percent| rank(percent).map(|(time, _)| *time);
        Some(Latency { p50: time(50)?, p90: time(90)?, p99: time(99)? })
    }
}

/// Answers of one server. The times are those at which the requests were due, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub answers: u64,
    pub first: i64,
    pub last: i64,
}

/// Lost request, as a line of JSON in the client's log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Loss {
    /// Time at which the request was due, in microseconds since 1970.
    pub at: i64,
    pub kind: String,
    pub message: String,
}

impl Totals {
    /// Adds the answer of a server.
    pub(super) fn add_answer(&mut self, server: &str, due: i64) {
        self.sent += 1;
        let known = self.servers.entry(server.to_owned()).or_insert(Server { answers: 0, first: due, last: due });
        known.answers += 1;
        known.first = known.first.min(due);
        known.last = known.last.max(due);
    }

    pub(super) fn add_loss(&mut self, kind: &str, due: i64) {
        self.sent += 1;
        self.lost += 1;
        self.last_loss = self.last_loss.max(Some(due));
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Latencies, Latency, Server, Totals};

    #[test]
    fn answers_are_counted_by_server_and_losses_by_kind() {
        let mut totals = Totals::default();
        for due in [30, 10, 20] {
            totals.add_answer("app-1", due);
        }
        totals.add_loss("timeout", 50);
        totals.add_loss("timeout", 40);
        assert_eq!((totals.sent, totals.lost, totals.last_loss), (5, 2, Some(50)));
        assert_eq!(totals.kinds.into_iter().collect::<Vec<_>>(), [("timeout".to_owned(), 2)]);
        assert_eq!(totals.servers["app-1"], Server { answers: 3, first: 10, last: 30 });
    }

    #[test]
    fn percentiles_are_measured_times() {
        let of = |times: Vec<u64>| {
            let mut latencies = Latencies::default();
            times.into_iter().for_each(|time| latencies.add(time));
            latencies.percentiles()
        };
        assert_eq!(of((1..=200).rev().collect()), Some(Latency { p50: 100, p90: 180, p99: 198 }));
        assert_eq!(of(vec![7]), Some(Latency { p50: 7, p90: 7, p99: 7 }));
        assert_eq!(of(vec![0, 1_239, 98_765]), Some(Latency { p50: 1_230, p90: 98_700, p99: 98_700 }));
        assert_eq!(of(Vec::new()), None);
    }
}
