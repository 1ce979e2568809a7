//! Cluster for the comparison, with Nodes, Services and pods as plain objects. The bench writes pod statuses in place
//! of kubelets.

use super::contender::Contender;
use super::seen::Seen;
use crate::bare::Bare;
use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use harness::control_plane::{ControlPlane, Options};
use serde_json::{Value, json};
use std::ops::Range;
use tokio::time::Instant;

/// Namespace of the cluster's Services and pods.
const NAMESPACE: &str = "work";
/// Number of Nodes that pods are spread over.
const NODES: usize = 10;
/// Number of objects created in parallel.
const AT_ONCE: usize = 16;
/// Number of pod addresses with the same first three octets. The last octet is from 1 to 250.
const ADDRESSES: usize = 250;

/// Control plane with Services and pods. Only the compared controller (`contender`) creates slices in it.
pub struct Cluster {
    /// EndpointSlice controller that runs in this cluster.
    pub contender: Contender,
    pub control_plane: ControlPlane,
    /// Slices that a watch of the bench has shown.
    pub seen: Seen,
    user: Bare,
}

/// Times of one change of a pod's status.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Time at which the bench sent the patch.
    pub requested: Instant,
    /// Time at which the response of the server arrived.
    pub made: Instant,
}

/// Pod of the comparison, identified by numbers.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pod {
    /// Number of the pod's Service.
    pub service: usize,
    /// Number among the pods of its Service.
    pub index: usize,
    /// Number among all pods, which determines the pod's address.
    pub number: usize,
}

impl Pod {
    #[must_use]
    pub fn address(self) -> String {
        format!("10.1.{}.{}", self.number / ADDRESSES, 1 + self.number % ADDRESSES)
    }

    fn name(self) -> String {
        format!("{}-{:03}", service_name(self.service), self.index)
    }

    fn object(self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name(), "labels": {"app": service_name(self.service)}},
            "spec": {"nodeName": format!("node-{}", self.number % NODES), "containers": [{"name": "app", "image": "app"}]},
        })
    }

    fn status(self, is_ready: bool, at: &str) -> Value {
        let status = if is_ready { "True" } else { "False" };
        json!({"status": {
            "phase": "Running",
            "podIP": self.address(),
            "podIPs": [{"ip": self.address()}],
            "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": at}],
        }})
    }
}

fn service_name(number: usize) -> String {
    format!("app-{number:04}")
}

/// Value of `lastTransitionTime` in the conditions of pods. Controllers copy this time to an annotation of a slice. Its
/// value has no influence on the measurement.
const TRANSITION: &str = "2026-01-01T00:00:00Z";

impl Cluster {
    /// Starts a control plane and creates its Nodes.
    pub async fn start(contender: Contender) -> anyhow::Result<Self> {
        let name = format!("cluster of {contender:?}").to_lowercase();
        let control_plane = ControlPlane::start(Options { name, ..Options::default() }).await?;
        contender.admit(&control_plane).await?;
        control_plane.create_namespace(NAMESPACE).await?;
        let kubeconfig = control_plane.admin_kubeconfig()?;
        let cluster =
            fleetnet_runtime::client::Cluster::discover(control_plane.name(), Some(&kubeconfig), "bench").await?;
        let user = Bare::new(cluster);
        for node in 0..NODES {
            let zone = format!("zone-{}", node % 3);
            let body = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("node-{node}"), "labels": {"topology.kubernetes.io/zone": zone}},
            });
            user.create("/api/v1/nodes", &body).await?;
        }
        let seen =
            Seen::start(&user, &format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")).await?;
        Ok(Self { contender, control_plane, seen, user })
    }

    /// Creates these Services, each with ready pods.
    pub async fn populate(&self, services: Range<usize>, pods_each: usize) -> anyhow::Result<()> {
        let pods = services.clone().flat_map(|service| pods_of(service, pods_each));
        stream::iter(pods)
            .map(|pod| async move {
                self.user.create(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), &pod.object()).await?;
                self.set_ready(pod, true).await.map(drop)
            })
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await?;
        for service in services {
            let name = service_name(service);
            let body = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
            });
            self.user.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &body).await?;
        }
        Ok(())
    }

    /// Changes a pod's status to ready or unready. Returns the change with its time.
    pub async fn set_ready(&self, pod: Pod, is_ready: bool) -> anyhow::Result<Change> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}/status", pod.name());
        let requested = Instant::now();
        self.user.patch(&path, &pod.status(is_ready, TRANSITION)).await.context("a pod's status")?;
        Ok(Change { requested, made: Instant::now() })
    }

    /// Returns the number of writes to EndpointSlices by any user since `mark`, which is a position in the audit log.
    pub async fn slice_writes_since(&self, mark: harness::audit::Mark) -> anyhow::Result<usize> {
        let ledger = self.control_plane.audit().since(mark).await?;
        Ok(ledger.filter(|entry| entry.resource == "endpointslices").count())
    }
}

pub fn pods_of(service: usize, pods_each: usize) -> impl Iterator<Item = Pod> {
    (0..pods_each).map(move |index| Pod { service, index, number: service * pods_each + index })
}
