//! Fake of a scheduler and a kubelet: all pods of a cluster run at once, on one Node, without containers. So
//! controllers such as the Deployment controller work in a test as in a real cluster, and a conformance suite finds
//! running pods.

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::task::JoinHandle;

/// Name of the Node that all pods run on.
const NODE: &str = "node";

/// Running fake. The pods stay as they are when it is dropped.
#[derive(Debug)]
pub struct Pods(JoinHandle<()>);

impl Drop for Pods {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pods {
    /// Runs the pods of a cluster. Their addresses are `10.<network>.0.0/16` and `fd00:<network>::/64`.
    pub async fn run(client: Client, network: u8) -> anyhow::Result<Self> {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": NODE}}))?;
        Api::all(client.clone()).create(&PostParams::default(), &node).await.context("no Node")?;
        let mut kubelet = Kubelet { client, network, addresses: BTreeMap::new() };
        let task = async move {
            loop {
                // The server ends a watch after some minutes.
                if let Err(error) = kubelet.follow().await {
                    eprintln!("the fake of the kubelet starts again: {error:#}");
                }
            }
        };
        Ok(Self(tokio::spawn(task)))
    }
}

struct Kubelet {
    client: Client,
    network: u8,
    /// Number in the address of each pod, by UID.
    addresses: BTreeMap<String, u16>,
}

impl Kubelet {
    async fn follow(&mut self) -> anyhow::Result<()> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let mut events = pods.watch(&WatchParams::default(), "0").await?.boxed();
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => self.serve(&pod).await?,
                WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => anyhow::bail!("{error:?}"),
            }
        }
        Ok(())
    }

    /// Binds a pod to the Node, reports it as running, or completes its deletion.
    async fn serve(&mut self, pod: &Pod) -> anyhow::Result<()> {
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        if pod.metadata.deletion_timestamp.is_some() {
            return unless_gone(pods.delete(&name, &DeleteParams::default().grace_period(0)).await.map(drop));
        }
        if pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) {
            return bind(&self.client, pod, NODE).await; // the watch then shows the pod again
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase == Some("Running") {
            return Ok(());
        }
        let status = self.status(pod)?;
        let patch = Patch::Merge(json!({"status": status}));
        unless_gone(pods.patch_status(&name, &PatchParams::default(), &patch).await.map(drop))
    }

    fn status(&mut self, pod: &Pod) -> anyhow::Result<Value> {
        let next = u16::try_from(self.addresses.len())? + 1;
        let number = *self.addresses.entry(pod.uid().unwrap_or_default()).or_insert(next);
        let [high, low] = number.to_be_bytes();
        let four = format!("10.{}.{high}.{low}", self.network);
        let six = format!("fd00:{:x}::{number:x}", self.network);
        let started = pod.metadata.creation_timestamp.clone();
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": started});
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "", "ready": true, "started": true,
                "restartCount": 0, "state": {"running": {"startedAt": started}},
            })
        });
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
        Ok(json!({
            "phase": "Running",
            "podIP": four,
            "podIPs": [{"ip": four}, {"ip": six}],
            "hostIP": "192.168.0.1",
            "startTime": started,
            "conditions": conditions,
            "containerStatuses": containers.collect::<Vec<_>>(),
        }))
    }
}

/// Binds a pod to a Node, unless the pod is gone or has a Node.
pub async fn bind(client: &Client, pod: &Pod, node: &str) -> anyhow::Result<()> {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": pod.uid()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
    unless_gone(client.request::<Value>(request.body(serde_json::to_vec(&binding)?)?).await.map(drop))
}

/// Takes a missing object, or one that somebody else has changed before, as a success: the watch shows what comes next.
fn unless_gone(outcome: kube::Result<()>) -> anyhow::Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        outcome => Ok(outcome?),
    }
}
