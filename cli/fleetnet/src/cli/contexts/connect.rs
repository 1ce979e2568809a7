//! Connections to the clusters of contexts.

use super::Contexts;
use super::failure::Failure;
use diagnosis::agents::{Agent, AgentNamespace};
use http::Uri;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::{Client, Config};
use std::future::Future;
use std::time::Duration;

/// User agent of the commands. API servers write it into `metadata.managedFields`.
const USER_AGENT: &str = concat!("fleetnet/", env!("CARGO_PKG_VERSION"));

/// Returns a client as the agents use it, so that the commands reach a cluster through the same proxies.
///
/// # Errors
/// If the credentials, the certificates or the proxy of the configuration are not usable.
pub(crate) fn client(context: &str, config: &Config, limit: Duration) -> Result<Client, Failure> {
    fleetnet_runtime::io::client::Cluster::with_timeout(context, config.clone(), USER_AGENT, limit)
        .map(|cluster| cluster.requests)
        .map_err(|error| Failure::of_settings(&error))
}

/// Cluster that answered.
#[derive(Clone)]
pub(crate) struct Cluster {
    /// Context that leads to the cluster.
    pub(crate) context: String,
    /// Namespace of the agent for which the commands look in the cluster.
    pub(crate) agent_namespace: AgentNamespace,
    pub(crate) client: Client,
    /// Settings of the connection.
    pub(crate) config: Config,
    /// Kubernetes version of the API server. Empty before it is asked.
    pub(crate) version: String,
    pub(crate) request_timeout: Duration,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Prepares the connection to the cluster of a context, in which the commands look for this agent. Sends no
    /// request.
    ///
    /// # Errors
    /// If the context does not exist, or its kubeconfig is not usable.
    pub(crate) async fn open(
        contexts: &Contexts,
        context: &str,
        agent: Agent,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let config = contexts.config(context).await.map_err(|failure| failure.at(context, None))?;
        let client = client(context, &config, limit).map_err(|it| it.at(context, Some(&config.cluster_url)))?;
        let (context, agent_namespace) = (context.to_owned(), contexts.agents.of(agent).clone());
        Ok(Self { context, agent_namespace, client, config, version: String::new(), request_timeout: limit })
    }

    /// Connects to the cluster of a context, and asks for its version, so that later failures are not those of the
    /// connection.
    ///
    /// # Errors
    /// As [`Cluster::open`], or if the cluster does not answer within the time limit or refuses the credentials.
    pub(crate) async fn connect(
        contexts: &Contexts,
        context: &str,
        agent: Agent,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let mut cluster = Self::open(contexts, context, agent, limit).await?;
        let Info { git_version, .. } = cluster.ask(cluster.client.apiserver_version()).await?;
        cluster.version = git_version;
        Ok(cluster)
    }

    /// URL of the API server.
    pub(crate) fn url(&self) -> &Uri {
        &self.config.cluster_url
    }

    /// Waits for an answer, at most for the time limit of a request.
    ///
    /// # Errors
    /// As the request, or if it has no answer in time. The failure names this cluster.
    pub(crate) async fn ask<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        within(self.request_timeout, request).await.map_err(|failure| failure.at(&self.context, Some(self.url())))
    }

    /// As [`Cluster::ask`], but returns `None` if the object or the kind does not exist.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    pub(crate) async fn find<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<Option<T>, Failure> {
        self.ask(async {
            match request.await {
                Ok(found) => Ok(Some(found)),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }
}

async fn within<T>(limit: Duration, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => answer.map_err(|error| Failure::of(&error)),
        Err(_) => Err(Failure::timeout(limit)),
    }
}
