//! Node of a member: its Node object, kubelet and kube-proxy.

use crate::clock;
use crate::http;
use crate::kubelet::{self, Kubelet, Times};
use crate::limits::ANSWER;
use crate::network::{NodeNetwork, member_ranges};
use crate::shell::process_in;
use anyhow::{Context as _, ensure};
use harness::binaries;
use harness::control_plane::ControlPlane;
use harness::eventually::Deadline;
use harness::process::{Process, Spec};
use k8s_openapi::api::core::v1::Node as Object;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use programs::control_plane::{Program, locate};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Port of kube-proxy for its health.
const HEALTH: u16 = 10256;
/// Port of the kubelet for `exec` and `logs`.
const STREAMS: u16 = 10250;

/// Way in which kube-proxy programs the kernel.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ProxyMode {
    #[default]
    Nftables,
    Iptables,
}

impl ProxyMode {
    fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
        }
    }
}

/// Running node.
#[derive(Debug)]
pub struct Node {
    pub name: String,
    pub network: NodeNetwork,
    proxy: Option<Process>,
    kubelet: Kubelet,
    _streams: Process,
}

impl Node {
    /// Starts a node whose network exists, and waits until its kube-proxy has read the Services.
    pub(crate) async fn start(
        control_plane: &ControlPlane,
        network: NodeNetwork,
        mode: ProxyMode,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let name = network.namespace();
        // kube-proxy waits for a Node with an address, and reads the zone from it.
        register(control_plane, network, &name).await?;
        let settings = kubelet::Settings {
            access: control_plane.access(harness::control_plane::ADMIN).await?,
            network,
            node: name.clone(),
            folder: folder.join(&name),
            images: binaries::find("packets").await?,
        };
        let kubelet = Kubelet::start(settings)?;
        let streams = start_streams(network, &folder.join(&name)).await?;
        let proxy = start_proxy(control_plane, network, mode, folder).await?;
        let node = Self { name, network, proxy: Some(proxy), kubelet, _streams: streams };
        node.proxy_is_ready().await?;
        Ok(node)
    }

    /// Returns the last lines of the log of kube-proxy.
    #[must_use]
    pub fn tail(&self) -> String {
        self.proxy.as_ref().map(|proxy| proxy.log().tail()).unwrap_or_default()
    }

    /// Returns the times of all pods that the node has had.
    #[must_use]
    pub fn pod_times(&self) -> Times {
        self.kubelet.times()
    }

    /// Ends kube-proxy. Its rules stay as they are.
    pub async fn stop_proxy(&mut self) -> anyhow::Result<()> {
        self.proxy.take().context("kube-proxy runs")?.end().await
    }

    async fn proxy_is_ready(&self) -> anyhow::Result<()> {
        let deadline = Deadline::start();
        loop {
            let answer = http::call("GET", (self.network.address(), HEALTH).into(), "/healthz", ANSWER).await;
            let outcome = answer.and_then(|(status, body)| {
                ensure!(status == 200, "{status} {body}");
                Ok(())
            });
            let Err(error) = outcome else { return Ok(()) };
            deadline.pause(|| format!("kube-proxy of {}: {error:#}\n{}", self.name, self.tail())).await?;
        }
    }
}

async fn register(control_plane: &ControlPlane, network: NodeNetwork, name: &str) -> anyhow::Result<()> {
    let nodes: Api<Object> = Api::all(control_plane.admin());
    let [range, _] = network.pod_ranges();
    let object = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": format!("zone-{}", network.node),
        }},
        "spec": {"podCIDR": range, "podCIDRs": network.pod_ranges()},
    }));
    nodes.create(&PostParams::default(), &object?).await.with_context(|| format!("no Node {name}"))?;
    let now = clock::seconds();
    let room = json!({"cpu": "64", "memory": "64Gi", "pods": "1000"});
    let status = json!({
        "addresses": [
            {"type": "InternalIP", "address": network.address()}, {"type": "InternalIP", "address": network.address6()},
            {"type": "Hostname", "address": name},
        ],
        "capacity": room, "allocatable": room,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": STREAMS}},
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
    });
    let patch = Patch::Merge(json!({"status": status}));
    nodes.patch_status(name, &PatchParams::default(), &patch).await.map(drop).map_err(Into::into)
}

async fn start_proxy(
    control_plane: &ControlPlane,
    network: NodeNetwork,
    mode: ProxyMode,
    folder: &Path,
) -> anyhow::Result<Process> {
    let name = network.namespace();
    let configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": mode.name(), "hostnameOverride": name,
        "clientConnection": {"kubeconfig": control_plane.admin_kubeconfig()?},
        // Pods of other members are no part of this range. Packets to them are routed, without NAT.
        "detectLocalMode": "ClusterCIDR", "clusterCIDR": member_ranges(network.range),
        "healthzBindAddress": format!("0.0.0.0:{HEALTH}"), "metricsBindAddress": "127.0.0.1:10249",
        // With zeros, kube-proxy writes no settings of conntrack, which a network namespace does not have.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    });
    let file = folder.join(format!("kube-proxy-{name}.json"));
    fs::write(&file, configuration.to_string())?;
    let arguments = ["--config".into(), file.into_os_string(), "--v=2".into()];
    start_inside(network, Program::Proxy, arguments, folder).await
}

/// Starts the part of the kubelet that answers `kubectl exec` and `kubectl logs`.
async fn start_streams(network: NodeNetwork, folder: &Path) -> anyhow::Result<Process> {
    let address = format!("--address={}:{STREAMS}", network.address());
    let arguments = [address.into(), "--folder".into(), folder.as_os_str().to_owned()];
    start_inside(network, Program::KubeletStreams, arguments, folder).await
}

/// Starts a program in the network namespace of a node.
async fn start_inside(
    network: NodeNetwork,
    program: Program,
    more: impl IntoIterator<Item = OsString>,
    home: &Path,
) -> anyhow::Result<Process> {
    let node = network.namespace();
    let invocation = locate(program)?;
    let arguments = invocation.first_argument.map(OsString::from).into_iter().chain(more).collect();
    let name = format!("{} of {node}", program.name());
    let environment = vec![("HOME".to_owned(), home.as_os_str().to_owned())];
    Process::start(Spec { environment, ..process_in(&node, name, invocation.file, arguments) }).await
}
