//! Server-sent events of one page: the state after each reading, without what the page knows already.

use super::state::{Documents, NotRead, NumberedLine, State};
use super::visits::Visit;
use crate::limits::{UI_BYTES_PER_SECOND, UI_OLD, UI_RECONNECT_MILLISECONDS, UI_REPEAT};
use bytes::Bytes;
use futures::stream::{self, Stream};
use http_body::Frame;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Message without content, which keeps the connection.
const SILENCE: &str = ":\n\n";

/// Reason for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The state may have changed.
    Change,
    /// The page has heard nothing for a while, or has just connected.
    Silence,
}

/// Knowledge of one page: what was sent to it.
#[derive(Debug, Default)]
pub(super) struct Sent {
    documents: Option<Documents>,
    contexts_not_read: Vec<String>,
    traffic: Option<Arc<str>>,
    events_not_read: Vec<String>,
    not_read: Option<NotRead>,
    /// Number of the last line.
    line: u64,
    /// Number of the last message `requests`.
    requests: u64,
}

impl Sent {
    /// Returns the messages that bring the page up to date, without requests; empty if it knows everything. After a
    /// silence, there is always a message.
    pub(super) fn messages(&mut self, state: &State, due: Due) -> String {
        let mut text = self.fleet(state, due).unwrap_or_default();
        add(&mut text, "happened", &state.lines, &mut self.line);
        // A message `fleet` says that the hub was read, so this message comes after it.
        if let Some(not_read) = &state.not_read
            && (due == Due::Silence || self.not_read.as_ref() != Some(not_read))
        {
            message(&mut text, "notRead", &json!(not_read).to_string());
        }
        self.not_read.clone_from(&state.not_read);
        if text.is_empty() && due == Due::Silence {
            text.push_str(SILENCE);
        }
        text
    }

    /// Returns the messages with requests that the page does not know.
    fn requests(&mut self, state: &State) -> String {
        let mut text = String::new();
        add(&mut text, "requests", &state.requests, &mut self.requests);
        text
    }

    /// Returns the message `fleet`, if there is something new for the page.
    fn fleet(&mut self, state: &State, due: Due) -> Option<String> {
        let documents = state.documents.as_ref()?;
        let is_reached_again = self.not_read.is_some() && state.not_read.is_none();
        let is_new = self.documents.as_ref() != Some(documents)
            || self.contexts_not_read != state.contexts_not_read
            || self.traffic != state.traffic
            || self.events_not_read != state.events.not_read;
        let is_repeated = due == Due::Silence && (self.documents.is_none() || state.not_read.is_none());
        if !is_new && !is_reached_again && !is_repeated {
            return None;
        }
        let sent = self.documents.as_ref();
        let fields = [
            ("status", &documents.status, sent.map(|sent| &sent.status)),
            ("services", &documents.services, sent.map(|sent| &sent.services)),
            ("latency", &documents.latency, sent.map(|sent| &sent.latency)),
        ];
        let mut json = format!("{{\"time\":{}", json!(state.time));
        for (name, document, sent) in fields {
            if sent != Some(document) {
                json.push_str(&format!(",\"{name}\":{document}"));
            }
        }
        let (contexts, events) = (json!(state.contexts_not_read), json!(state.events.not_read));
        let traffic = state.traffic.as_deref().unwrap_or("null");
        json.push_str(&format!(",\"contextsNotRead\":{contexts},\"eventsNotRead\":{events},\"traffic\":{traffic}}}"));
        self.documents = Some(documents.clone());
        self.events_not_read.clone_from(&state.events.not_read);
        self.contexts_not_read.clone_from(&state.contexts_not_read);
        self.traffic.clone_from(&state.traffic);
        let mut text = String::new();
        message(&mut text, "fleet", &json);
        Some(text)
    }
}

/// Adds a message. JSON text has no line end.
fn message(text: &mut String, event: &str, json: &str) {
    text.push_str(&format!("event: {event}\ndata: {json}\n\n"));
}

/// Adds a message for each line after the last one that was sent.
fn add(text: &mut String, event: &str, lines: &VecDeque<NumberedLine>, sent: &mut u64) {
    lines.iter().filter(|line| line.number > *sent).for_each(|line| message(text, event, &line.text));
    *sent = lines.back().map_or(*sent, |line| line.number);
}

/// Connection of one page.
struct Connection {
    states: watch::Receiver<Arc<State>>,
    sent: Sent,
    /// Time of the next message, if nothing changes.
    due: Instant,
    /// Time until which the page works on the last messages, because they were long.
    busy: Instant,
    is_new: bool,
    _visit: Visit,
}

impl Connection {
    /// Returns the next messages; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        sleep_until(self.busy).await;
        loop {
            let state = Arc::clone(&self.states.borrow_and_update());
            let due = if Instant::now() >= self.due { Due::Silence } else { Due::Change };
            // Nobody reads without a page, and a reading may hang. No page may show such a state as the present one.
            let is_old = state.read.is_some_and(|read| read.elapsed() > UI_OLD);
            let mut text = match due {
                Due::Change if is_old => String::new(),
                Due::Silence if is_old => SILENCE.to_owned(),
                _ => self.sent.messages(&state, due),
            };
            if !text.is_empty() {
                self.due = Instant::now() + UI_REPEAT;
            }
            // They come each second, also while a reading hangs. They do not say that the fleet was read.
            text.push_str(&self.sent.requests(&state));
            if std::mem::take(&mut self.is_new) {
                text.insert_str(0, &format!("retry: {UI_RECONNECT_MILLISECONDS}\n\n"));
            }
            if !text.is_empty() {
                self.busy = Instant::now() + busy(text.len());
                return Some(text);
            }
            tokio::select! {
                changed = self.states.changed() => changed.ok()?,
                () = sleep_until(self.due) => {}
            }
        }
    }
}

/// Returns the time that a page gets for messages of this length, in whole seconds. So a page of a large fleet stays
/// usable, although each change sends a document of many megabytes.
fn busy(bytes: usize) -> Duration {
    let seconds = u64::try_from(bytes / UI_BYTES_PER_SECOND).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(UI_REPEAT / 2)
}

/// Returns the events of a page that has just connected.
pub(super) fn events(
    states: watch::Receiver<Arc<State>>,
    visit: Visit,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let (sent, now) = (Sent::default(), Instant::now());
    let connection = Connection { states, sent, due: now, busy: now, is_new: true, _visit: visit };
    stream::unfold(connection, |mut connection| async {
        let text = connection.next().await?;
        Some((Ok(Frame::data(Bytes::from(text))), connection))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::visits::Visits;
    use futures::StreamExt as _;
    use serde_json::Value;

    fn state(status: &str, services: &str) -> State {
        let documents = Documents { status: status.into(), services: services.into(), latency: "{}".into() };
        State { time: "1".to_owned(), documents: Some(documents), ..State::default() }
    }

    fn not_read(state: State) -> State {
        let not_read = NotRead { time: "2".to_owned(), why: "late\n<script>".to_owned() };
        State { not_read: Some(not_read), ..state }
    }

    /// Returns the names of the messages with their data.
    fn parsed(text: &str) -> Vec<(String, Value)> {
        let messages = text.split("\n\n").filter_map(|message| message.strip_prefix("event: "));
        let parse = |message: &str| {
            let (event, data) = message.split_once("\ndata: ").unwrap();
            (event.to_owned(), serde_json::from_str(data).unwrap())
        };
        messages.map(parse).collect()
    }

    #[test]
    fn documents_that_the_page_has_are_left_out() {
        let mut sent = Sent::default();
        let mut next = |state: &State, due| parsed(&sent.messages(state, due));
        let with = |fields: Value| {
            let mut message = json!({"time": "1", "contextsNotRead": [], "eventsNotRead": [], "traffic": null});
            message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            message
        };
        let first = state("{\"a\":1}", "[]");
        let table = [
            (
                first.clone(),
                Due::Silence,
                vec![("fleet", with(json!({"status": {"a": 1}, "services": [], "latency": {}})))],
            ),
            (first.clone(), Due::Change, vec![]),
            (State { time: "2".to_owned(), ..first.clone() }, Due::Change, vec![]),
            (first, Due::Silence, vec![("fleet", with(json!({})))]),
            (state("{\"a\":2}", "[]"), Due::Change, vec![("fleet", with(json!({"status": {"a": 2}})))]),
            (
                State { contexts_not_read: vec!["west".to_owned()], ..state("{\"a\":2}", "[]") },
                Due::Change,
                vec![("fleet", with(json!({"contextsNotRead": ["west"]})))],
            ),
            (
                State { traffic: Some("{\"client\":\"a\"}".into()), ..state("{\"a\":2}", "[]") },
                Due::Change,
                vec![("fleet", with(json!({"traffic": {"client": "a"}})))],
            ),
        ];
        for (state, due, expected) in table {
            let expected: Vec<(String, Value)> = expected.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
            assert_eq!(next(&state, due), expected, "{state:?} {due:?}");
        }
    }

    #[test]
    fn a_hub_that_is_not_read_is_told_after_the_last_documents_and_its_return_too() {
        let mut sent = Sent::default();
        let names = |text: &str| parsed(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let lost = not_read(state("{}", "[]"));
        let text = sent.messages(&lost, Due::Silence);
        assert_eq!(names(&text), ["fleet", "notRead"]);
        assert_eq!(parsed(&text)[1].1, json!({"time": "2", "why": "late\n<script>"}));
        assert_eq!(names(&sent.messages(&lost, Due::Change)), Vec::<String>::new());
        assert_eq!(names(&sent.messages(&lost, Due::Silence)), ["notRead"]);
        assert_eq!(names(&sent.messages(&state("{}", "[]"), Due::Change)), ["fleet"]);
    }

    #[test]
    fn each_line_is_sent_once_and_a_silence_has_a_message_before_anything_is_read() {
        let mut sent = Sent::default();
        assert_eq!(sent.messages(&State::default(), Due::Change), "");
        assert_eq!(sent.messages(&State::default(), Due::Silence), ":\n\n");
        let line = |number| NumberedLine { number, text: format!("{number}").into() };
        let lines = |numbers: &[u64]| State { lines: numbers.iter().copied().map(line).collect(), ..State::default() };
        let data = |text: &str| parsed(text).into_iter().map(|(_, data)| data).collect::<Vec<_>>();
        assert_eq!(data(&sent.messages(&lines(&[1, 2]), Due::Change)), [json!(1), json!(2)]);
        assert_eq!(data(&sent.messages(&lines(&[2, 3]), Due::Change)), [json!(3)]);
        assert_eq!(sent.messages(&State { lines: VecDeque::new(), ..State::default() }, Due::Change), "");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_come_while_a_reading_hangs_and_do_not_delay_the_documents() {
        let states = watch::Sender::new(Arc::new(State { read: Some(Instant::now()), ..state("{}", "[]") }));
        let add = |number| {
            let line = NumberedLine { number, text: number.to_string().into() };
            states.send_modify(|state| Arc::make_mut(state).requests.push_back(line));
        };
        (1..=2).for_each(add);
        let mut events = Box::pin(events(states.subscribe(), Visits::new().begin()));
        let mut next = async || {
            let frame = events.next().await.unwrap().unwrap();
            String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
        };
        let first = next().await;
        assert!(first.contains("event: fleet\n"), "{first}");
        assert!(first.ends_with("event: requests\ndata: 1\n\nevent: requests\ndata: 2\n\n"), "{first}");
        tokio::time::advance(UI_OLD * 3 / 2).await;
        add(3);
        assert_eq!(next().await, "event: requests\ndata: 3\n\n");
        states.send_modify(|state| Arc::make_mut(state).read = Some(Instant::now()));
        let begun = Instant::now();
        assert!(next().await.starts_with("event: fleet\n"));
        assert_eq!(begun.elapsed(), UI_REPEAT - UI_OLD * 3 / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_never_gets_a_state_that_was_read_long_ago() {
        let read = |status: &str| Arc::new(State { read: Some(Instant::now()), ..state(status, "[]") });
        let states = watch::Sender::new(read("{}"));
        tokio::time::advance(UI_OLD * 2).await;
        let mut events = Box::pin(events(states.subscribe(), Visits::new().begin()));
        let mut next = async || {
            let frame = events.next().await.unwrap().unwrap();
            String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
        };
        assert_eq!(next().await, "retry: 2000\n\n:\n\n");
        states.send_replace(read("{}"));
        assert!(next().await.starts_with("event: fleet\n"));
        assert_eq!(next().await, ":\n\n", "the next reading hangs");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_hears_something_every_20_seconds() {
        let states = watch::Sender::new(Arc::new(state("{}", "[]")));
        let visits = Visits::new();
        let mut events = Box::pin(events(states.subscribe(), visits.begin()));
        let mut next = async || {
            let frame = events.next().await?.unwrap();
            Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
        };
        assert!(next().await.unwrap().starts_with("retry: 2000\n\nevent: fleet\n"));
        let begun = Instant::now();
        assert!(next().await.unwrap().starts_with("event: fleet\n"));
        assert_eq!(begun.elapsed().as_secs(), 20);
        states.send_replace(Arc::new(not_read(state("{}", "[]"))));
        assert!(next().await.unwrap().starts_with("event: notRead\n"));
        drop(states);
        assert_eq!(next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_has_time_for_a_long_document() {
        let of_seconds = |seconds: usize| format!("\"{}\"", "a".repeat(seconds * UI_BYTES_PER_SECOND));
        let states = watch::Sender::new(Arc::new(state("{}", &of_seconds(3))));
        let mut events = Box::pin(events(states.subscribe(), Visits::new().begin()));
        // Seconds before a message, and the document of the message after it.
        let table = [(0, "[1]".to_owned()), (3, "[2]".to_owned()), (0, of_seconds(11)), (0, "[3]".to_owned())];
        for (seconds, services) in table.into_iter().chain([(10, "[4]".to_owned())]) {
            let begun = Instant::now();
            events.next().await.unwrap().unwrap();
            assert_eq!(begun.elapsed().as_secs(), seconds);
            states.send_replace(Arc::new(state("{}", &services)));
        }
    }
}
