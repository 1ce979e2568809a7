//! Stand-in for the controllers of Deployments, the scheduler and the kubelet of a member. No container runs: a pod is
//! an object with an address that nobody answers at.
//!
//! ```text
//! watches of Deployments, ReplicaSets and Pods ──> Cluster ──> plan (pure) ──> actions ──> API server
//!                                                     ^                           │
//!                                                     └──── answers to writes ────┘
//! ```
//!
//! - A Deployment has a ReplicaSet for each template, and replaces pods step by step.
//! - A pod gets the member's only Node, an address, and the condition Ready.
//! - The annotation [`place::READY`] and the readiness gates of a pod decide if it is ready.
//! - A pod that is deleted stays terminating for [`act::TERMINATION`].

mod act;
mod action;
mod cluster;
mod deployment;
mod place;
mod plan;
mod pod;
mod replica_set;
mod status;

use place::{Place, host};

use crate::limits::{OBSERVATION_QUEUE, WATCH_SECONDS};
use act::{AGAIN, Actor};
use cluster::{Cluster, Kind, Seen};
use fleetnet_runtime::clock::{Clock, to_jiff};
use futures::StreamExt as _;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Api, Client};
use serde_json::json;
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Address of the API server in the slice of `default/kubernetes`. A loopback address would be rejected, so this is an
/// address for documentation (RFC 5737).
const API_SERVER: &str = "192.0.2.1";
/// Annotation of the bookmark after the initial objects of a watch.
const INITIAL_END: &str = "k8s.io/initial-events-end";
/// Maximum number of plans after one observation. A rollout needs a few. If a server never stores what the stand-in
/// writes, this limit ends the repetition.
const ROUNDS: usize = 100;

/// Running stand-in of one member. It ends when this value is dropped.
pub(crate) struct Workloads(JoinSet<()>);

impl std::fmt::Debug for Workloads {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} tasks", self.0.len())
    }
}

impl Workloads {
    /// Creates the Node of a member, and starts the stand-in. `index` is the index of the member.
    pub(crate) async fn start(client: Client, cluster: &str, index: usize) -> anyhow::Result<Self> {
        let place = Place { number: u8::try_from(index + 1)?, node: format!("{cluster}-node") };
        make_node(&client, &place).await?;
        let (sender, seen) = mpsc::channel(OBSERVATION_QUEUE);
        let mut tasks = JoinSet::new();
        for kind in Kind::ALL {
            tasks.spawn(follow(client.clone(), kind, sender.clone()));
        }
        tasks.spawn(run(Actor::new(client), place, seen));
        Ok(Self(tasks))
    }
}

/// Creates `default/kubernetes`, the Service of the API server. Real API servers create it themselves.
pub(crate) async fn make_kubernetes_service(client: &Client) -> anyhow::Result<()> {
    let port = json!({"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"});
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"ports": [port]},
    });
    let services: Api<k8s_openapi::api::core::v1::Service> = Api::namespaced(client.clone(), "default");
    services.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
    Ok(())
}

/// Creates the EndpointSlice of `default/kubernetes`. The real API servers of the sandbox listen at loopback addresses,
/// so they create none either.
pub(crate) async fn make_kubernetes_slice(client: &Client) -> anyhow::Result<()> {
    let slice = json!({
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        "endpoints": [{"addresses": [API_SERVER], "conditions": {"ready": true}}],
    });
    let slices: Api<k8s_openapi::api::discovery::v1::EndpointSlice> = Api::namespaced(client.clone(), "default");
    slices.create(&PostParams::default(), &serde_json::from_value(slice)?).await?;
    Ok(())
}

async fn make_node(client: &Client, place: &Place) -> anyhow::Result<()> {
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let Place { number, node } = place;
    let made = json!({
        "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node}},
        "spec": {"podCIDR": format!("10.244.{number}.0/24")},
    });
    nodes.create(&PostParams::default(), &serde_json::from_value(made)?).await?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady"});
    let address = json!({"type": "InternalIP", "address": host(*number)});
    let status = json!({"status": {"conditions": [ready], "addresses": [address]}});
    nodes.patch_status(node, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// Plans and acts after each observation, until this future is dropped.
async fn run(mut actor: Actor, place: Place, mut seen: mpsc::Receiver<Seen>) {
    let clock = Clock::system();
    let mut cluster = Cluster::default();
    let mut listed = BTreeSet::new();
    while let Some(first) = seen.recv().await {
        let mut next = Some(first);
        while let Some(observation) = next {
            if let Seen::Listed(kind, _) = &observation {
                listed.insert(*kind);
            }
            cluster.see(observation);
            next = seen.try_recv().ok();
        }
        // Each kind must be known: a pod whose ReplicaSet is not known yet is not an orphan.
        if listed.len() < Kind::ALL.len() {
            continue;
        }
        // The answers to writes can require more writes.
        for _ in 0..ROUNDS {
            let actions = plan::plan(&mut cluster, &place, to_jiff(clock.now()));
            if !actor.perform(actions, &mut cluster).await {
                break;
            }
        }
    }
}

/// Watches all objects of a kind until this future is dropped. Restarts a broken watch.
async fn follow(client: Client, kind: Kind, sender: mpsc::Sender<Seen>) {
    let objects: Api<DynamicObject> = Api::all_with(client, &kind.resource());
    let all = WatchParams::default().initial_events().timeout(WATCH_SECONDS);
    loop {
        let mut initial = Some(BTreeSet::new());
        if let Ok(events) = objects.watch(&all, "").await {
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                let Some(seen) = seen(kind, event, &mut initial) else { continue };
                if sender.send(seen).await.is_err() {
                    return;
                }
            }
        }
        sleep(AGAIN).await;
    }
}

/// Translates an event of a watch. `initial` has the objects so far until the bookmark that ends the initial list.
fn seen(
    kind: Kind,
    event: WatchEvent<DynamicObject>,
    initial: &mut Option<BTreeSet<(String, String)>>,
) -> Option<Seen> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            let object = serde_json::to_value(object).ok()?;
            if let Some(initial) = initial {
                initial.insert(cluster::key(&object));
            }
            Some(Seen::Present(kind, object))
        }
        WatchEvent::Deleted(object) => Some(Seen::Gone(kind, serde_json::to_value(object).ok()?)),
        WatchEvent::Bookmark(bookmark) if bookmark.metadata.annotations.contains_key(INITIAL_END) => {
            initial.take().map(|keys| Seen::Listed(kind, keys))
        }
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    }
}

#[cfg(test)]
#[path = "workloads/tests.rs"]
mod tests;
