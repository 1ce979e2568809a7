//! Simulated cluster: a memkube with the CRDs of the fleet, reachable over HTTPS by agents in processes of their own.

use crate::agent::{Agent, AgentSpec};
use crate::eventually::Deadline;
use crate::fleet::{FLEET_SYSTEM, create_namespace, on_free_ports};
use anyhow::Context as _;
use fleetnet_api::crds::{self, Form};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use memkube::clock::TokioClock;
use memkube::registry::ResourceId;
use memkube::serve::{self, Https};
use memkube::{MemKube, Options, User};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// User name of member agents.
pub const AGENT: &str = "agent";
/// User name of a hub agent.
pub const HUB_AGENT: &str = "hub-agent";
/// Id of the member whose agent [`member_agent`] starts.
pub const MEMBER: &str = "member-1";

/// Simulated cluster for one test.
#[derive(Debug)]
pub struct Server {
    pub memkube: MemKube,
    https: Https,
    /// Folder with the kubeconfigs and the token.
    folder: TempDir,
}

impl Server {
    /// Starts a server. The keys depend on the name, so servers with different names have different certificate
    /// authorities.
    pub async fn start(name: &str) -> anyhow::Result<Self> {
        let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse()?);
        Self::with(name, Options::new(Arc::new(clock), 1)).await
    }

    /// Starts a server as [`Server::start`] does, with these options of memkube.
    pub async fn with(name: &str, options: Options) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("fleetnet-in-memory-")?;
        let memkube = MemKube::new(options);
        let client = memkube.client(User::new("admin"));
        for definition in crds::all(Form::Full) {
            Api::all(client.clone()).create(&PostParams::default(), &definition).await?;
        }
        for namespace in [FLEET_SYSTEM.to_owned(), format!("fleet-member-{MEMBER}")] {
            create_namespace(&client, &namespace).await?;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let users = [AGENT, HUB_AGENT].map(User::new).to_vec();
        let options = serve::Options { name: name.to_owned(), seed: [1; 32], users };
        let https = Https::start(&memkube, listener, options)?;
        let hub_agent = https.kubeconfig(HUB_AGENT).context("the user was given")?;
        std::fs::write(folder.path().join("hub-agent.kubeconfig"), hub_agent)?;
        std::fs::write(folder.path().join("kubeconfig"), https.kubeconfig(AGENT).context("the user was given")?)?;
        std::fs::write(folder.path().join("token"), https.token(AGENT).context("the user was given")?)?;
        std::fs::write(folder.path().join("ca.crt"), https.authority_pem())?;
        Ok(Self { memkube, https, folder })
    }

    #[must_use]
    pub fn url(&self) -> &str {
        self.https.url()
    }

    #[must_use]
    pub fn authority_pem(&self) -> &str {
        self.https.authority_pem()
    }

    /// Returns the path of a file in the folder: `kubeconfig`, `hub-agent.kubeconfig`, `token` or `ca.crt`. `token` and
    /// `ca.crt` are the files of a service account in a pod.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Returns the holder of each Lease; an empty text if the Lease was released.
    pub async fn holders(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let leases = self.leases().list(&ListParams::default()).await?;
        let holder = |lease: Lease| {
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            (lease.metadata.name.unwrap_or_default(), holder)
        };
        Ok(leases.into_iter().map(holder).collect())
    }

    /// Returns a client for the server's administrator.
    #[must_use]
    pub fn admin(&self) -> Client {
        self.memkube.client(User::new("admin"))
    }

    /// Returns the number of the member agents' accepted writes for each kind of write, without Leases and Events.
    #[must_use]
    pub fn written(&self) -> BTreeMap<String, u64> {
        let counts = self.memkube.audit().counts.into_iter();
        let of_agents = counts.filter(|(kind, _)| &*kind.user == AGENT && kind.verb.writes() && kind.code < 300);
        let named = of_agents.map(|(kind, count)| (format!("{} {}", kind.verb.name(), kind.resource), count));
        named.filter(|(name, _)| !["leases.", "events"].iter().any(|other| name.contains(other))).collect()
    }

    #[must_use]
    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.admin(), FLEET_SYSTEM)
    }

    /// Waits until a member agent has written its heartbeat to this hub.
    pub async fn heartbeat(&self, agent: &Agent) -> anyhow::Result<()> {
        let deadline = Deadline::start();
        while self.memkube.peek_all(&ResourceId::new("networking.fleet.azure.com", "memberagents")).is_empty() {
            deadline.pause(|| format!("no heartbeat\n{}", agent.log().tail())).await?;
        }
        Ok(())
    }
}

/// Returns settings for a hub agent in this simulated hub.
#[must_use]
pub fn hub_agent(hub: &Server) -> AgentSpec {
    AgentSpec::new("hub-agent", "hub-agent")
        .flag("--kubeconfig", hub.file("hub-agent.kubeconfig"))
        .flag("--metrics-bind-address", "127.0.0.1:0")
        .flag("--health-probe-bind-address", "127.0.0.1:0")
}

/// Returns settings for a member agent in this simulated cluster, without a hub.
#[must_use]
pub fn member_agent(own: &Server) -> AgentSpec {
    on_free_ports(AgentSpec::new("member-agent", "member-agent"))
        .variable("MEMBER_CLUSTER_NAME", MEMBER)
        .flag("--kubeconfig", own.file("kubeconfig"))
}

/// Returns settings for a member agent that reaches the hub with a kubeconfig.
#[must_use]
pub fn member_agent_of(own: &Server, hub: &Server) -> AgentSpec {
    member_agent(own).flag("--hub-kubeconfig", hub.file("kubeconfig"))
}

/// Waits until an agent has listed all kinds that it needs, in its cluster and in the hub.
pub async fn knows_all(agent: &Agent) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    loop {
        let (_, readiness) = agent.get("/readyz").await?;
        if readiness.contains("[+]hub/") && !readiness.contains("[-]") {
            return Ok(());
        }
        deadline.pause(|| format!("not all is known: {readiness}\n{}", agent.log().tail())).await?;
    }
}
