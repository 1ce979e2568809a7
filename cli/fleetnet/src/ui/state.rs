//! State of the page after each reading. Does no I/O.

use super::agent_events::AgentEvents;
use super::happened::{Change, Seen, changes};
use super::requests::Requests;
use crate::cli::output::{Report, document};
use crate::cli::{latency, services, status};
use crate::limits::{UI_LINES, UI_REQUESTS};
use diagnosis::Snapshot;
use diagnosis::services::Rows;
use diagnosis::snapshot::Listing;
use fleetnet_runtime::clock::{Clock, to_jiff};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::Instant;

/// Result of a reading.
pub(super) enum Reading {
    /// The hub answered.
    Read(Box<Round>),
    /// The hub was not reached. The text says why.
    NotRead(String),
}

/// Views of a fleet at one moment.
pub(super) struct Round {
    documents: Documents,
    contexts_not_read: Vec<String>,
    seen: Seen,
}

/// JSON documents of the views. They are text, because each of many pages gets the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Documents {
    pub(super) status: Arc<str>,
    pub(super) services: Arc<str>,
    pub(super) latency: Arc<str>,
}

impl Round {
    /// Returns the views of two snapshots of the same fleet: one for status and latency, and one for the Services.
    pub(super) fn of(for_status: &Snapshot, for_services: &Snapshot, contexts_not_read: Vec<String>) -> Self {
        let status = diagnosis::status(for_status);
        let services = diagnosis::services(for_services, &Rows::default());
        let latency = diagnosis::latency::latency(for_status, &latency::usual_question());
        let (status, services) = (status::Shown(status), services::Shown::of(services));
        let documents =
            Documents { status: text(&status), services: text(&services), latency: text(&latency::Shown(latency)) };
        let seen = Seen {
            is_hub_reached: Some(true),
            status: Some(status.0).filter(|_| lists_members(for_status)),
            services: Some(services.services).filter(|_| lists_services(for_services)),
        };
        Self { documents, contexts_not_read, seen }
    }
}

/// Returns the JSON document of a command, on one line.
fn text(report: &dyn Report) -> Arc<str> {
    document(report).to_string().into()
}

/// True if the snapshot has all members, so that a missing one has left.
fn lists_members(snapshot: &Snapshot) -> bool {
    snapshot.hub.namespaces.known().is_some() && snapshot.hub.member_agents.known().is_some()
}

/// True if the snapshot has all exports and imports, so that a missing one has ended.
fn lists_services(snapshot: &Snapshot) -> bool {
    let hub = &snapshot.hub;
    let has_merged_imports = matches!(hub.merged_imports, Listing::Known { .. } | Listing::NotDefined);
    let has_exports = hub.internal_exports.known().is_some() && hub.slice_exports.known().is_some();
    has_exports && has_merged_imports && hub.claims.known().is_some() && hub.service_imports.known().is_some()
}

/// Line of `What happens`, or requests of a second, with its number from 1.
#[derive(Clone, Debug)]
pub(super) struct NumberedLine {
    pub(super) number: u64,
    /// JSON text.
    pub(super) text: Arc<str>,
}

#[derive(Serialize)]
struct TimedChange<'a> {
    time: &'a str,
    #[serde(flatten)]
    change: &'a Change,
}

/// Reason why the hub could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NotRead {
    pub(super) time: String,
    pub(super) why: String,
}

/// State of the page. Clones share all texts.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Time of the last reading that reached the hub.
    pub(super) time: String,
    /// Documents of the last reading that reached the hub.
    pub(super) documents: Option<Documents>,
    pub(super) contexts_not_read: Vec<String>,
    /// Events of the agents at the last reading.
    pub(super) events: Arc<AgentEvents>,
    /// Failure of the last reading.
    pub(super) not_read: Option<NotRead>,
    /// Last changes, oldest first.
    pub(super) lines: VecDeque<NumberedLine>,
    /// End of the last reading.
    pub(super) read: Option<Instant>,
    /// Client that sends requests, as JSON text; `None` without a client.
    pub(super) traffic: Option<Arc<str>>,
    /// Requests of the last seconds, oldest first.
    pub(super) requests: VecDeque<NumberedLine>,
}

impl State {
    /// Takes a reading at this time. `seen` is the knowledge of the readings before.
    pub(super) fn take(&mut self, reading: Reading, seen: &mut Seen, time: &str) {
        let next = match reading {
            Reading::NotRead(why) => {
                self.not_read = Some(NotRead { time: time.to_owned(), why });
                Seen { is_hub_reached: Some(false), ..Seen::default() }
            }
            Reading::Read(round) => {
                let Round { documents, contexts_not_read, seen } = *round;
                (self.documents, self.contexts_not_read) = (Some(documents), contexts_not_read);
                (self.not_read, self.time) = (None, time.to_owned());
                seen
            }
        };
        for change in changes(seen, &next) {
            push(&mut self.lines, UI_LINES, &TimedChange { time, change: &change });
        }
        seen.renew(next);
    }

    /// Adds a line for each new Event of the agents. The Events of the last hour before the first reading do not push
    /// out all other lines.
    pub(super) fn take_events(&mut self, events: Arc<AgentEvents>) {
        let earlier = std::mem::replace(&mut self.events, events);
        let new = self.events.since(&earlier);
        for event in &new[new.len().saturating_sub(UI_LINES / 2)..] {
            push(&mut self.lines, UI_LINES, event);
        }
    }

    /// Adds the requests of a second.
    pub(super) fn add(&mut self, requests: &Requests<'_>) {
        push(&mut self.requests, UI_REQUESTS, requests);
    }
}

/// Adds a line, and drops the oldest one if there are `max` lines.
fn push(lines: &mut VecDeque<NumberedLine>, max: usize, line: &impl Serialize) {
    if lines.len() >= max {
        lines.pop_front();
    }
    let number = lines.back().map_or(1, |last| last.number + 1);
    lines.push_back(NumberedLine { number, text: json(line) });
}

/// Returns JSON text on one line.
pub(super) fn json(value: &impl Serialize) -> Arc<str> {
    serde_json::to_string(value).unwrap_or_default().into()
}

/// Returns the present time in RFC 3339.
pub(super) fn now(clock: &Clock) -> String {
    format!("{:.3}", to_jiff(clock.now()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    fn read() -> Reading {
        let snapshot = Snapshot::default();
        Reading::Read(Box::new(Round::of(&snapshot, &snapshot, Vec::new())))
    }

    #[test]
    fn a_failed_reading_keeps_the_last_documents() {
        let (mut state, mut seen) = (State::default(), Seen::default());
        state.take(read(), &mut seen, "1");
        assert!(state.documents.is_some() && state.not_read.is_none() && state.lines.is_empty(), "{state:?}");
        let documents = state.documents.clone();
        state.take(Reading::NotRead("late".to_owned()), &mut seen, "2");
        assert_eq!((&state.documents, state.time.as_str()), (&documents, "1"));
        assert_eq!(state.not_read, Some(NotRead { time: "2".to_owned(), why: "late".to_owned() }));
        state.take(read(), &mut seen, "3");
        assert_eq!((state.not_read, state.time.as_str()), (None, "3"));
        let lines: Vec<(u64, Value)> =
            state.lines.iter().map(|line| (line.number, serde_json::from_str(&line.text).unwrap())).collect();
        assert_eq!((lines.len(), lines[0].0, lines[1].0), (2, 1, 2));
        assert_eq!((&lines[0].1["time"], &lines[0].1["reason"]), (&"2".into(), &"Unreachable".into()));
        assert_eq!((&lines[1].1["time"], &lines[1].1["reason"]), (&"3".into(), &"Reachable".into()));
    }

    #[test]
    fn only_the_last_lines_are_kept_and_their_numbers_go_on() {
        let (mut state, mut seen) = (State::default(), Seen::default());
        state.take(read(), &mut seen, "0");
        for _ in 0..UI_LINES {
            state.take(Reading::NotRead(String::new()), &mut seen, "1");
            state.take(read(), &mut seen, "2");
        }
        let numbers: Vec<u64> = state.lines.iter().map(|line| line.number).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[UI_LINES - 1]), (UI_LINES, 201, 400));
    }

    #[test]
    fn the_requests_of_the_last_seconds_are_kept() {
        let mut state = State::default();
        let counts = |name: &str| BTreeMap::from([(name.to_owned(), 1)]);
        let (lost_by_kind, answers_by_cluster) = (&counts("timeout"), &counts("member-1"));
        for sent in 0..130 {
            state.add(&Requests { time: "1".to_owned(), sent, lost: 1, lost_by_kind, answers_by_cluster });
        }
        assert_eq!((state.requests.len(), state.requests[0].number), (120, 11));
        let last: Value = serde_json::from_str(&state.requests[119].text).unwrap();
        let expected = serde_json::json!({
            "time": "1", "sent": 129, "lost": 1, "lostByKind": {"timeout": 1}, "answersByCluster": {"member-1": 1},
        });
        assert_eq!(last, expected);
    }
}
