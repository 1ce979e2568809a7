//! Watch that records the time at which each copy of a slice arrives, by the marker of its state.

use crate::bare::{Bare, resource_version};
use crate::limits::WATCH_SECONDS;
use crate::objects::marker_in;
use anyhow::Context as _;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Watch of one collection, from its start on.
pub struct Arrivals {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    ended: bool,
    times: BTreeMap<u32, Vec<Instant>>,
}

impl Arrivals {
    /// Starts to watch the collection at `path`. Objects that are there already are not recorded.
    pub async fn start(bare: &Bare, path: &str) -> anyhow::Result<Self> {
        let list = bare.get(&format!("{path}?limit=1")).await?.to_string();
        let version = resource_version(&list).with_context(|| format!("no resourceVersion at {path}"))?;
        let request = format!("{path}?watch=true&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}");
        let stream = bare.watches().request_stream(http::Request::get(request).body(Vec::new())?).await;
        let mut lines = Box::pin(stream.with_context(|| path.to_owned())?).lines();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.try_next().await {
                if let Some(marker) = marker_in(&line) {
                    noted.lock().times.entry(marker).or_default().push(Instant::now());
                }
            }
            noted.lock().ended = true;
        });
        Ok(Self { seen, task })
    }

    /// Returns the times at which copies with this marker arrived, in their order.
    pub fn of(&self, marker: u32) -> anyhow::Result<Vec<Instant>> {
        let seen = self.seen.lock();
        anyhow::ensure!(!seen.ended, "a watch of the bench has ended");
        Ok(seen.times.get(&marker).cloned().unwrap_or_default())
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.task.abort();
    }
}
