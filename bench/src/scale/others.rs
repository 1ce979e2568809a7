//! The other members: what their agents write to the hub. Each renews its heartbeat, and marks each slice that it has imported.

use super::content::{cluster_id, hub_collection, imported, renewal};
use crate::bare::Bare;
use crate::limits::{HEARTBEAT_INTERVAL, IN_FLIGHT_PER_CLUSTER, WATCH_SECONDS};
use fleetnet_api::names::GROUP;
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::clock::Clock;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::interval;

/// Running tasks of the other members.
pub struct Others {
    heartbeats: JoinHandle<anyhow::Result<()>>,
    imports: JoinHandle<anyhow::Result<()>>,
}

impl Others {
    /// Starts the heartbeats and imports of all members but member 0.
    pub fn start(hub: &Arc<Bare>, clock: &Clock, members: u32) -> Self {
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
            imports: tokio::spawn(mark_imports(importing)),
        }
    }

    /// Stops the heartbeats of the other members.
    ///
    /// # Errors
    /// If a write of the other members has failed.
    pub async fn pause_heartbeats(&mut self) -> anyhow::Result<()> {
        self.heartbeats.abort();
        for task in [&mut self.heartbeats, &mut self.imports] {
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
    }
}

/// Renews the heartbeat of one member.
pub async fn renew(hub: &Bare, clock: &Clock, member: u32) -> anyhow::Result<()> {
    let path = format!("{}/{}", hub_collection("memberagents", member), cluster_id(member));
    hub.patch(&path, &renewal(clock)).await.map(drop)
}

/// Adds the finalizer of an importer to each copy that the hub agent creates for another member than member 0.
async fn mark_imports(hub: Arc<Bare>) -> anyhow::Result<()> {
    let path = format!("/apis/{GROUP}/v1alpha1/endpointsliceimports");
    let request = format!("{path}?watch=true&timeoutSeconds={WATCH_SECONDS}");
    let stream = hub.watches().request_stream(http::Request::get(request).body(Vec::new())?).await?;
    let lines = Box::pin(stream).lines().map_err(anyhow::Error::from);
    let created = lines.try_filter_map(|line| std::future::ready(created_for_others(&line)));
    let marked = created.map_ok(|path| {
        let hub = Arc::clone(&hub);
        async move { hub.patch(&path, &imported()).await.map(drop) }
    });
    marked.try_buffer_unordered(IN_FLIGHT_PER_CLUSTER).try_collect().await
}

/// Returns the path of the copy that a line of a watch shows as new. `None` for other lines, and for copies for member 0.
fn created_for_others(line: &str) -> anyhow::Result<Option<String>> {
    if !line.starts_with(r#"{"type":"ADDED""#) {
        return Ok(None);
    }
    let event: Value = serde_json::from_str(line)?;
    let metadata = &event["object"]["metadata"];
    let [namespace, name] = ["namespace", "name"].map(|field| metadata[field].as_str().unwrap_or_default());
    if namespace == &*member_namespace(&cluster_id(0)) {
        return Ok(None);
    }
    Ok(Some(format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/endpointsliceimports/{name}")))
}
