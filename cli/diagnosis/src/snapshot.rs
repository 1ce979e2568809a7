//! Snapshot: the objects of a fleet at one moment, as pure data.
//!
//! A listing that is missing from a snapshot always says why. So no rule takes "not read" for "does not exist".

use crate::agents::{Agent, AgentNamespace};
use crate::latency::Summary;
use crate::report::NotReached;
use fleetnet_api::crd::{
    EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport, MemberAgent,
    MergedServiceImport, MultiClusterService, ServiceExport, ServiceImport, mcs,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, ResourceQuota, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use std::collections::BTreeMap;
use std::fmt;

/// Objects of a fleet at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub hub: Hub,
    /// Members in the natural order of their cluster ids: all that have a namespace in the hub, and all whose contexts
    /// were read.
    pub members: Vec<Member>,
}

/// The hub and its objects.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    pub connection: Connection,
    pub agent: AgentObjects,
    pub namespaces: Listing<Namespace>,
    pub member_agents: Listing<MemberAgent>,
    /// Latency summaries of the members that send one, by the cluster id of the importing member; an error for a
    /// malformed one.
    pub latencies: BTreeMap<String, Result<Summary, String>>,
    pub internal_exports: Listing<InternalServiceExport>,
    /// InternalServiceImports.
    pub claims: Listing<InternalServiceImport>,
    pub slice_exports: Listing<EndpointSliceExport>,
    /// EndpointSliceImports.
    pub distributed_slices: Listing<EndpointSliceImport>,
    pub service_imports: Listing<ServiceImport>,
    pub merged_imports: Listing<MergedServiceImport>,
    pub events: Listing<Event>,
    pub quotas: Listing<ResourceQuota>,
    pub accounts: Listing<ServiceAccount>,
}

/// One member and its objects.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Cluster id.
    pub id: String,
    pub connection: Connection,
    pub agent: AgentObjects,
    /// UID of the namespace kube-system, which identifies the cluster.
    pub cluster_uid: Option<String>,
    /// Lease of kube-controller-manager; none if the cluster has none.
    pub controller_manager: Listing<Lease>,
    /// Nodes; read only for `check`.
    pub nodes: Listing<Node>,
    /// Secret with the address of the hub and the token of the member agent.
    pub hub_secret: Listing<HubSecret>,
    pub service_exports: Listing<ServiceExport>,
    pub multi_cluster_services: Listing<MultiClusterService>,
    pub service_imports: Listing<ServiceImport>,
    /// ServiceExports of the standard API.
    pub mcs_exports: Listing<mcs::ServiceExport>,
    /// ServiceImports of the standard API.
    pub mcs_imports: Listing<mcs::ServiceImport>,
    /// Namespace of the Service to explain; none if it does not exist.
    pub namespaces: Listing<Namespace>,
    /// Services of users and derived Services.
    pub services: Listing<Service>,
    /// EndpointSlices of users' Services and imported slices.
    pub slices: Listing<EndpointSlice>,
    /// Pods in the namespace of the Service to explain.
    pub pods: Listing<Pod>,
    pub events: Listing<Event>,
    /// Rights that the member agent needs in its namespace of the hub and does not have.
    pub missing_hub_rights: Listing<MissingRight>,
}

/// Objects of an agent in its own cluster.
#[derive(Clone, Debug, Default)]
pub struct AgentObjects {
    /// Namespace in which the agent runs. The objects below are in it.
    pub namespace: AgentNamespace,
    pub deployments: Listing<Deployment>,
    pub pods: Listing<Pod>,
    pub leases: Listing<Lease>,
    pub definitions: Listing<CustomResourceDefinition>,
    /// Rights that the agent needs in its own cluster and does not have.
    pub missing_rights: Listing<MissingRight>,
    /// Rights that a member agent needs to make EndpointSlices of pods and does not have.
    pub missing_slice_rights: Listing<MissingRight>,
}

/// Connection to the API server of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Name of the kubeconfig context; `None` if no context leads to this cluster.
    pub context: Option<String>,
    /// URL of the API server; empty if it is not known.
    pub server_url: String,
    /// Base64 text of the certificate authority, as in a kubeconfig. `None` if it is not known.
    pub authority: Option<String>,
    pub reached: Reached,
    /// Time of the cluster, from the header `Date` of its answer. `None` if the server did not answer or has no such
    /// header.
    pub now: Option<Timestamp>,
    /// Time of the answer to the first request, in milliseconds.
    pub answer_milliseconds: Option<u64>,
    /// True if the server throttled a request (429).
    pub throttled: bool,
}

/// Outcome of the first request to an API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reached {
    Yes,
    No(Failure),
    /// No context leads to this cluster.
    #[default]
    NotAsked,
    /// The command line names contexts, and none of them leads to this cluster. Others may.
    NotNamed,
    /// Some contexts did not answer, so they may lead to this cluster. The others do not.
    NotFound,
}

impl Reached {
    /// Returns the reason why no context was used to reach a cluster; `None` if one was.
    #[must_use]
    pub const fn without_context(&self) -> Option<&'static str> {
        match self {
            Self::Yes | Self::No(_) => None,
            Self::NotAsked => Some("no kubeconfig context leads to this cluster"),
            Self::NotNamed => Some("not asked, because no context on the command line leads to this cluster"),
            Self::NotFound => Some("no kubeconfig context that answers leads to this cluster"),
        }
    }

    /// Returns the reason why a cluster was not reached, and what the user can do; `None` if it was reached.
    fn failure(&self) -> Option<(String, &'static str)> {
        let remedy = match self {
            Self::Yes => return None,
            Self::No(failure) => {
                let why = format!("not reached ({}): {}", failure.class, failure.detail);
                return Some((why, failure.class.remedy()));
            }
            Self::NotAsked => "name its context with --context, or add its kubeconfig with --kubeconfig",
            Self::NotNamed => "name its context with --context too, or leave out --context",
            Self::NotFound => {
                "name its context with --context to see its error, or add its kubeconfig with --kubeconfig"
            }
        };
        Some((self.without_context()?.to_owned(), remedy))
    }
}

/// Failure to reach an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub class: FailureClass,
    /// Host of the API server or of the proxy; empty if it is not known.
    pub host: String,
    pub port: Option<u16>,
    pub detail: String,
}

/// Class of a failure to reach an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The kubeconfig or its context does not exist or is unreadable.
    Context,
    Dns,
    Tcp,
    Tls,
    Proxy,
    /// No answer in time. Never a fault: the state of the cluster is not known.
    Timeout,
    /// 401.
    Unauthorized,
    /// Another HTTP status.
    Http(u16),
}

impl FailureClass {
    /// Returns what the user can do.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Context => "correct the kubeconfig or its context",
            Self::Dns => "check the server in the kubeconfig and the DNS of this machine",
            Self::Tcp => "check that the server runs and that a firewall lets this machine through",
            Self::Tls => "check certificate-authority in the kubeconfig, and that no other server answers",
            Self::Proxy => "check HTTPS_PROXY, NO_PROXY and proxy-url of the kubeconfig",
            Self::Timeout => "check the network, or raise --request-timeout",
            Self::Unauthorized => "renew the login of this context",
            Self::Http(_) => "check the version and the logs of this API server",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context => f.write_str("kubeconfig"),
            Self::Dns => f.write_str("DNS"),
            Self::Tcp => f.write_str("TCP"),
            Self::Tls => f.write_str("TLS"),
            Self::Proxy => f.write_str("proxy"),
            Self::Timeout => f.write_str("timeout"),
            Self::Unauthorized => f.write_str("HTTP 401"),
            Self::Http(status) => write!(f, "HTTP {status}"),
        }
    }
}

/// Listing of one kind of one cluster.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Listing<K> {
    /// The server answered. The listing is complete.
    Known { objects: Vec<K>, undecodable: Vec<Undecodable> },
    /// The server denied the request (403). The text is the server's message.
    Denied(String),
    /// The server does not have the kind (404).
    NotDefined,
    /// The state is not known, for example because the request timed out. The text says why.
    Unknown(String),
    /// The reader did not ask for this kind.
    #[default]
    NotAsked,
}

impl<K> Listing<K> {
    /// Returns a complete listing of decodable objects.
    #[must_use]
    pub const fn of(objects: Vec<K>) -> Self {
        Self::Known { objects, undecodable: Vec::new() }
    }

    /// Returns the decodable objects; none if the listing is not known.
    pub fn objects(&self) -> impl Iterator<Item = &K> {
        self.known().unwrap_or_default().iter()
    }

    /// Returns the objects of a known listing.
    #[must_use]
    pub fn known(&self) -> Option<&[K]> {
        match self {
            Self::Known { objects, .. } => Some(objects),
            Self::Denied(_) | Self::NotDefined | Self::Unknown(_) | Self::NotAsked => None,
        }
    }

    /// Returns the objects of a known listing, to change them.
    pub fn objects_mut(&mut self) -> Option<&mut Vec<K>> {
        match self {
            Self::Known { objects, .. } => Some(objects),
            Self::Denied(_) | Self::NotDefined | Self::Unknown(_) | Self::NotAsked => None,
        }
    }

    /// Returns the objects that the agents cannot decode.
    pub fn undecodable(&self) -> impl Iterator<Item = &Undecodable> {
        match self {
            Self::Known { undecodable, .. } => undecodable.as_slice(),
            Self::Denied(_) | Self::NotDefined | Self::Unknown(_) | Self::NotAsked => &[],
        }
        .iter()
    }
}

/// Object that the agents cannot decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub why: String,
}

/// Right that an agent needs and does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    /// User name of the agent.
    pub user: String,
    pub verb: String,
    pub group: String,
    pub resource: String,
    /// Empty for all namespaces.
    pub namespace: String,
}

/// Secret of a member with its access to the hub. Contains claims of the token only, never the token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubSecret {
    pub namespace: String,
    pub name: String,
    pub url: String,
    /// Base64 text of the certificate authority, as the member agent gets it.
    pub authority: Option<String>,
    /// Claims of the token; `None` if the token is missing or is no JWT.
    pub token: Option<TokenClaims>,
}

/// Claims of a ServiceAccount token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenClaims {
    /// `None` if the token does not expire.
    pub expires: Option<Timestamp>,
    /// `system:serviceaccount:<namespace>:<name>`.
    pub subject: String,
    /// UID of the ServiceAccount. `None` if the token does not contain it.
    pub account_uid: Option<String>,
}

impl AgentObjects {
    /// Returns the Deployment of an agent, among those of the namespace.
    #[must_use]
    pub fn deployment(&self, agent: Agent) -> Option<&Deployment> {
        self.deployments.objects().find(|deployment| agent.owns(&deployment.metadata))
    }
}

impl Snapshot {
    /// Returns the time of the hub.
    #[must_use]
    pub fn now(&self) -> Option<Timestamp> {
        self.hub.connection.now
    }

    /// Returns the clusters that were not reached, each with the reason and with what the user can do.
    #[must_use]
    pub fn not_reached(&self) -> Vec<NotReached> {
        let members = self.members.iter().map(|member| (member.id.as_str(), &member.connection));
        let clusters = std::iter::once(("hub", &self.hub.connection)).chain(members);
        let found = clusters.filter_map(|(cluster, connection)| {
            let (why, remedy) = connection.reached.failure()?;
            Some(NotReached { cluster: cluster.to_owned(), why, remedy })
        });
        found.collect()
    }

    /// Returns the member with this cluster id.
    #[must_use]
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }
}

/// Returns the reason why a listing is not known.
pub(crate) fn why<K>(listing: &Listing<K>) -> Option<String> {
    match listing {
        Listing::Known { .. } => None,
        Listing::Denied(message) => Some(format!("denied: {message}")),
        Listing::NotDefined => Some("the server does not have the kind".to_owned()),
        Listing::Unknown(why) => Some(why.clone()),
        Listing::NotAsked => Some("not read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::healthy;

    #[test]
    fn clusters_that_were_not_reached_are_named_with_a_remedy() {
        let mut snapshot = healthy();
        assert_eq!(snapshot.not_reached(), []);
        snapshot.members[0].connection.reached = Reached::NotNamed;
        let named = snapshot.not_reached().remove(0);
        assert!(named.why.starts_with("not asked, because no context on the command line"), "{named:?}");
        assert!(named.remedy.contains("--context too"), "{named:?}");
        snapshot.members[0].connection.reached = Reached::NotFound;
        assert!(snapshot.not_reached()[0].why.contains("no kubeconfig context that answers"));
        snapshot.members[0].connection.reached = Reached::NotAsked;
        let failure = |class| Failure { class, host: String::new(), port: None, detail: "refused".to_owned() };
        snapshot.members[1].connection.reached = Reached::No(failure(FailureClass::Tcp));
        let found = snapshot.not_reached();
        let shown: Vec<(&str, &str)> = found.iter().map(|it| (it.cluster.as_str(), it.why.as_str())).collect();
        let expected =
            [("east", "no kubeconfig context leads to this cluster"), ("west", "not reached (TCP): refused")];
        assert_eq!(shown, expected);
        assert!(found[0].remedy.contains("--context"), "{found:?}");
    }
}
