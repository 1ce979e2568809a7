//! Scheduler of a cluster: binds each pod to the node with the fewest pods.

use crate::follow::{Change, follow};
use crate::limits::RETRY;
use harness::pods::bind;
use k8s_openapi::api::core::v1::Pod;
use kube::api::WatchParams;
use kube::{Api, Client, ResourceExt as _};
use std::collections::BTreeMap;
use tokio::task::JoinHandle;

/// Running scheduler. It ends when this value is dropped.
#[derive(Debug)]
pub struct Scheduler(JoinHandle<()>);

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Scheduler {
    /// Starts the scheduler of a cluster with these nodes.
    #[must_use]
    pub fn start(client: Client, nodes: Vec<String>) -> Self {
        Self(tokio::spawn(async move {
            let pods: Api<Pod> = Api::all(client.clone());
            // Node of each pod, by UID.
            let mut placed: BTreeMap<String, String> = BTreeMap::new();
            let see = |change| match change {
                Change::Gone(uid) => drop(placed.remove(&uid)),
                Change::Applied(pod) => place(&client, &nodes, &mut placed, pod),
            };
            match follow(&pods, &WatchParams::default(), see).await {}
        }))
    }
}

/// Binds a pod that has no node yet.
fn place(client: &Client, nodes: &[String], placed: &mut BTreeMap<String, String>, pod: Box<Pod>) {
    let uid = pod.uid().unwrap_or_default();
    if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
        placed.insert(uid, node);
    } else if !placed.contains_key(&uid) && pod.metadata.deletion_timestamp.is_none() {
        let pods_on = |node: &String| placed.values().filter(|other| *other == node).count();
        let Some(node) = selected(&pod, nodes).min_by_key(|node| pods_on(node)).cloned() else { return };
        placed.insert(uid, node.clone());
        let client = client.clone();
        tokio::spawn(async move {
            while let Err(error) = bind(&client, &pod, &node).await {
                eprintln!("{} cannot be bound to {node}: {error:#}", pod.name_any());
                tokio::time::sleep(RETRY).await;
            }
        });
    }
}

/// Returns the nodes that the pod may run on. A pod selects a node by its name only.
fn selected<'a>(pod: &'a Pod, nodes: &'a [String]) -> impl Iterator<Item = &'a String> {
    let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    let wanted = selector.and_then(|selector| selector.get("kubernetes.io/hostname"));
    nodes.iter().filter(move |node| wanted.is_none_or(|wanted| wanted == *node))
}
