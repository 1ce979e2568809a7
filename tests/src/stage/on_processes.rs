//! A fleet on control planes and agents in processes of their own.

use super::{Cast, Ground, Member};
use crate::agent::Agent;
use crate::audit::{FleetLedger, FleetMark};
use crate::fleet::Fleet;
use crate::process::Ended;
use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use kube::Client;
use std::time::Duration;

/// The fleet that the tests of a process share, for as long as one has it.
#[derive(Debug)]
pub struct OnProcesses {
    fleet: Fleet,
    derived_service_grace: Option<Duration>,
    /// The hub's, then the members' in their order.
    agents: Vec<Agent>,
}

impl Ground for OnProcesses {
    async fn set(cast: Cast) -> anyhow::Result<Self> {
        let fleet = Fleet::take(cast.members).await?;
        Ok(Self { fleet, derived_service_grace: cast.derived_service_grace, agents: Vec::new() })
    }

    fn hub(&self) -> Client {
        self.fleet.hub.admin()
    }

    fn members(&self) -> Vec<Member> {
        let member = |member: &crate::fleet::Member| Member {
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
        let mut specs = vec![self.fleet.hub_agent()?];
        for member in &self.fleet.members {
            let mut spec = self.fleet.member_agent(member)?;
            if let Some(grace) = self.derived_service_grace {
                spec = spec.flag("--derived-service-grace", format!("{}ms", grace.as_millis()));
            }
            specs.push(spec);
        }
        self.agents = try_join_all(specs.iter().map(|spec| spec.start_ready())).await?;
        Ok(())
    }

    async fn stop_agents(&mut self) -> anyhow::Result<()> {
        for agent in self.agents.drain(..) {
            let ended = agent.terminate().await?;
            ensure!(ended == Ended::Exited(0), "{ended:?}\n{}", agent.log().tail());
        }
        Ok(())
    }

    async fn metrics(&self, member: usize) -> anyhow::Result<String> {
        let agent = self.agents.get(member + 1).context("the member's agent runs")?;
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
