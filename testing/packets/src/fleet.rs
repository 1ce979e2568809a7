//! Fleet with real traffic: [`Fleet`].

use crate::dns;
use crate::gates::Gates;
use crate::kubelet::Times;
use crate::network::{self, NodeNetwork};
use crate::node::{Node, ProxyMode};
use crate::replicas::Replicas;
use crate::scheduler::Scheduler;
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::crds;
use futures::future::{try_join, try_join_all};
use harness::agent::{Agent, AgentSpec};
use harness::control_plane::{ControlPlane, Network, Options};
use harness::eventually;
use harness::fleet::{self, HUB_AGENT, MEMBER_AGENT, install_hub, install_member, manifests, remove_deployment};
use harness::process::Process;
use harness::user::User;
use kube::Api;
use std::path::Path;
use std::{env, fs};

/// Controllers of a member.
const CONTROLLERS: [&str; 8] = [
    "daemonset-controller",
    "deployment-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "statefulset-controller",
];
/// Requests in a second of kube-controller-manager. The default of 20 would delay rollouts.
const UNHURRIED: [(&str, &str); 2] = [("--kube-api-qps", "500"), ("--kube-api-burst", "1000")];
/// Port of the slice stream of the first replica of the hub agent. The second replica has the next port.
const STREAM_PORT: u16 = 8443;

/// Settings of a fleet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of nodes of each member.
    pub nodes: Vec<u8>,
    pub proxy_mode: ProxyMode,
    /// True if members get changes of slices over the slice stream.
    pub slice_stream: bool,
    /// True if the pods of all members have the same addresses, so that they cannot reach each other.
    pub same_pod_ranges: bool,
    /// Value of the hub agent's flag `--silence-soft`.
    pub silence_soft: &'static str,
    /// Further flags of the member agents.
    pub member_flags: &'static [(&'static str, &'static str)],
    /// True if each replica reaches its API servers through gates of its own, so that [`Replicas::cut_leader_off`] can
    /// shut them.
    pub gates: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: vec![1, 1],
            proxy_mode: ProxyMode::Nftables,
            slice_stream: true,
            same_pod_ranges: false,
            silence_soft: "60s",
            member_flags: &[],
            gates: false,
        }
    }
}

/// Running fleet in the namespaces of [`crate::inside`].
#[derive(Debug)]
pub struct Fleet {
    /// Members in the order of their numbers, which begin at 1. Rust drops the fields in order, so pods end before
    /// their API servers.
    pub members: Vec<Member>,
    pub servers: fleet::Fleet,
    settings: Settings,
}

/// Member with nodes.
#[derive(Debug)]
pub struct Member {
    pub nodes: Vec<Node>,
    _scheduler: Scheduler,
    _controllers: Process,
}

/// Agents of a fleet.
#[derive(Debug)]
pub struct Agents {
    pub hub: Agent,
    /// Agents of the members, in the order of the members.
    pub members: Vec<Agent>,
}

impl Member {
    /// Returns the times of all pods that the member has had.
    #[must_use]
    pub fn pod_times(&self) -> Times {
        self.nodes.iter().flat_map(Node::pod_times).collect()
    }
}

impl Fleet {
    /// Starts a hub, members with nodes, and a DNS server in each member. The agents do not run yet.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let networks = networks(&settings);
        network::make(&networks.concat()).await?;
        let folder = env::temp_dir().join("nodes");
        fs::create_dir_all(&folder)?;
        let started = try_join_all((1..=networks.len()).map(start_member));
        let (hub, servers) = try_join(start_hub(&settings), started).await?;
        let (servers, controllers): (Vec<_>, Vec<_>) = servers.into_iter().unzip();
        let servers = fleet::Fleet::of_servers(hub, servers).await?;
        let members = servers.members.iter().zip(&networks).zip(controllers);
        let members = members.map(async |((member, networks), controllers)| {
            start_nodes(&member.control_plane, networks, settings.proxy_mode, &folder, controllers).await
        });
        let members = try_join_all(members).await?;
        Ok(Self { members, servers, settings })
    }

    /// Returns a user of the member with this index, from 0, in a namespace.
    #[must_use]
    pub fn user(&self, index: usize, namespace: &str) -> User {
        User::new(self.servers.members[index].control_plane.admin(), namespace)
    }

    /// Starts the agents, and waits until they are ready. The member agents also use the standard API, and import all
    /// its exports.
    pub async fn start_agents(&self) -> anyhow::Result<Agents> {
        let hub = self.hub_agent(0).await?;
        let members = self.servers.members.iter();
        let members = members.map(async |member| self.member_agent(member).await?.start_ready().await);
        let (hub, members) = try_join(hub.start_ready(), try_join_all(members)).await?;
        self.are_connected().await?;
        Ok(Agents { hub, members })
    }

    /// Starts two replicas of each agent, and waits until they are ready. Their Leases have the durations of the flags'
    /// defaults. Returns the hub agent's replicas, and then those of the members' agents.
    pub async fn start_replicas(&self) -> anyhow::Result<Vec<Replicas>> {
        let hub = [self.hub_replica(0).await?, self.hub_replica(1).await?];
        let mut replicas = vec![Replicas::start("hub", &self.servers.hub, hub).await?];
        for member in &self.servers.members {
            let specs = [self.member_replica(member).await?, self.member_replica(member).await?];
            replicas.push(Replicas::start(&member.cluster_id, &member.control_plane, specs).await?);
        }
        self.are_connected().await?;
        Ok(replicas)
    }

    /// Returns the settings of a replica of the hub agent and its gates, if the fleet has gates.
    async fn hub_replica(&self, replica: u16) -> anyhow::Result<(AgentSpec, Gates)> {
        let (agent, mut gates) = (self.hub_agent(replica).await?, Gates::default());
        if !self.settings.gates {
            return Ok((agent, gates));
        }
        let hub = &self.servers.hub;
        let kubeconfig = gates.access(hub, HUB_AGENT).await?.write_kubeconfig(hub.folder())?;
        Ok((agent.flag("--kubeconfig", kubeconfig), gates))
    }

    /// Returns the settings of a replica of a member's agent and its gates, if the fleet has gates.
    async fn member_replica(&self, member: &fleet::Member) -> anyhow::Result<(AgentSpec, Gates)> {
        let (agent, mut gates) = (self.member_agent(member).await?, Gates::default());
        if !self.settings.gates {
            return Ok((agent, gates));
        }
        let hub = gates.access(&self.servers.hub, &member.hub_user).await?;
        let own = &member.control_plane;
        let kubeconfig = gates.access(own, MEMBER_AGENT).await?.write_kubeconfig(own.folder())?;
        // The agent reads its token from the same file as without gates.
        Ok((agent.variable("HUB_SERVER_URL", &hub.server_url).flag("--kubeconfig", kubeconfig), gates))
    }

    /// Returns the settings of a replica of the hub agent. Replicas have numbers from 0.
    async fn hub_agent(&self, replica: u16) -> anyhow::Result<AgentSpec> {
        let agent = self.servers.hub_agent().await?.flag("--silence-soft", self.settings.silence_soft);
        if !self.settings.slice_stream {
            return Ok(agent);
        }
        let address = format!("{}:{}", network::ROOT, STREAM_PORT + replica);
        Ok(agent.flag("--slice-stream-bind-address", &address).flag("--slice-stream-advertise-address", &address))
    }

    /// Returns the settings of a member's agent.
    async fn member_agent(&self, member: &fleet::Member) -> anyhow::Result<AgentSpec> {
        let agent = self.servers.member_agent(member).await?;
        let agent = agent.flag("--multicluster-api", "true").flag("--multicluster-api-import", "all");
        let further = |agent: AgentSpec, (name, value): &(&str, &str)| agent.flag(name, value);
        let agent = self.settings.member_flags.iter().fold(agent, further);
        // kube-controller-manager makes the slices of the cluster's own Services.
        Ok(agent.flag("--endpointslices", "off"))
    }

    /// Waits until all members have their slice streams, if the fleet has slice streams.
    pub async fn are_connected(&self) -> anyhow::Result<()> {
        if self.settings.slice_stream {
            for member in &self.servers.members {
                self.is_connected(member).await?;
            }
        }
        Ok(())
    }

    /// Waits until a member has its slice stream.
    async fn is_connected(&self, member: &fleet::Member) -> anyhow::Result<()> {
        let reports: Api<MemberAgent> = Api::namespaced(self.servers.hub.admin(), &member.hub_namespace);
        let has_stream = |agent: &MemberAgent| agent.spec.slice_stream.as_ref().is_some_and(|report| report.connected);
        let what = format!("the slice stream of {}", member.cluster_id);
        eventually::object(&reports, &member.cluster_id, &what, has_stream).await.map(drop)
    }
}

/// Returns the networks of the nodes of each member.
fn networks(settings: &Settings) -> Vec<Vec<NodeNetwork>> {
    let of_member = |(member, nodes): (u8, &u8)| {
        let range = if settings.same_pod_ranges { 1 } else { member };
        (1..=*nodes).map(|node| NodeNetwork { member, node, range }).collect()
    };
    (1..).zip(&settings.nodes).map(of_member).collect()
}

fn options(name: String) -> Options {
    let network = Network { address: network::ROOT, service_ranges: network::SERVICE_RANGES };
    Options { name, network: Some(network), ..Options::default() }
}

async fn start_hub(settings: &Settings) -> anyhow::Result<ControlPlane> {
    let mut hub = ControlPlane::start(options("hub".to_owned())).await?;
    install_hub(&hub).await?;
    remove_deployment(&hub, "hub-agent").await?;
    if settings.slice_stream {
        manifests::apply(&hub, manifests::SLICE_STREAM).await?;
    }
    hub.clean_up().await?;
    Ok(hub)
}

async fn start_member(number: usize) -> anyhow::Result<(ControlPlane, Process)> {
    let member = ControlPlane::start(options(format!("member-{number}"))).await?;
    install_member(&member).await?;
    let definitions: Vec<String> = crds::mcs().iter().map(crds::yaml).collect();
    member.apply_definitions(&definitions).await?;
    manifests::apply(&member, manifests::MCS_API).await?;
    remove_deployment(&member, "member-agent").await?;
    let controllers = member.start_controller_manager(&CONTROLLERS, &UNHURRIED).await?;
    Ok((member, controllers))
}

async fn start_nodes(
    control_plane: &ControlPlane,
    networks: &[NodeNetwork],
    mode: ProxyMode,
    folder: &Path,
    controllers: Process,
) -> anyhow::Result<Member> {
    let nodes = networks.iter().map(|network| Node::start(control_plane, *network, mode, folder));
    let nodes = try_join_all(nodes).await?;
    let names = nodes.iter().map(|node| node.name.clone()).collect();
    let scheduler = Scheduler::start(control_plane.admin(), names);
    dns::start(control_plane, folder).await?;
    Ok(Member { nodes, _scheduler: scheduler, _controllers: controllers })
}
