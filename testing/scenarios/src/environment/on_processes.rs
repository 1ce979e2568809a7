//! Backend with real control planes, and agents in separate processes.

use super::{AgentPlace, Backend, FleetSpec, Member};
use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use harness::agent::{Agent, AgentSpec};
use harness::audit::{Audit, FleetLedger, FleetMark};
use harness::fleet::Fleet;
use harness::kubeconfig::Access;
use harness::process::Ended;
use kube::Client;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Fleet of control planes with its agents, while one test uses it.
#[derive(Debug)]
pub struct OnProcesses {
    fleet: Fleet,
    fleet_spec: FleetSpec,
    agents: BTreeMap<AgentPlace, Agent>,
}

impl OnProcesses {
    /// Returns an environment with a fleet that no other test uses ([`Fleet::own`]).
    pub async fn with_own_servers(fleet_spec: FleetSpec) -> anyhow::Result<Self> {
        Ok(Self { fleet: Fleet::own(fleet_spec.members).await?, fleet_spec, agents: BTreeMap::new() })
    }

    /// Returns all clusters that have an agent.
    fn places(&self) -> impl Iterator<Item = AgentPlace> + use<> {
        std::iter::once(AgentPlace::Hub).chain((0..self.fleet.members.len()).map(AgentPlace::Member))
    }

    /// Returns the settings for a cluster's agent.
    pub async fn spec(&self, place: AgentPlace) -> anyhow::Result<AgentSpec> {
        let index = match place {
            AgentPlace::Hub => return self.fleet.hub_agent().await,
            AgentPlace::Member(index) => index,
        };
        let mut spec = self.fleet.member_agent(&self.fleet.members[index]).await?;
        if let Some(grace) = self.fleet_spec.derived_service_grace {
            spec = spec.flag("--derived-service-grace", format!("{}ms", grace.as_millis()));
        }
        if let Some(ranges) = self.fleet_spec.source_ranges {
            spec = spec.flag("--source-ranges", format!("{}={ranges}", self.fleet.members[0].cluster_id));
        }
        Ok(spec)
    }

    /// Returns access to the hub with the rights of a member's agent, and with a new token.
    pub async fn hub_access(&self, member: usize) -> anyhow::Result<Access> {
        self.fleet.hub.access(&self.fleet.members[member].hub_user).await
    }

    #[must_use]
    pub fn hub_audit(&self) -> &Audit {
        self.fleet.hub.audit()
    }

    /// Returns a kubeconfig file for the hub, for a user with all rights.
    pub fn hub_kubeconfig(&self) -> anyhow::Result<PathBuf> {
        self.fleet.hub.admin_kubeconfig()
    }

    /// Returns a kubeconfig file for a member cluster, for a user with all rights.
    pub fn member_kubeconfig(&self, member: usize) -> anyhow::Result<PathBuf> {
        self.fleet.members[member].control_plane.admin_kubeconfig()
    }

    /// Stops the agent of a cluster gracefully, as an operator does.
    ///
    /// # Errors
    /// If no agent runs in the cluster, or the agent ends with an error.
    pub async fn stop(&mut self, place: AgentPlace) -> anyhow::Result<()> {
        let agent = self.agents.remove(&place).context("an agent runs there")?;
        let ended = agent.terminate().await?;
        ensure!(ended == Ended::Exited(0), "{ended:?}\n{}", agent.log().tail());
        Ok(())
    }
}

impl Backend for OnProcesses {
    const FAMILIES: &'static [&'static str] = &["IPv4", "IPv6"];

    async fn create(fleet_spec: FleetSpec) -> anyhow::Result<Self> {
        let fleet = Fleet::take(fleet_spec.members).await?;
        Ok(Self { fleet, fleet_spec, agents: BTreeMap::new() })
    }

    fn hub(&self) -> Client {
        self.fleet.hub.admin()
    }

    fn members(&self) -> Vec<Member> {
        let member = |member: &harness::fleet::Member| Member {
            client: member.control_plane.admin(),
            cluster_id: member.cluster_id.clone(),
            hub_namespace: member.hub_namespace.clone(),
        };
        self.fleet.members.iter().map(member).collect()
    }

    async fn namespace(&self, name: &str) -> anyhow::Result<String> {
        self.fleet.namespace(name).await
    }

    async fn start_agents(&mut self) -> anyhow::Result<()> {
        ensure!(self.agents.is_empty(), "the agents run already");
        let started =
            self.places().map(async |place| anyhow::Ok((place, self.spec(place).await?.start_ready().await?)));
        let started = try_join_all(started).await?;
        self.agents = started.into_iter().collect();
        Ok(())
    }

    async fn stop_agents(&mut self) -> anyhow::Result<()> {
        for place in self.agents.keys().copied().collect::<Vec<_>>() {
            self.stop(place).await?;
        }
        Ok(())
    }

    async fn start_agent(&mut self, place: AgentPlace) -> anyhow::Result<()> {
        let agent = self.spec(place).await?.start_ready().await?;
        self.agents.insert(place, agent);
        Ok(())
    }

    async fn stop_agent(&mut self, place: AgentPlace) -> anyhow::Result<()> {
        self.stop(place).await
    }

    async fn metrics(&self, member: usize) -> anyhow::Result<String> {
        let agent = self.agents.get(&AgentPlace::Member(member)).context("the member's agent runs")?;
        let (status, metrics) = agent.get("/metrics").await?;
        ensure!(status == 200, "{status}: {metrics}");
        Ok(metrics)
    }

    async fn mark(&self) -> anyhow::Result<FleetMark> {
        self.fleet.mark().await
    }

    async fn since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        self.fleet.since(mark).await
    }
}
