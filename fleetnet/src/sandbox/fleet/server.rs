//! An API server of the fleet, in memory or real, and what the sandbox wants of it beside requests.

use super::memory::InMemory;
use crate::sandbox::measure::Ledger;
use crate::sandbox::real::OnProcesses;
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::client::Cluster;
use memkube::serve::Https;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

/// A server.
pub(crate) enum Server {
    /// memkube, in this process.
    Memory(InMemory),
    /// etcd and kube-apiserver, in processes of their own.
    Real(Box<OnProcesses>),
}

impl Server {
    /// A client that may do everything.
    pub(crate) fn admin(&self) -> kube::Client {
        match self {
            Self::Memory(server) => server.admin(),
            Self::Real(server) => server.admin(),
        }
    }

    /// The server as an agent reaches it: under `name`, as `user`.
    ///
    /// # Errors
    /// Where the user has no access.
    pub(crate) async fn cluster(&self, name: &str, user: &str) -> anyhow::Result<Arc<Cluster>> {
        match self {
            Self::Memory(server) => Ok(Arc::new(server.cluster(name, user))),
            Self::Real(server) => Ok(Arc::new(server.cluster(name, user).await?)),
        }
    }

    /// What agents wrote there so far.
    ///
    /// # Errors
    /// Where the server does not answer.
    pub(crate) async fn ledger(&self, cluster: &str) -> anyhow::Result<Ledger> {
        match self {
            Self::Memory(server) => Ok(server.ledger(cluster)),
            Self::Real(server) => server.ledger(cluster).await,
        }
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// Where the server refuses.
    pub(crate) async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.make_namespace(name).await,
            Self::Real(server) => server.make_namespace(name).await,
        }
    }

    /// Makes the namespace of a member in the hub, and lets its agent in.
    ///
    /// # Errors
    /// Where the server refuses.
    pub(crate) async fn admit(&self, member: &str) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.make_namespace(&member_namespace(member)).await,
            Self::Real(server) => server.admit(member).await,
        }
    }

    /// Cuts it off from everybody.
    ///
    /// # Errors
    /// Where a real server is gone.
    pub(crate) async fn cut(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.cut(true),
            Self::Real(server) => server.freeze().await?,
        }
        Ok(())
    }

    /// Makes good what [`Server::cut`] did; harmless where that was not called.
    ///
    /// # Errors
    /// Where a real server is gone.
    pub(crate) async fn mend(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory(server) => server.cut(false),
            Self::Real(server) => server.thaw().await?,
        }
        Ok(())
    }

    /// Writes a kubeconfig of a user that may do everything. A server in memory begins to listen for it.
    ///
    /// # Errors
    /// Where it cannot be written, or the server cannot be served.
    pub(crate) fn publish(
        &self,
        cluster: &str,
        listener: Option<TcpListener>,
        path: &Path,
    ) -> anyhow::Result<Option<Https>> {
        match (self, listener) {
            (Self::Memory(server), Some(listener)) => server.publish(cluster, listener, path).map(Some),
            (Self::Memory(_), None) => anyhow::bail!("a server in memory needs a port to be reached at"),
            (Self::Real(server), _) => server.publish(path).map(|()| None),
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// Where its processes stay.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Real(server) => server.end().await,
        }
    }
}
