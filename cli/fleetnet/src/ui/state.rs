//! State of the page after each reading. Does no I/O.

use super::happened::{Change, Seen, changes};
use crate::cli::output::{Report, document};
use crate::cli::{latency, services, status};
use crate::limits::UI_LINES;
use diagnosis::Snapshot;
use diagnosis::report::{Services, Status};
use diagnosis::services::Rows;
use diagnosis::snapshot::Listing;
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
        let documents = Documents {
            status: text(&status::Shown(status.clone())),
            services: text(&services::Shown::of(services.clone())),
            latency: text(&latency::Shown(latency)),
        };
        let seen = Seen {
            is_hub_reached: Some(true),
            status: Some(status).filter(|_| lists_members(for_status)),
            services: Some(services).filter(|_| lists_services(for_services)),
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

/// Line of `What happens`, with its number from 1.
#[derive(Clone, Debug)]
pub(super) struct Line {
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

/// State of the page.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Time of the last reading that reached the hub.
    pub(super) time: String,
    /// Documents of the last reading that reached the hub.
    pub(super) documents: Option<Documents>,
    pub(super) contexts_not_read: Vec<String>,
    /// Failure of the last reading.
    pub(super) not_read: Option<NotRead>,
    /// Last changes, oldest first.
    pub(super) lines: VecDeque<Line>,
    /// Facts with which the next reading is compared.
    pub(super) seen: Seen,
    /// End of the last reading.
    pub(super) read: Option<Instant>,
}

impl State {
    /// Returns the state after a reading at this time.
    pub(super) fn after(&self, reading: Reading, time: String) -> Self {
        let mut state = self.clone();
        let seen = match reading {
            Reading::NotRead(why) => {
                state.not_read = Some(NotRead { time: time.clone(), why });
                Seen { is_hub_reached: Some(false), ..Seen::default() }
            }
            Reading::Read(round) => {
                let Round { documents, contexts_not_read, seen } = *round;
                (state.documents, state.contexts_not_read) = (Some(documents), contexts_not_read);
                (state.not_read, state.time) = (None, time.clone());
                seen
            }
        };
        for change in changes(&self.seen, &seen) {
            state.add(&change, &time);
        }
        state.remember(seen);
        state
    }

    fn add(&mut self, change: &Change, time: &str) {
        if self.lines.len() >= UI_LINES {
            self.lines.pop_front();
        }
        let number = self.lines.back().map_or(1, |last| last.number + 1);
        let text = serde_json::to_string(&TimedChange { time, change }).unwrap_or_default().into();
        self.lines.push_back(Line { number, text });
    }

    /// Keeps what the next reading is compared with: the last complete lists.
    fn remember(&mut self, seen: Seen) {
        let status: Option<Status> = seen.status.or(self.seen.status.take());
        let services: Option<Services> = seen.services.or(self.seen.services.take());
        self.seen = Seen { is_hub_reached: seen.is_hub_reached, status, services };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read() -> Reading {
        let snapshot = Snapshot::default();
        Reading::Read(Box::new(Round::of(&snapshot, &snapshot, Vec::new())))
    }

    #[test]
    fn a_failed_reading_keeps_the_last_documents() {
        let state = State::default().after(read(), "1".to_owned());
        assert!(state.documents.is_some() && state.not_read.is_none() && state.lines.is_empty(), "{state:?}");
        let failed = state.after(Reading::NotRead("late".to_owned()), "2".to_owned());
        assert_eq!((&failed.documents, failed.time.as_str()), (&state.documents, "1"));
        assert_eq!(failed.not_read, Some(NotRead { time: "2".to_owned(), why: "late".to_owned() }));
        let back = failed.after(read(), "3".to_owned());
        assert_eq!((back.not_read, back.time.as_str()), (None, "3"));
        let lines: Vec<(u64, serde_json::Value)> =
            back.lines.iter().map(|line| (line.number, serde_json::from_str(&line.text).unwrap())).collect();
        assert_eq!((lines.len(), lines[0].0, lines[1].0), (2, 1, 2));
        assert_eq!((&lines[0].1["time"], &lines[0].1["reason"]), (&"2".into(), &"Unreachable".into()));
        assert_eq!((&lines[1].1["time"], &lines[1].1["reason"]), (&"3".into(), &"Reachable".into()));
    }

    #[test]
    fn only_the_last_lines_are_kept_and_their_numbers_go_on() {
        let mut state = State::default().after(read(), "0".to_owned());
        for _ in 0..UI_LINES {
            state = state.after(Reading::NotRead(String::new()), "1".to_owned()).after(read(), "2".to_owned());
        }
        let numbers: Vec<u64> = state.lines.iter().map(|line| line.number).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[UI_LINES - 1]), (UI_LINES, 201, 400));
    }
}
