//! Events of a watch in a test, one JSON document on each line.

use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use std::time::Duration;

/// Open watch, with the bytes that have arrived and are not decoded yet.
pub(super) struct Events {
    body: Body,
    read: Vec<u8>,
}

/// Result of reading events from a watch.
#[derive(Default)]
pub(super) struct Taken {
    /// Events in order. If the read ended too early, the last entry contains the reason.
    pub(super) events: Vec<Value>,
    /// Lines of the events as the server sent them.
    pub(super) raw: Vec<u8>,
    /// True if all requested events have arrived.
    pub(super) whole: bool,
}

/// Event, and its line as the server sent it.
type RawEvent = (Value, Vec<u8>);

impl Events {
    pub(super) fn new(body: Body) -> Self {
        Self { body, read: Vec::new() }
    }

    /// Reads events until the server ends the watch. If the connection breaks, the last entry is the error.
    pub(super) async fn rest(&mut self, patience: Duration) -> Taken {
        let mut taken = Taken::default();
        loop {
            match self.next_in(patience).await {
                Ok(Some(line)) => taken.add(line),
                Ok(None) => return Taken { whole: true, ..taken },
                Err(why) => return taken.cut_short(&why),
            }
        }
    }

    /// Reads this many events. Returns fewer if no event arrives for the time `patience`.
    pub(super) async fn take(&mut self, count: usize, patience: Duration) -> Taken {
        let mut taken = Taken::default();
        while taken.events.len() < count {
            match self.next_in(patience).await {
                Ok(Some(line)) => taken.add(line),
                Ok(None) => return taken.cut_short("the watch ended"),
                Err(why) => return taken.cut_short(&why),
            }
        }
        Taken { whole: true, ..taken }
    }

    /// Reads events up to the first event about the object with this name. Skips bookmarks after the initial events: a
    /// server may send one more at any time.
    pub(super) async fn until(&mut self, name: &str, patience: Duration) -> Taken {
        let mut taken = Taken::default();
        loop {
            match self.next_in(patience).await {
                Ok(Some((event, _))) if is_later_bookmark(&event) => {}
                Ok(Some(line)) => {
                    let is_last = line.0["object"]["metadata"]["name"] == name;
                    taken.add(line);
                    if is_last {
                        return Taken { whole: true, ..taken };
                    }
                }
                Ok(None) => return taken.cut_short("the watch ended"),
                Err(why) => return taken.cut_short(&why),
            }
        }
    }

    /// Returns the next event, `None` at the end of the watch, or the reason why no event arrived.
    async fn next_in(&mut self, patience: Duration) -> Result<Option<RawEvent>, String> {
        match tokio::time::timeout(patience, self.next()).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no more came in time".to_owned()),
        }
    }

    async fn next(&mut self) -> anyhow::Result<Option<RawEvent>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some((serde_json::from_slice(&line)?, line)));
            }
            let Some(frame) = self.body.frame().await else {
                // Return the bytes that remain: a response that is not a watch, such as an error, may end without a
                // line end.
                let rest = std::mem::take(&mut self.read);
                return if rest.is_empty() { Ok(None) } else { Ok(Some((serde_json::from_slice(&rest)?, rest))) };
            };
            let frame = frame.map_err(|error| anyhow::anyhow!("the watch broke: {error}"))?;
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}

/// True for a bookmark that does not end the initial events of a streamed list.
fn is_later_bookmark(event: &Value) -> bool {
    let ends_list = &event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
    event["type"] == "BOOKMARK" && ends_list.is_null()
}

impl Taken {
    fn add(&mut self, (event, line): RawEvent) {
        self.events.push(event);
        self.raw.extend(line);
    }

    fn cut_short(mut self, why: &str) -> Self {
        self.events.push(json!({"cut short": why}));
        self
    }
}
