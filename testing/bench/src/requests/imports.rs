//! Addresses that the importer has, with times: [`Imports`].

use crate::limits::REQUESTS_CHECK;
use anyhow::Context as _;
use futures::StreamExt as _;
use harness::eventually::Deadline;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use kube::{Api, Client};
use packets::clock;
use packets::kubelet::Times;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// First time of each ready address in the slices of a cluster, in microseconds since 1970.
type Seen = BTreeMap<String, i64>;

/// Watch of the slices of a cluster. It ends when this value is dropped.
pub struct Imports {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Imports {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Imports {
    pub(super) fn watch(client: Client) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let task = tokio::spawn(follow(Api::all(client), Arc::clone(&seen)));
        Self { seen, task }
    }

    /// Waits until the importer has had all ready pods of the exporter. Returns the time from `since` until the first
    /// of those that became ready after it, in microseconds. `None` if no pod became ready after `since`.
    pub(super) async fn complete(&self, pods: &Times, since: i64) -> anyhow::Result<Option<i64>> {
        let deadline = Deadline::start();
        let lives = pods.values().filter(|pod| pod.ready.is_some() && pod.deleted.is_none());
        let lives: Vec<String> = lives.map(|pod| pod.address.to_string()).collect();
        loop {
            let seen = self.seen.lock().clone();
            let missing: Vec<&String> = lives.iter().filter(|address| !seen.contains_key(*address)).collect();
            if missing.is_empty() {
                let later = pods.values().filter(|pod| pod.ready.is_some_and(|ready| ready > since));
                return Ok(later.filter_map(|pod| seen.get(&pod.address.to_string())).map(|time| time - since).min());
            }
            deadline.check().with_context(|| format!("the importer has never had {missing:?}"))?;
            tokio::time::sleep(REQUESTS_CHECK).await;
        }
    }
}

/// Follows the slices, again and again.
async fn follow(slices: Api<EndpointSlice>, seen: Arc<Mutex<Seen>>) {
    loop {
        if let Ok(events) = slices.watch(&WatchParams::default().initial_events(), "").await {
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(slice) | WatchEvent::Modified(slice) = event {
                    see(&slice, &mut seen.lock());
                }
            }
        }
        tokio::time::sleep(REQUESTS_CHECK).await;
    }
}

fn see(slice: &EndpointSlice, seen: &mut Seen) {
    let is_ready = |ready: Option<bool>| ready.unwrap_or(true);
    let ready = slice.endpoints.iter().flatten().filter(|it| is_ready(it.conditions.as_ref().and_then(|it| it.ready)));
    for address in ready.flat_map(|endpoint| &endpoint.addresses) {
        seen.entry(address.clone()).or_insert_with(|| clock::now().as_microsecond());
    }
}
