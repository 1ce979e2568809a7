//! Kubelet without containers: [`Kubelet`].
//!
//! A pod is a network namespace, and a container is a process in it, as process 1 of a PID namespace. So signals work
//! as in a container. Images have no content: the images `serve` and `client` stand for commands of the program
//! `packets`, and all other containers run their command with the programs of the machine.
//!
//! These parts of a kubelet are missing: volumes, service account tokens, init containers, startup probes, postStart
//! hooks, resources, Events, hostNetwork, and variables from other objects.

mod container;
mod hook;
mod node;
mod place;
mod pod;
mod probe;
mod process;
mod state;
mod status;

use node::Node;
pub use node::{PodTimes, Settings, Times};

use crate::follow::{Change, follow};
use crate::inside_namespace::Inside;
use k8s_openapi::api::core::v1::Pod;
use kube::api::WatchParams;
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use pod::Seen;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Running kubelet of one node. Its pods are killed when this value is dropped, and their objects stay as they are.
#[derive(Debug)]
pub struct Kubelet {
    times: Arc<Mutex<Times>>,
    _thread: Inside,
}

impl Kubelet {
    /// Starts the kubelet of a node whose network exists.
    pub fn start(settings: Settings) -> anyhow::Result<Self> {
        let namespace = settings.network.namespace();
        let times: Arc<Mutex<Times>> = Arc::default();
        let written = Arc::clone(&times);
        let work = async move || {
            let client = settings.access.client().await?;
            run(Arc::new(Node { settings, client, numbers: Mutex::default(), times: written })).await;
            Ok(())
        };
        Ok(Self { times, _thread: Inside::start(&namespace, work)? })
    }

    /// Returns the times of all pods so far, also of pods that are gone.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times.lock().clone()
    }
}

/// Runs the pods of a node.
async fn run(node: Arc<Node>) {
    let selection = WatchParams::default().fields(&format!("spec.nodeName={}", node.settings.node));
    let mut known: BTreeMap<String, watch::Sender<Seen>> = BTreeMap::new();
    let see = |change| match change {
        Change::Gone(uid) => {
            if let Some(sender) = known.remove(&uid) {
                sender.send_replace(Seen::Gone);
            }
        }
        Change::Applied(pod) => {
            let (uid, pod) = (pod.uid().unwrap_or_default(), Arc::new(*pod));
            if let Some(sender) = known.get(&uid) {
                sender.send_replace(Seen::Present(pod));
            } else if !has_ended(&pod) {
                let (sender, seen) = watch::channel(Seen::Present(Arc::clone(&pod)));
                known.insert(uid, sender);
                tokio::spawn(pod::run(Arc::clone(&node), pod, seen));
            }
        }
    };
    match follow(&Api::all(node.client.clone()), &selection, see).await {}
}

/// True if the pod has ended under an earlier kubelet and is not being deleted.
fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed")) && pod.metadata.deletion_timestamp.is_none()
}
