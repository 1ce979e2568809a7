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

    pub(super) fn add_loss(&mut self, kind: &str) {
        self.sent += 1;
        self.lost += 1;
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Server, Totals};

    #[test]
    fn answers_are_counted_by_server_and_losses_by_kind() {
        let mut totals = Totals::default();
        for due in [30, 10, 20] {
            totals.add_answer("app-1", due);
        }
        totals.add_loss("timeout");
        assert_eq!((totals.sent, totals.lost), (4, 1));
        assert_eq!(totals.kinds.into_iter().collect::<Vec<_>>(), [("timeout".to_owned(), 1)]);
        assert_eq!(totals.servers["app-1"], Server { answers: 3, first: 10, last: 30 });
    }
}
