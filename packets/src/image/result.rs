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
    /// Lost requests by the kind of failure: `refused`, `reset`, `timeout`, `unreachable`, `eof`, `status`, `dns`, `local` (the client
    /// itself could not send) or `other`.
    pub kinds: BTreeMap<String, u64>,
    /// Answers by the name of the server.
    pub servers: BTreeMap<String, Server>,
    /// Time from the moment at which a request was due until its answer.
    pub latency: Latency,
}

/// Answers of one server. The times are those at which the requests were due, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub answers: u64,
    pub first: i64,
    pub last: i64,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    pub p50: u32,
    pub p90: u32,
    pub p99: u32,
    pub max: u32,
}

/// Lost request, as a line of JSON in the client's log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Loss {
    /// Time at which the request was due, in microseconds since 1970.
    pub at: i64,
    pub kind: String,
    pub message: String,
}

/// Latencies and counts so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    totals: Totals,
    latencies: Vec<u32>,
}

impl Tally {
    /// Adds the answer of a server.
    pub(super) fn add_answer(&mut self, server: &str, due: i64, latency: u32) {
        self.totals.sent += 1;
        self.latencies.push(latency);
        let known =
            self.totals.servers.entry(server.to_owned()).or_insert(Server { answers: 0, first: due, last: due });
        known.answers += 1;
        known.first = known.first.min(due);
        known.last = known.last.max(due);
    }

    pub(super) fn add_loss(&mut self, kind: &str) {
        self.totals.sent += 1;
        self.totals.lost += 1;
        *self.totals.kinds.entry(kind.to_owned()).or_default() += 1;
    }

    pub(super) fn totals(&self) -> Totals {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at =
            |percent: usize| sorted.get(sorted.len() * percent / 100).or(sorted.last()).copied().unwrap_or_default();
        let latency = Latency { p50: at(50), p90: at(90), p99: at(99), max: at(100) };
        Totals { latency, ..self.totals.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Latency, Server, Tally};

    #[test]
    fn answers_are_counted_by_server_and_losses_by_kind() {
        let mut tally = Tally::default();
        for (due, latency) in [(30, 5), (10, 1), (20, 3)] {
            tally.add_answer("app-1", due, latency);
        }
        tally.add_loss("timeout");
        let totals = tally.totals();
        assert_eq!((totals.sent, totals.lost), (4, 1));
        assert_eq!(totals.kinds.into_iter().collect::<Vec<_>>(), [("timeout".to_owned(), 1)]);
        assert_eq!(totals.servers["app-1"], Server { answers: 3, first: 10, last: 30 });
        assert_eq!(totals.latency, Latency { p50: 3, p90: 5, p99: 5, max: 5 });
    }
}
