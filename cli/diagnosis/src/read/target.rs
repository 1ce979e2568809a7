//! API server to read from, and which objects.

use crate::agents::AgentNamespace;
use crate::limits::{READING, REQUEST};
use crate::snapshot::{AgentObjects, Failure};
use fleetnet_types::ObjectName;
use kube::Client;
use std::time::Duration;

/// API server of one cluster, as a kubeconfig names it.
#[derive(Clone)]
pub struct Target {
    /// Name of the kubeconfig context.
    pub context: Option<String>,
    /// URL of the API server; empty if it is not known.
    pub server_url: String,
    /// Base64 text of the certificate authority of the kubeconfig.
    pub authority: Option<String>,
    /// URL of the proxy to the API server.
    pub proxy: Option<String>,
    /// Client, or the reason why the kubeconfig gives none.
    pub client: Result<Client, Failure>,
}

/// Objects to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects for `status` and `latency`.
    Status,
    /// Objects for `services`.
    Services,
    /// Objects for `check`.
    Check,
    /// Objects for `explain` of one Service.
    Service(ObjectName),
    /// Objects for `migrate`.
    Migration,
}

/// Limits of a reading.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for one request.
    pub request: Duration,
    /// Time for the whole reading.
    pub whole: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { request: REQUEST, whole: READING }
    }
}

/// Returns the objects of an agent before anything is read.
pub(super) fn unread(namespace: &AgentNamespace) -> AgentObjects {
    AgentObjects { namespace: namespace.clone(), ..AgentObjects::default() }
}
