//! API server of one cluster, in memory or real, with the operations that the sandbox needs.

use super::memory::InMemory;
use crate::sandbox::measure::Ledger;
use crate::sandbox::real::OnProcesses;
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::io::client::Cluster;
use memkube::serve::Https;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

/// API server of one cluster.
pub(crate) enum Server {
    /// memkube in this process.
    Memory(InMemory),
    /// etcd and kube-apiserver in separate processes.
    Real(Box<OnProcesses>),
}

impl Server {
    /// Returns a client with all rights.
    pub(crate) fn admin(&self) -> kube::Client {
        match self {
            Self::Memory(server) => server.admin(),
            Self::Real(server) => server.admin(),
        }
    }

    /// Returns a client with all rights, for reading. Unlike that of [`Server::admin`], its connection is interrupted
    /// by [`Server::cut`].
    pub(crate) fn kubectl(&self) -> kube::Client {
        match self {
            Self::Memory(server) => server.kubectl(),
            // The whole process is stopped, so no user reaches it.
            Self::Real(server) => server.admin(),
        }
    }

    /// Returns a connection of an agent to this cluster. `name` is the role of the cluster (hub or member), and `user`
    /// is the user of the agent.
    pub(crate) async fn cluster(&self, name: &str, user: &str) -> anyhow::Result<Arc<Cluster>> {
        match self {
            Self::Memory(server) => Ok(Arc::new(server.cluster(name, user))),
            Self::Real(server) => Ok(Arc::new(server.cluster(name, user).await?)),
        }
    }

    /// Returns the numbers of the agents' writes to this server so far.
    pub(crate) async fn ledger(&self, cluster: &str) -> anyhow::Result<Ledger> {
        match self {
            Self::Memory(server) => Ok(server.ledger(cluster)),
            Self::Real(server) => server.ledger(cluster).await,
        }
    }

    pub(crate) async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.make_namespace(name).await,
            Self::Real(server) => server.make_namespace(name).await,
        }
    }

    /// Creates a member namespace in the hub, and grants the member's agent the rights to use it.
    pub(crate) async fn admit(&self, member: &str) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.admit(&member_namespace(member)).await,
            Self::Real(server) => server.admit(member).await,
        }
    }

    /// Installs the definitions of the standard API in a member, and grants the member's agent the rights to use them.
    pub(crate) async fn admit_mcs_api(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.admit_mcs_api().await,
            Self::Real(server) => server.admit_mcs_api().await,
        }
    }

    /// Adds what a member needs for Deployments and pods, except their controllers, and `default/kubernetes` with its
    /// slice.
    pub(crate) async fn add_workloads(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.add_workloads().await,
            Self::Real(server) => server.add_workloads().await,
        }
    }

    /// Interrupts all connections to this server.
    pub(crate) async fn cut(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.cut(true),
            Self::Real(server) => server.freeze().await?,
        }
        Ok(())
    }

    /// Ends the interruption by [`Server::cut`], if there is one.
    pub(crate) async fn mend(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.cut(false),
            Self::Real(server) => server.thaw().await?,
        }
        Ok(())
    }

    /// Writes a kubeconfig for a user with all rights. A server in memory also starts to listen on `listener`.
    pub(crate) async fn publish(
        &self,
        cluster: &str,
        listener: Option<TcpListener>,
        path: &Path,
    ) -> anyhow::Result<Option<Https>> {
        match (self, listener) {
            (Self::Memory(server), Some(listener)) => server.publish(cluster, listener, path).map(Some),
            (Self::Memory(_), None) => anyhow::bail!("a server in memory needs a port to be reached at"),
            (Self::Real(server), _) => server.publish(cluster, path).await.map(|()| None),
        }
    }

    /// Stops the server. Fails if a process of a real server does not end in time.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Real(server) => server.end().await,
        }
    }
}
