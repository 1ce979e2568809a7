//! The other members: what their agents write to the hub. Each renews its heartbeat, and marks each slice that it has
//! imported. By the standard API, each also requests the slices of the Services that it imports.

use super::content::{cluster_id, hub_collection, imported, merged_import, renewal, requested};
use super::scenario::{Api, Scenario};
use crate::bare::Bare;
use crate::limits::{HEARTBEAT_INTERVAL, IN_FLIGHT_PER_CLUSTER, WATCH_SECONDS};
use fleetnet_api::names::GROUP;
use fleetnet_runtime::clock::Clock;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::interval;

/// Running tasks of the other members.
pub struct Others {
    heartbeats: JoinHandle<anyhow::Result<()>>,
    imports: JoinHandle<anyhow::Result<()>>,
    /// Requests by the standard API.
    requests: JoinHandle<anyhow::Result<()>>,
}

impl Others {
    /// Starts the heartbeats and imports of all members but member 0.
    pub fn start(hub: &Arc<Bare>, clock: &Clock, scenario: &Scenario) -> Self {
        let (members, wanted, requesting) = (scenario.members, wanted(scenario), Arc::clone(hub));
        let (beating, importing, clock) = (Arc::clone(hub), Arc::clone(hub), clock.clone());
        Self {
            heartbeats: tokio::spawn(async move {
                let mut ticks = interval(HEARTBEAT_INTERVAL / members);
                for member in (1..members).cycle() {
                    ticks.tick().await;
                    renew(&beating, &clock, member).await?;
                }
                Ok(())
            }),
            imports: tokio::spawn(mark(importing, "endpointsliceimports", imported(), |path| {
                !path.starts_with(&hub_collection("endpointsliceimports", 0))
            })),
            requests: tokio::spawn(mark(requesting, "mergedserviceimports", requested(), move |path| {
                wanted.contains(path)
            })),
        }
    }

    /// Stops the heartbeats of the other members.
    ///
    /// # Errors
    /// If a write of the other members has failed.
    pub async fn pause_heartbeats(&mut self) -> anyhow::Result<()> {
        self.heartbeats.abort();
        for task in [&mut self.heartbeats, &mut self.imports, &mut self.requests] {
            if task.is_finished() {
                match task.await {
                    Ok(ended) => ended?,
                    Err(error) => anyhow::ensure!(error.is_cancelled(), "a task of the other members panicked"),
                }
            }
        }
        Ok(())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.heartbeats.abort();
        self.imports.abort();
        self.requests.abort();
    }
}

/// Returns the paths of the MergedServiceImports that the other members request.
fn wanted(scenario: &Scenario) -> BTreeSet<String> {
    let services = if scenario.api == Api::Mcs { scenario.services } else { 0 };
    let of_service = |service: u32| {
        let importers = scenario.importers(service).filter(|member| *member != 0);
        importers.map(move |member| merged_import(scenario.exported(service), member))
    };
    (0..services).flat_map(of_service).collect()
}

/// Renews the heartbeat of one member.
pub async fn renew(hub: &Bare, clock: &Clock, member: u32) -> anyhow::Result<()> {
    let path = format!("{}/{}", hub_collection("memberagents", member), cluster_id(member));
    hub.patch(&path, &renewal(clock)).await.map(drop)
}

/// Patches each new object of a kind whose path is meant.
async fn mark(
    hub: Arc<Bare>,
    plural: &'static str,
    patch: Value,
    is_meant: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let request = format!("/apis/{GROUP}/v1alpha1/{plural}?watch=true&timeoutSeconds={WATCH_SECONDS}");
    let stream = hub.watches().request_stream(http::Request::get(request).body(Vec::new())?).await?;
    let lines = Box::pin(stream).lines().map_err(anyhow::Error::from);
    let created = lines.try_filter_map(|line| {
        let path = created(&line, plural).map(|path| path.filter(|path| is_meant(path)));
        std::future::ready(path)
    });
    let marked = created.map_ok(|path| {
        let (hub, patch) = (Arc::clone(&hub), &patch);
        async move { hub.patch(&path, patch).await.map(drop) }
    });
    marked.try_buffer_unordered(IN_FLIGHT_PER_CLUSTER).try_collect().await
}

/// Returns the path of the object that a line of a watch shows as new; `None` for other lines.
fn created(line: &str, plural: &str) -> anyhow::Result<Option<String>> {
    if !line.starts_with(r#"{"type":"ADDED""#) {
        return Ok(None);
    }
    let event: Value = serde_json::from_str(line)?;
    let metadata = &event["object"]["metadata"];
    let [namespace, name] = ["namespace", "name"].map(|field| metadata[field].as_str().unwrap_or_default());
    Ok(Some(format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/{plural}/{name}")))
}
