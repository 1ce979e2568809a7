//! Fleet of the sandbox: a hub, its members and their agents.

mod agent;
mod lease;
mod memory;
mod server;
mod streams;

use self::agent::{Agent, Failures};
pub(crate) use self::server::Server;
use self::streams::SliceStreams;
use super::describe::NAMESPACE;
use super::event::{AgentState, Event, HUB};
use super::measure::Ledger;
use super::real;
use super::view::Stage;
use super::workloads::Workloads;
use crate::args::{Api, Options, Scenario};
use crate::limits::SET_UP;
use anyhow::Context as _;
use endpointslice_controller::Mode;
use fleetnet_api::names::labels;
use fleetnet_core::hub::SilenceLimits;
use fleetnet_core::member::McsApi;
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::clock::{Clock, to_jiff};
use futures::future::{join_all, try_join_all};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sim::agent::Setup;
use sim::fleet::{HUB_AGENT, MEMBER_AGENT, hub_user};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Times without a heartbeat after which a member is silent in the scenarios `member-silent` and `hub-down`: short, but
/// longer than the interval of heartbeats.
pub(crate) const SILENCE: SilenceLimits = SilenceLimits { soft_micros: 15_000_000, hard_micros: 600_000_000 };

/// Running fleet of the sandbox.
pub(crate) struct Fleet {
    pub(crate) api: Api,
    pub(crate) hub: Server,
    /// Members in the order of their numbers, from `member-1`.
    pub(crate) members: Vec<Member>,
    /// Limits of silence, if they are not the default.
    silence: Option<SilenceLimits>,
    streams: SliceStreams,
    /// Running agents, by the index of their member. The key of the hub agent is `None`.
    agents: Mutex<BTreeMap<Option<usize>, Agent>>,
    failures: Failures,
    stage: Stage,
    /// Stand-ins for the controllers and kubelets of the members.
    workloads: Vec<Workloads>,
    /// Waits for Leases, which end with reports.
    waits: Mutex<JoinSet<()>>,
}

pub(crate) struct Member {
    /// Name of the member, such as `member-1`.
    pub(crate) name: String,
    pub(crate) server: Server,
}

/// Sets the label with which the namespace of the sandbox imports by the standard API.
async fn label_namespace(client: kube::Client) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {labels::IMPORT: "true"}}}));
    kube::Api::<Namespace>::all(client).patch(NAMESPACE, &PatchParams::default(), &patch).await?;
    Ok(())
}

impl Fleet {
    /// Starts the servers and then the agents, and waits until all agents are ready.
    pub(crate) async fn start(options: &Options, stage: &Stage) -> anyhow::Result<Self> {
        let names: Vec<String> = (1..=options.members()).map(|number| format!("member-{number}")).collect();
        let (hub, servers) = if options.real {
            let started = real::start(&names).await?;
            (Server::Real(Box::new(started.0)), started.1.into_iter().map(Box::new).map(Server::Real).collect())
        } else {
            let started = memory::start(&names).await?;
            (Server::Memory(started.0), started.1.into_iter().map(Server::Memory).collect::<Vec<_>>())
        };
        let streams = SliceStreams::of(names.len());
        let members = names.into_iter().zip(servers).map(|(name, server)| Member { name, server }).collect();
        let has_silence = matches!(options.scenario, Some(Scenario::MemberSilent | Scenario::HubDown));
        let silence = has_silence.then_some(SILENCE);
        let (agents, failures) = (Mutex::default(), Failures::default());
        let (api, stage) = (options.api, stage.clone());
        let (workloads, waits) = (Vec::new(), Mutex::default());
        let mut fleet = Self { api, hub, members, silence, streams, agents, failures, stage, workloads, waits };
        fleet.make_namespaces().await?;
        fleet.start_workloads().await?;
        fleet.start_agents().await?;
        let clusters = std::iter::once(HUB.to_owned()).chain(fleet.member_names()).collect();
        let streams = (0..).zip(fleet.member_names()).filter(|(member, _)| fleet.has_stream(*member));
        let streams = streams.map(|(_, name)| name).collect();
        fleet.stage.emit(Event::Running { clusters, agents: fleet.members.len() + 1, streams }).await;
        Ok(fleet)
    }

    pub(crate) fn member_names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    /// Returns the servers with the names of their clusters, the hub first.
    pub(crate) fn servers(&self) -> impl Iterator<Item = (&str, &Server)> {
        let members = self.members.iter().map(|member| (member.name.as_str(), &member.server));
        std::iter::once((HUB, &self.hub)).chain(members)
    }

    /// Returns the number of the agents' writes so far, by kind of write.
    pub(crate) async fn ledger(&self) -> anyhow::Result<Ledger> {
        let mut ledger = Ledger::default();
        for (name, server) in self.servers() {
            ledger.join(&server.ledger(name).await?);
        }
        Ok(ledger)
    }

    /// True if the member uses a slice stream.
    pub(crate) fn has_stream(&self, member: usize) -> bool {
        self.streams.has(member)
    }

    /// True if all slice streams of the fleet are open.
    pub(crate) async fn are_streams_open(&self) -> anyhow::Result<bool> {
        Ok(self.streams.are_open(&self.hub_agent_metrics().await?))
    }

    /// Returns the metrics of the hub agent in the text format of `/metrics`.
    pub(crate) async fn hub_agent_metrics(&self) -> anyhow::Result<String> {
        let agents = self.agents.lock().await;
        agents.get(&None).context("the fleet has a hub agent")?.metrics().await
    }

    /// Returns the failures of agents that ended by themselves.
    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Kills the agent of a member, as a crash does. The agent neither finishes its work nor releases its Leases.
    pub(crate) async fn kill_agent(&self, member: usize) {
        if let Some(agent) = self.agents.lock().await.remove(&Some(member)) {
            let name = agent.name().to_owned();
            agent.kill().await;
            self.streams.cut(&self.members[member].name);
            self.stage.emit(Event::Agent { agent: name, state: AgentState::Killed, why: None }).await;
        }
    }

    /// Starts a new agent of a member in place of a killed agent.
    pub(crate) async fn restart_agent(&self, member: usize) -> anyhow::Result<()> {
        let since = to_jiff(Clock::system().now());
        let agent = self.member_agent(member).await?;
        let name = agent.name().to_owned();
        self.stage.emit(Event::Agent { agent: agent.name().to_owned(), state: AgentState::Restarted, why: None }).await;
        self.agents.lock().await.insert(Some(member), agent);
        self.await_lease(name, self.members[member].server.admin(), since).await;
        Ok(())
    }

    /// Makes the hub unreachable for all agents and for kubectl.
    pub(crate) async fn cut_hub(&self) -> anyhow::Result<()> {
        self.hub.cut().await?;
        self.streams.hold();
        self.stage.emit(Event::Hub { reachable: false }).await;
        Ok(())
    }

    /// Makes the hub reachable again. Its agent then waits for its Lease, if the interruption was longer than the
    /// Lease.
    pub(crate) async fn mend_hub(&self) -> anyhow::Result<()> {
        let since = to_jiff(Clock::system().now());
        self.hub.mend().await?;
        self.streams.release();
        self.stage.emit(Event::Hub { reachable: true }).await;
        self.await_lease("hub-agent".to_owned(), self.hub.admin(), since).await;
        Ok(())
    }

    /// Reports that an agent waits for its Leases, and reports later that it holds them.
    async fn await_lease(&self, agent: String, client: kube::Client, since: Timestamp) {
        self.stage.emit(Event::Lease { agent: agent.clone(), held: false }).await;
        let stage = self.stage.clone();
        let held = async move {
            lease::until_renewed(client, since).await;
            stage.emit(Event::Lease { agent, held: true }).await;
        };
        let mut waits = self.waits.lock().await;
        while waits.try_join_next().is_some() {}
        waits.spawn(held);
    }

    /// Stops the agents and then the servers.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        drop(self.workloads);
        // Reconnect the hub first: an agent without access to the hub would need the whole time limit to stop.
        self.hub.mend().await?;
        self.streams.release();
        join_all(self.agents.into_inner().into_values().map(Agent::stop)).await;
        let servers = self.members.into_iter().map(|member| member.server).chain([self.hub]);
        try_join_all(servers.map(Server::end)).await?;
        Ok(())
    }

    async fn make_namespaces(&self) -> anyhow::Result<()> {
        for member in &self.members {
            member.server.make_namespace(NAMESPACE).await?;
            if self.api == Api::Mcs {
                member.server.admit_mcs_api().await?;
                label_namespace(member.server.admin()).await?;
            }
            self.hub.admit(&member.name).await?;
        }
        match self.api {
            Api::Fleet => self.hub.make_namespace(NAMESPACE).await,
            Api::Mcs => Ok(()),
        }
    }

    /// Starts the stand-ins with which Deployments of users have pods.
    async fn start_workloads(&mut self) -> anyhow::Result<()> {
        for (index, Member { name, server }) in self.members.iter().enumerate() {
            server.add_workloads().await?;
            let workloads = Workloads::start(server.admin(), name, index).await;
            self.workloads.push(workloads.with_context(|| format!("cannot prepare {name} for pods"))?);
        }
        Ok(())
    }

    async fn start_agents(&self) -> anyhow::Result<()> {
        let mut agents = self.agents.lock().await;
        let hub = self.hub.cluster(HUB, HUB_AGENT).await?;
        let (silence, streams) = (self.silence, self.streams.clone());
        let start = move || {
            let usual = streams.serve(Setup::usual("hub-agent"));
            sim::agent::of_hub(Arc::clone(&hub), Setup { silence: silence.or(usual.silence), ..usual })
        };
        agents.insert(None, Agent::keep(start, self.stage.clone(), self.failures.clone())?);
        for index in 0..self.members.len() {
            agents.insert(Some(index), self.member_agent(index).await?);
        }
        let ready = join_all(agents.values().map(Agent::ready));
        timeout(SET_UP, ready).await.with_context(|| format!("the agents were not ready within {SET_UP:?}"))?;
        Ok(())
    }

    async fn member_agent(&self, index: usize) -> anyhow::Result<Agent> {
        let Member { name, server } = &self.members[index];
        let member = server.cluster("member", MEMBER_AGENT).await?;
        let hub = self.hub.cluster(HUB, &hub_user(&member_namespace(name))).await?;
        let name = name.clone();
        let mcs_api = match self.api {
            Api::Fleet => McsApi::Off,
            Api::Mcs => McsApi::LabelledNamespaces,
        };
        let streams = self.streams.clone();
        let start = move || {
            let endpointslices = Some(endpointslice_controller::Settings::with_mode(Mode::On));
            let setup = streams.connect(index, Setup::usual("member-agent"));
            let setup = Setup { mcs_api, endpointslices, ..setup };
            sim::agent::of_member(&name, Arc::clone(&member), &hub, setup)
        };
        Agent::keep(start, self.stage.clone(), self.failures.clone())
    }
}
