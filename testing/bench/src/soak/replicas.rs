//! Two replicas of each agent. One that ended after a fault is started again.

use anyhow::ensure;
use futures::future::try_join_all;
use harness::agent::{Agent, AgentSpec};
use harness::fleet::Fleet;
use harness::gate::{Gate, GateProxy};

/// Number of replicas of each agent.
const REPLICAS: usize = 2;

/// Agents of the fleet.
pub(super) struct Replicas {
    pub(super) all: Vec<Replica>,
    /// Gates between each member's agents and the hub.
    pub(super) gates: Vec<GateProxy>,
}

pub(super) struct Replica {
    /// Name of the agent, which both of its replicas have.
    pub(super) name: String,
    spec: AgentSpec,
    pub(super) agent: Option<Agent>,
}

impl Replicas {
    /// Starts all agents and waits until they are ready.
    pub(super) async fn start(fleet: &Fleet) -> anyhow::Result<Self> {
        let mut gates = Vec::new();
        let mut specs = vec![("hub-agent".to_owned(), fleet.hub_agent().await?)];
        for member in &fleet.members {
            let hub = fleet.hub.access(&member.hub_user).await?.server_url;
            let gate = GateProxy::start(&hub, Gate::Open).await?;
            let spec = fleet.member_agent(member).await?.variable("HUB_SERVER_URL", &gate.server_url);
            specs.push((format!("member-agent of {}", member.control_plane.name()), spec));
            gates.push(gate);
        }
        let with_default_leases = |spec: AgentSpec| {
            spec.flag("--leader-election-lease-duration", "15s").flag("--leader-election-renew-deadline", "10s")
        };
        let both = specs.into_iter().flat_map(|it| vec![it; REPLICAS]);
        let all = both.map(|(name, spec)| Replica { name, spec: with_default_leases(spec), agent: None }).collect();
        let mut replicas = Self { all, gates };
        replicas.all_run().await?;
        Ok(replicas)
    }

    /// Starts those that do not run, and waits until all are ready.
    pub(super) async fn all_run(&mut self) -> anyhow::Result<()> {
        for replica in &mut self.all {
            replica.restart_if_ended().await?;
        }
        try_join_all(self.all.iter().filter_map(|replica| replica.agent.as_ref()).map(Agent::ready)).await.map(drop)
    }
}

impl Replica {
    /// Starts the agent if it has ended or was never started.
    pub(super) async fn restart_if_ended(&mut self) -> anyhow::Result<()> {
        if self.agent.as_ref().is_none_or(|agent| agent.ended().is_some()) {
            self.agent = Some(self.spec.start().await?);
        }
        Ok(())
    }

    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        match self.agent.take() {
            Some(agent) => agent.kill().await,
            None => Ok(()),
        }
    }

    /// Stops the agent cleanly, so that its replica takes over.
    pub(super) async fn terminate(&mut self) -> anyhow::Result<()> {
        let Some(agent) = self.agent.take() else { return Ok(()) };
        let ended = agent.terminate().await?;
        ensure!(
            ended == harness::process::Ended::Exited(0),
            "{} ended with {ended:?}\n{}",
            self.name,
            agent.log().tail()
        );
        Ok(())
    }
}
