//! Watch that does not decode objects. It records the times at which resourceVersions and markers arrive. A marker is
//! an address that identifies a state of a slice.

use crate::bare::{Bare, resource_version};
use crate::limits::WATCH_SECONDS;
use crate::objects::marker_in;
use anyhow::Context as _;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Watch of one collection.
pub struct Follow {
    path: String,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    ended: bool,
    position: u64,
    markers: BTreeMap<u32, Vec<Instant>>,
    awaited_versions: BTreeMap<u64, Vec<oneshot::Sender<Instant>>>,
    awaited_markers: BTreeMap<u32, Vec<oneshot::Sender<Instant>>>,
}

impl Follow {
    /// Starts to watch the collection at `path`. Objects that are there already are not recorded.
    pub async fn start(bare: &Bare, path: &str) -> anyhow::Result<Self> {
        let list = bare.get(&format!("{path}?limit=1")).await?;
        let position = list["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        let position: u64 = position.with_context(|| format!("no resourceVersion at {path}"))?;
        let request = format!("{path}?watch=true&resourceVersion={position}&timeoutSeconds={WATCH_SECONDS}");
        let stream = bare.watches().request_stream(http::Request::get(request).body(Vec::new())?).await;
        let mut lines = Box::pin(stream.with_context(|| path.to_owned())?).lines();
        let seen = Arc::new(Mutex::new(Seen { position, ..Seen::default() }));
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.try_next().await {
                noted.lock().take(&line);
            }
            noted.lock().end();
        });
        Ok(Self { path: path.to_owned(), seen, task })
    }

    /// Waits until the watch shows this resourceVersion or a later one, of any object. Fails if the watch ends.
    pub async fn version(&self, version: u64) -> anyhow::Result<Instant> {
        let receiver = {
            let mut seen = self.seen.lock();
            if seen.position >= version {
                return Ok(Instant::now());
            }
            let (sender, receiver) = oneshot::channel();
            if !seen.ended {
                seen.awaited_versions.entry(version).or_default().push(sender);
            }
            receiver
        };
        receiver.await.with_context(|| format!("the watch of {} has ended", self.path))
    }

    /// Waits until the watch shows an object with this marker (an address that identifies a state of a slice). Returns
    /// the time. Fails if the watch ends.
    pub async fn marker(&self, marker: u32) -> anyhow::Result<Instant> {
        let receiver = {
            let mut seen = self.seen.lock();
            if let Some(at) = seen.markers.get(&marker).and_then(|times| times.first()) {
                return Ok(*at);
            }
            let (sender, receiver) = oneshot::channel();
            if !seen.ended {
                seen.awaited_markers.entry(marker).or_default().push(sender);
            }
            receiver
        };
        receiver.await.with_context(|| format!("the watch of {} has ended", self.path))
    }

    /// Returns the times at which objects with this marker arrived, in their order. Fails if the watch has ended.
    pub fn times(&self, marker: u32) -> anyhow::Result<Vec<Instant>> {
        let seen = self.seen.lock();
        anyhow::ensure!(!seen.ended, "the watch of {} has ended", self.path);
        Ok(seen.markers.get(&marker).cloned().unwrap_or_default())
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    fn take(&mut self, line: &str) {
        let now = Instant::now();
        if let Some(version) = resource_version(line) {
            self.position = self.position.max(version);
            let later = self.awaited_versions.split_off(&(self.position + 1));
            for sender in std::mem::replace(&mut self.awaited_versions, later).into_values().flatten() {
                let _ = sender.send(now);
            }
        }
        if let Some(marker) = marker_in(line) {
            self.markers.entry(marker).or_default().push(now);
            for sender in self.awaited_markers.remove(&marker).into_iter().flatten() {
                let _ = sender.send(now);
            }
        }
    }

    /// Drops the senders of all waits, so that these waits fail. Called when the watch has ended.
    fn end(&mut self) {
        self.ended = true;
        self.awaited_versions.clear();
        self.awaited_markers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_wait_for_a_version_ends_with_a_later_one() {
        let mut seen = Seen::default();
        let (sender, receiver) = oneshot::channel();
        let (later, mut not_yet) = oneshot::channel();
        seen.awaited_versions.entry(5).or_default().push(sender);
        seen.awaited_versions.entry(8).or_default().push(later);
        seen.take(r#"{"metadata":{"resourceVersion":"7"}}"#);
        receiver.await.expect("notified");
        assert!(not_yet.try_recv().is_err());
    }

    #[tokio::test]
    async fn each_time_of_a_marker_is_recorded() {
        let mut seen = Seen::default();
        seen.take(r#"{"addresses":["11.0.1.2"]}"#);
        let first = seen.markers[&258].clone();
        seen.take(r#"{"addresses":["11.0.1.2"]}"#);
        assert_eq!((seen.markers[&258].len(), seen.markers[&258][0]), (2, first[0]));
    }
}
