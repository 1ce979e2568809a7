//! Pod, as its containers see it.

use super::node::{Node, PodTimes};
use super::state::Status;
use crate::network;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Container as ContainerSpec, Pod};
use kube::ResourceExt as _;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Pod, as its containers see it.
pub(super) struct Place {
    pub(super) node: Arc<Node>,
    pub(super) pod: Arc<Pod>,
    /// Number of the pod's addresses.
    pub(super) number: u16,
    /// Folder of the pod's files.
    pub(super) folder: PathBuf,
    /// States of the containers, in the order of the pod's containers.
    pub(super) statuses: watch::Sender<Vec<Status>>,
}

impl Place {
    pub(super) fn address(&self) -> Ipv4Addr {
        self.node.settings.network.pod_address(self.number)
    }

    pub(super) fn namespace(&self) -> String {
        self.node.settings.network.pod_namespace(self.number)
    }

    pub(super) fn containers(&self) -> &[ContainerSpec] {
        self.pod.spec.as_ref().map_or(&[], |spec| &spec.containers)
    }

    /// Changes the times of the pod.
    pub(super) fn record(&self, change: impl FnOnce(&mut PodTimes)) {
        let none = PodTimes { address: self.address(), ready: None, deleted: None };
        change(self.node.times.lock().entry(self.pod.name_any()).or_insert(none));
    }

    /// Returns `namespace/name` of the pod, for messages.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.pod.namespace().unwrap_or_default(), self.pod.name_any())
    }

    /// Returns the file with the resolver settings of the pod. `None` if the pod uses those of the machine.
    pub(super) fn resolver(&self) -> Option<PathBuf> {
        let policy = self.pod.spec.as_ref().and_then(|spec| spec.dns_policy.as_deref());
        (policy != Some("Default")).then(|| self.folder.join("resolv.conf"))
    }

    /// Makes the network and the files of the pod.
    pub(super) async fn make(&self) -> anyhow::Result<()> {
        network::make_pod(self.node.settings.network, self.number).await?;
        fs::create_dir_all(&self.folder)?;
        // An earlier pod may have had the same name.
        let _ = fs::remove_file(self.link());
        symlink(&self.folder, self.link())?;
        let Some(file) = self.resolver() else { return Ok(()) };
        let namespace = self.pod.namespace().unwrap_or_default();
        let search = format!("{namespace}.svc.cluster.local svc.cluster.local cluster.local");
        fs::write(&file, format!("search {search}\nnameserver {}\noptions ndots:5\n", network::DNS))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Returns the folder of the pod, as kubelet-streams finds it.
    fn link(&self) -> PathBuf {
        self.node.settings.folder.join(self.name().replace('/', "_"))
    }

    /// Removes the network of the pod. The logs stay.
    pub(super) async fn remove(&self) {
        if fs::read_link(self.link()).is_ok_and(|folder| folder == self.folder) {
            // Nobody else removes it.
            let _ = fs::remove_file(self.link());
        }
        if let Err(error) = network::remove_pod(self.node.settings.network, self.number).await {
            eprintln!("the network of {} stays: {error:#}", self.name());
        }
        self.node.numbers.lock().taken.remove(&self.number);
    }
}
