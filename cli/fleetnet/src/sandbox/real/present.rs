//! Servers for `--real`: control planes of the end-to-end test harness.

use crate::sandbox::kubeconfigs::{self, KUBECTL};
use crate::sandbox::measure::{Ledger, Written};
use crate::sandbox::workloads;
use fleetnet_api::crds;
use fleetnet_runtime::io::client::Cluster;
use futures::future::{try_join, try_join_all};
use harness::audit::Mark;
use harness::control_plane::{ADMIN, ControlPlane};
use harness::fleet;
use memkube::serve::kubeconfig;
use std::path::Path;

/// User agent of the sandbox's requests. It distinguishes these requests from the requests of the fleet's agents.
const USER_AGENT: &str = concat!("fleetnet-sandbox/", env!("CARGO_PKG_VERSION"));

/// etcd and kube-apiserver of one cluster, in separate processes.
pub(crate) struct OnProcesses {
    control_plane: ControlPlane,
    /// Position in the audit log before the agents' first write.
    begin: Mark,
}

/// Starts control planes for a hub and for members with these names, in parallel.
pub(crate) async fn start(members: &[String]) -> anyhow::Result<(OnProcesses, Vec<OnProcesses>)> {
    let hub = async {
        let hub = Box::pin(fleet::start_hub()).await?;
        fleet::remove_deployment(&hub, "hub-agent").await?;
        fleet::manifests::apply(&hub, fleet::manifests::SLICE_STREAM).await?;
        OnProcesses::of(hub).await
    };
    let member = async |index| {
        let member = Box::pin(fleet::start_member(index)).await?;
        fleet::remove_deployment(&member, "member-agent").await?;
        OnProcesses::of(member).await
    };
    try_join(hub, try_join_all((0..members.len()).map(member))).await
}

impl OnProcesses {
    async fn of(control_plane: ControlPlane) -> anyhow::Result<Self> {
        let begin = control_plane.audit().mark().await?;
        Ok(Self { control_plane, begin })
    }

    pub(crate) fn admin(&self) -> kube::Client {
        self.control_plane.admin()
    }

    pub(crate) async fn cluster(&self, name: &str, user: &str) -> anyhow::Result<Cluster> {
        let config = self.control_plane.access(user).await?.config().await?;
        Ok(Cluster::from_config(name, config, USER_AGENT)?)
    }

    pub(crate) async fn ledger(&self, cluster: &str) -> anyhow::Result<Ledger> {
        let mut ledger = Ledger::default();
        for entry in self.control_plane.audit().since(self.begin).await?.0 {
            if entry.status < 300 {
                let (cluster, user) = (cluster.to_owned(), entry.user);
                ledger.add(Written { cluster, user, verb: entry.verb, resource: entry.resource }, 1);
            }
        }
        Ok(ledger)
    }

    pub(crate) async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        self.control_plane.create_namespace(name).await
    }

    pub(crate) async fn admit(&self, member: &str) -> anyhow::Result<()> {
        fleet::admit(&self.control_plane, member).await
    }

    pub(crate) async fn admit_mcs_api(&self) -> anyhow::Result<()> {
        let definitions: Vec<String> = crds::mcs().iter().map(crds::yaml).collect();
        self.control_plane.apply_definitions(&definitions).await?;
        fleet::manifests::apply(&self.control_plane, fleet::manifests::MCS_API).await
    }

    /// Grants the member's agent the rights to make EndpointSlices, and creates the slice of `default/kubernetes`. The
    /// server has the Service and all kinds already.
    pub(crate) async fn add_workloads(&self) -> anyhow::Result<()> {
        fleet::manifests::apply(&self.control_plane, fleet::manifests::ENDPOINT_SLICES).await?;
        workloads::make_kubernetes_slice(&self.admin()).await
    }

    pub(crate) async fn freeze(&self) -> anyhow::Result<()> {
        self.control_plane.freeze().await
    }

    pub(crate) async fn thaw(&self) -> anyhow::Result<()> {
        self.control_plane.thaw().await
    }

    pub(crate) async fn publish(&self, cluster: &str, path: &Path) -> anyhow::Result<()> {
        let access = self.control_plane.access(ADMIN).await?;
        let text = kubeconfig::text(cluster, &access.server_url, &access.authority_pem, KUBECTL, &access.token);
        kubeconfigs::write(path, &text)
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.control_plane.end().await
    }
}
