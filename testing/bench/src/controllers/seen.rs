//! Watch of EndpointSlices. Records which addresses are ready, and the time at which an expected state is reached.

use crate::bare::Bare;
use crate::limits::{CHANGE, WATCH_SECONDS};
use anyhow::{Context as _, ensure};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Slices that a watch has shown so far, and the state that the bench waits for.
pub struct Seen {
    shown: Arc<Mutex<Shown>>,
    task: JoinHandle<()>,
}

/// Expected address, and a flag: true if the address must be ready, false if it must be unready.
pub type Wanted = (String, bool);

#[derive(Default)]
struct Shown {
    /// Addresses of each slice, by the slice's name. The value is true for a ready address.
    slices: BTreeMap<String, HashMap<String, bool>>,
    waiting: Option<(Vec<Wanted>, oneshot::Sender<Instant>)>,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: Slice,
}

#[derive(Deserialize)]
struct Slice {
    metadata: Metadata,
    #[serde(default)]
    endpoints: Option<Vec<Endpoint>>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Endpoint {
    addresses: Vec<String>,
    #[serde(default)]
    conditions: Conditions,
}

#[derive(Default, Deserialize)]
struct Conditions {
    ready: Option<bool>,
}

impl Seen {
    /// Starts a watch of the slices at `path`.
    pub async fn start(bare: &Bare, path: &str) -> anyhow::Result<Self> {
        let request = format!("{path}?watch=true&timeoutSeconds={WATCH_SECONDS}");
        let stream = bare.watches().request_stream(http::Request::get(request).body(Vec::new())?).await;
        let mut lines = Box::pin(stream.with_context(|| path.to_owned())?).lines();
        let shown = Arc::new(Mutex::new(Shown::default()));
        let noted = Arc::clone(&shown);
        let task = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.try_next().await {
                noted.lock().take(&line, Instant::now());
            }
            // The watch has ended, so the expected state cannot arrive. Drop the sender, so that the waiting receiver
            // fails.
            noted.lock().waiting = None;
        });
        Ok(Self { shown, task })
    }

    /// Sets the expected state. Call this before the change that leads to this state. Only one expected state can be
    /// set at a time.
    #[must_use]
    pub fn expect(&self, wanted: Vec<Wanted>) -> Expected {
        let (sender, receiver) = oneshot::channel();
        let mut shown = self.shown.lock();
        shown.waiting = Some((wanted, sender));
        shown.notify(Instant::now());
        Expected { receiver }
    }
}

/// Handle to wait until the watch shows an expected state.
pub struct Expected {
    receiver: oneshot::Receiver<Instant>,
}

impl Expected {
    /// Waits until the watch shows the expected state, and returns the time. Fails after the time limit [`CHANGE`].
    pub async fn shown(self) -> anyhow::Result<Instant> {
        self.shown_within(CHANGE).await
    }

    /// Waits until the watch shows the expected state, at most for this time.
    pub async fn shown_within(self, limit: Duration) -> anyhow::Result<Instant> {
        let shown = timeout(limit, self.receiver).await;
        ensure!(shown.is_ok(), "what was to be published is not shown within {limit:?}");
        shown?.context("the watch of slices has ended")
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shown {
    fn take(&mut self, line: &str, at: Instant) {
        let Ok(Event { r#type, object }) = serde_json::from_str(line) else { return };
        if r#type == "DELETED" {
            self.slices.remove(&object.metadata.name);
        } else {
            let endpoints = object.endpoints.unwrap_or_default().into_iter();
            let states = endpoints.flat_map(|endpoint| {
                let is_ready = endpoint.conditions.ready.unwrap_or(true);
                endpoint.addresses.into_iter().map(move |address| (address, is_ready))
            });
            self.slices.insert(object.metadata.name, states.collect());
        }
        self.notify(at);
    }

    fn notify(&mut self, at: Instant) {
        let is_so = |(address, is_ready): &Wanted| {
            let mut states = self.slices.values().filter_map(|slice| slice.get(address)).peekable();
            states.peek().is_some() && states.all(|state| state == is_ready)
        };
        if self.waiting.as_ref().is_some_and(|(wanted, _)| wanted.iter().all(is_so))
            && let Some((_, sender)) = self.waiting.take()
        {
            // Sending fails if nobody waits any more, because the time limit has passed.
            let _ = sender.send(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, slice: &str, address: &str, ready: bool) -> String {
        format!(
            r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{slice}"}},
                "endpoints":[{{"addresses":["{address}"],"conditions":{{"ready":{ready}}}}}]}}}}"#
        )
    }

    #[test]
    fn an_expected_state_is_reported_once_no_slice_contradicts_it() {
        let mut shown = Shown::default();
        let (sender, mut received) = oneshot::channel();
        shown.waiting = Some((vec![("10.0.0.1".to_owned(), false)], sender));
        let now = Instant::now();
        shown.take(&line("ADDED", "a", "10.0.0.1", true), now);
        shown.take(&line("ADDED", "b", "10.0.0.1", false), now);
        assert!(received.try_recv().is_err(), "one of two still shows it as ready");
        shown.take(&line("DELETED", "a", "10.0.0.1", true), now);
        assert_eq!(received.try_recv(), Ok(now));
    }
}
