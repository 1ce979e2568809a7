//! Where a Service's packets would go: the ready endpoints of its slices, at every event of these, as kube-proxy
//! sees them.

use crate::limits::EVENTUALLY;
use crate::watchdog;
use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Addresses with their ports, `10.1.0.1:8080`.
type Addresses = BTreeSet<String>;

/// A watch that has seen every event since it began.
#[derive(Debug)]
pub struct Routes {
    /// After each event, oldest first. Closed where the watch ends before its time.
    seen: watch::Receiver<Vec<Addresses>>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Routes {
    /// From now on, of a Service of that name.
    #[must_use]
    pub fn watch(client: &Client, namespace: &str, service: &str) -> Self {
        let (see, seen) = watch::channel(Vec::new());
        let api = Api::namespaced(client.clone(), namespace);
        let task = tokio::spawn(follow(api, format!("kubernetes.io/service-name={service}"), see));
        Self { seen, task }
    }

    /// Waits until the slices hold exactly these.
    ///
    /// # Errors
    /// If that does not come, or the watch has ended and may have missed something.
    pub async fn are(&mut self, addresses: &[&str]) -> anyhow::Result<()> {
        self.are_within(EVENTUALLY, addresses).await
    }

    /// The same with a time of its own.
    #[allow(clippy::missing_errors_doc)]
    pub async fn are_within(&mut self, limit: Duration, addresses: &[&str]) -> anyhow::Result<()> {
        let expected: Addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        let arrived = async { self.seen.wait_for(|seen| seen.last() == Some(&expected)).await.is_ok() };
        watchdog::waits_for(|| format!("routes to {addresses:?}"));
        match tokio::time::timeout(limit, arrived).await {
            Ok(true) => Ok(()),
            Ok(false) => bail!("the watch has ended after {:?}", *self.seen.borrow()),
            Err(_) => bail!("waited {limit:?} for routes to {expected:?}, after {:?}", *self.seen.borrow()),
        }
    }

    /// That there was somewhere to go at every moment since the watch began.
    ///
    /// # Errors
    /// Where there was not, or nothing was seen.
    pub fn never_led_nowhere(&self) -> anyhow::Result<()> {
        let seen = self.seen.borrow();
        ensure!(!seen.is_empty(), "nothing was seen");
        let moment = seen.iter().position(BTreeSet::is_empty);
        ensure!(moment.is_none(), "nowhere to go after event {moment:?} of {seen:?}");
        Ok(())
    }

    /// That these were among the addresses at every moment since the watch began.
    ///
    /// # Errors
    /// Where one was not, or nothing was seen.
    pub fn always_led_to(&self, addresses: &[&str]) -> anyhow::Result<()> {
        let seen = self.seen.borrow();
        ensure!(!seen.is_empty(), "nothing was seen");
        let moment = seen.iter().position(|held| addresses.iter().any(|address| !held.contains(*address)));
        ensure!(moment.is_none(), "not all of {addresses:?} after event {moment:?} of {seen:?}");
        Ok(())
    }

    /// That every event since the watch began has changed what is routed: none was for nothing.
    ///
    /// # Errors
    /// Where one has not, or nothing was seen.
    pub fn never_said_the_same_again(&self) -> anyhow::Result<()> {
        let seen = self.seen.borrow();
        ensure!(!seen.is_empty(), "nothing was seen");
        let moment = seen.windows(2).position(|pair| pair[0] == pair[1]);
        ensure!(moment.is_none(), "event {moment:?} of {} and the next are the same", seen.len());
        Ok(())
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> usize {
        self.seen.borrow().len()
    }
}

async fn follow(api: Api<EndpointSlice>, labels: String, see: watch::Sender<Vec<Addresses>>) -> anyhow::Result<()> {
    let parameters = WatchParams::default().labels(&labels);
    let mut events = api.watch(&parameters.clone().initial_events(), "").await?.boxed();
    let (mut held, mut complete, mut version) = (BTreeMap::new(), false, String::new());
    loop {
        // A server ends each watch some time. The next begins where it ended, so that nothing is missed.
        let Some(event) = events.next().await else {
            events = api.watch(&parameters, &version).await?.boxed();
            continue;
        };
        let newest = match event? {
            WatchEvent::Added(slice) | WatchEvent::Modified(slice) => {
                held.insert(slice.metadata.name.clone(), addresses(&slice));
                slice.metadata.resource_version
            }
            WatchEvent::Deleted(slice) => {
                held.remove(&slice.metadata.name);
                slice.metadata.resource_version
            }
            // The first one ends what was there when the watch began. Others tell nothing of slices.
            WatchEvent::Bookmark(bookmark) => {
                if std::mem::replace(&mut complete, true) {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                Some(bookmark.metadata.resource_version)
            }
            WatchEvent::Error(status) => bail!("{status:?}"),
        };
        version = newest.context("what a watch tells has a version")?;
        if complete {
            see.send_modify(|seen| seen.push(held.values().flatten().cloned().collect()));
        }
    }
}

/// The ready endpoints of a slice.
fn addresses(slice: &EndpointSlice) -> Vec<String> {
    let is_ready = |endpoint: &&k8s_openapi::api::discovery::v1::Endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    };
    let endpoints = slice.endpoints.iter().flatten().filter(is_ready);
    let ports: Vec<i32> = slice.ports.iter().flatten().filter_map(|port| port.port).collect();
    endpoints
        .flat_map(|endpoint| &endpoint.addresses)
        .flat_map(|address| ports.iter().map(move |port| format!("{address}:{port}")))
        .collect()
}
