//! Node, as its pods see it.

use crate::network::NodeNetwork;
use harness::kubeconfig::Access;
use kube::Client;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of a kubelet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Access to the API server of the kubelet's cluster.
    pub access: Access,
    pub network: NodeNetwork,
    /// Name of the kubelet's Node.
    pub node: String,
    /// Folder for the logs of containers and the resolver settings of pods.
    pub folder: PathBuf,
    /// Program that the images `serve` and `client` stand for.
    pub images: PathBuf,
}

/// Times of pods, by the names of the pods.
pub type Times = BTreeMap<String, PodTimes>;

/// Times of a pod, in microseconds since 1970. Times in objects of Kubernetes have whole seconds only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PodTimes {
    pub address: Ipv4Addr,
    /// First time at which the kubelet wrote the condition Ready with the status True.
    pub ready: Option<i64>,
    /// Time at which the kubelet saw the time of deletion.
    pub deleted: Option<i64>,
}

/// Node, as its pods see it.
pub(super) struct Node {
    pub(super) settings: Settings,
    pub(super) client: Client,
    pub(super) numbers: Mutex<Numbers>,
    pub(super) times: Arc<Mutex<Times>>,
}

/// Numbers of the pods' addresses.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) taken: BTreeSet<u16>,
    pub(super) last: u16,
}

impl Numbers {
    /// Takes the next free number for the addresses of a pod.
    pub(super) fn take(&mut self) -> u16 {
        loop {
            self.last = NodeNetwork::next(self.last);
            if self.taken.insert(self.last) {
                return self.last;
            }
        }
    }
}
