//! Routes of a Service: the ready endpoints in its slices after each event, as kube-proxy sees them.

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

/// Addresses of endpoints with their ports, such as `10.1.0.1:8080`.
type Addresses = BTreeSet<String>;

/// Watch of a Service's slices that has seen every event since its start.
#[derive(Debug)]
pub struct Routes {
    /// Routes after each event, oldest first. The channel closes if the watch fails.
    seen: watch::Receiver<Vec<Addresses>>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Routes {
    /// Watches the routes (ready endpoints) of a Service from now on.
    #[must_use]
    pub fn watch(client: &Client, namespace: &str, service: &str) -> Self {
        let (see, seen) = watch::channel(Vec::new());
        let api = Api::namespaced(client.clone(), namespace);
        let task = tokio::spawn(follow(api, format!("kubernetes.io/service-name={service}"), see));
        Self { seen, task }
    }

    /// Waits until the Service's slices have exactly these addresses.
    ///
    /// # Errors
    /// If the addresses differ until the deadline, or the watch has ended and may have missed events.
    pub async fn are(&mut self, addresses: &[&str]) -> anyhow::Result<()> {
        self.are_within(EVENTUALLY, addresses).await
    }

    /// Waits as [`Self::are`] does, with another time limit.
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

    /// Checks that the Service had at least one ready address at every moment since the watch began.
    ///
    /// # Errors
    /// If there was a moment without a ready address, if the watch has seen no event, or if the watch has ended.
    pub fn never_empty(&self) -> anyhow::Result<()> {
        let seen = self.complete()?;
        let moment = seen.iter().position(BTreeSet::is_empty);
        ensure!(moment.is_none(), "nowhere to go after event {moment:?} of {seen:?}");
        Ok(())
    }

    /// Checks that the Service had these ready addresses at every moment since the watch began.
    pub fn always_had(&self, addresses: &[&str]) -> anyhow::Result<()> {
        let seen = self.complete()?;
        let moment = seen.iter().position(|current| addresses.iter().any(|address| !current.contains(*address)));
        ensure!(moment.is_none(), "not all of {addresses:?} after event {moment:?} of {seen:?}");
        Ok(())
    }

    /// Checks that every watch event has changed the routes.
    pub fn no_repeated_event(&self) -> anyhow::Result<()> {
        let seen = self.complete()?;
        let moment = seen.windows(2).position(|pair| pair[0] == pair[1]);
        ensure!(moment.is_none(), "event {moment:?} of {} and the next are the same", seen.len());
        Ok(())
    }

    /// Returns the number of watch events so far.
    pub fn events(&self) -> anyhow::Result<usize> {
        Ok(self.complete()?.len())
    }

    /// Returns the history of the routes: one entry for each event. Fails if the watch has ended, or has not yet
    /// delivered all initial objects.
    fn complete(&self) -> anyhow::Result<watch::Ref<'_, Vec<Addresses>>> {
        let seen = self.seen.borrow();
        ensure!(!seen.is_empty(), "nothing was seen");
        ensure!(!self.task.is_finished(), "the watch has ended after {:?}", *seen);
        Ok(seen)
    }
}

async fn follow(api: Api<EndpointSlice>, labels: String, see: watch::Sender<Vec<Addresses>>) -> anyhow::Result<()> {
    let parameters = WatchParams::default().labels(&labels);
    let mut events = api.watch(&parameters.clone().initial_events(), "").await?.boxed();
    let (mut current, mut complete, mut version) = (BTreeMap::new(), false, String::new());
    loop {
        // A server ends each watch after some time. The next watch starts at the same version, so that no event is
        // missed.
        let Some(event) = events.next().await else {
            events = api.watch(&parameters, &version).await?.boxed();
            continue;
        };
        let newest = match event? {
            WatchEvent::Added(slice) | WatchEvent::Modified(slice) => {
                current.insert(slice.metadata.name.clone(), addresses(&slice));
                slice.metadata.resource_version
            }
            WatchEvent::Deleted(slice) => {
                current.remove(&slice.metadata.name);
                slice.metadata.resource_version
            }
            // The first bookmark ends the initial objects. Later bookmarks do not change the routes.
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
            see.send_modify(|seen| seen.push(current.values().flatten().cloned().collect()));
        }
    }
}

/// Returns the ready addresses of a slice.
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

#[cfg(test)]
mod tests {
    use super::Routes;
    use futures::StreamExt as _;
    use http::Response;
    use http_body_util::StreamBody;
    use hyper::body::{Bytes, Frame};
    use kube::Client;
    use serde_json::{Value, json};
    use std::convert::Infallible;

    fn slice(version: &str, address: &str) -> Value {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "app-1", "namespace": "work", "resourceVersion": version},
            "endpoints": [{"addresses": [address]}], "ports": [{"port": 80}],
        })
    }

    fn bookmark(version: &str) -> Value {
        json!({
            "type": "BOOKMARK", "object": {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}},
        })
    }

    /// Returns a client for a simulated server whose watches deliver these events and then stay open.
    fn server(events: Vec<Value>) -> Client {
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let lines = events.clone().into_iter().map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n")))));
            let frames = futures::stream::iter(lines).chain(futures::stream::pending());
            async {
                Ok::<_, Infallible>(Response::new(StreamBody::new(frames.map(|frame: Result<_, Infallible>| frame))))
            }
        });
        Client::new(service, "work")
    }

    #[tokio::test]
    async fn checks_of_every_moment_fail_after_the_watch_has_ended() {
        let mut events = vec![
            json!({"type": "ADDED", "object": slice("1", "10.0.0.1")}),
            bookmark("2"),
            json!({"type": "MODIFIED", "object": slice("3", "10.0.0.2")}),
        ];
        let mut routes = Routes::watch(&server(events.clone()), "work", "app");
        routes.are(&["10.0.0.2:80"]).await.unwrap();
        routes.never_empty().unwrap();
        routes.no_repeated_event().unwrap();
        assert_eq!(routes.events().unwrap(), 2);
        assert!(routes.always_had(&["10.0.0.2:80"]).is_err(), "it led to another at first");

        events.push(json!({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410, "message": "",
        }}));
        let mut routes = Routes::watch(&server(events), "work", "app");
        let ended = routes.are(&["10.0.0.9:80"]).await.unwrap_err().to_string();
        assert!(ended.starts_with("the watch has ended after "), "{ended}");
        // The watch's task ends just after its channel closes, so wait for the task.
        while !routes.task.is_finished() {
            tokio::task::yield_now().await;
        }
        for outcome in
            [routes.never_empty(), routes.always_had(&[]), routes.no_repeated_event(), routes.events().map(drop)]
        {
            let ended = outcome.unwrap_err().to_string();
            assert!(ended.starts_with("the watch has ended after "), "{ended}");
        }
    }
}
