//! Two replicas of an agent, each of which is a pod: [`Replicas`].

use crate::clock;
use crate::gates::Gates;
use anyhow::Context as _;
use harness::agent::{Agent, AgentSpec};
use harness::control_plane::ControlPlane;
use harness::eventually::Deadline;
use harness::fleet::FLEET_SYSTEM;
use harness::gate::Gate;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Variable with the UID of an agent's pod.
const POD_UID: &str = "POD_UID";

/// Duration and renew deadline of Leases: the defaults of the flags, and those of older agents and of Go agents.
const DEFAULT_LEASES: [&str; 2] = ["3s", "2s"];
const OLDER_LEASES: [&str; 2] = ["15s", "10s"];

/// Process that follows a killed one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Successor {
    /// Container of the same pod that starts again.
    SamePod,
    /// Process of a new pod. The other replica takes over.
    NewPod,
}

/// Running replicas of one agent. They are killed when this value is dropped.
#[derive(Debug)]
pub struct Replicas {
    /// Name of the agent in messages.
    name: String,
    leases: Api<Lease>,
    replicas: Vec<Replica>,
    /// Number of pods so far.
    pods: u32,
}

#[derive(Debug)]
struct Replica {
    spec: AgentSpec,
    gates: Gates,
    pod_uid: String,
    /// `None` while the agent is killed.
    agent: Option<Agent>,
}

impl Replicas {
    /// Starts two replicas, one after the other, so that the first one leads.
    pub(crate) async fn start(
        name: &str,
        control_plane: &ControlPlane,
        specs: [(AgentSpec, Gates); 2],
    ) -> anyhow::Result<Self> {
        let leases = Api::namespaced(control_plane.admin(), FLEET_SYSTEM);
        let mut replicas = Self { name: name.to_owned(), leases, replicas: Vec::new(), pods: 0 };
        for (spec, gates) in specs {
            // The harness sets longer Leases.
            let spec = with_leases(spec, DEFAULT_LEASES);
            let pod_uid = replicas.new_pod();
            let agent = spec.clone().variable(POD_UID, &pod_uid).start_ready().await?;
            replicas.replicas.push(Replica { spec, gates, pod_uid, agent: Some(agent) });
            replicas.leader().await?;
        }
        Ok(replicas)
    }

    /// Returns the UID of a new pod.
    fn new_pod(&mut self) -> String {
        self.pods += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.pods)
    }

    /// Kills the leader with SIGKILL, and starts its successor at once. Returns the time of the kill, in microseconds
    /// since 1970.
    pub async fn kill_leader(&mut self, successor: Successor) -> anyhow::Result<i64> {
        let leader = self.leader().await?;
        let agent = self.replicas[leader].agent.take().context("a replica runs")?;
        let killed = clock::now().as_microsecond();
        agent.kill().await?;
        if successor == Successor::NewPod {
            self.replicas[leader].pod_uid = self.new_pod();
        }
        let replica = &mut self.replicas[leader];
        replica.agent = Some(replica.spec.clone().variable(POD_UID, &replica.pod_uid).start().await?);
        Ok(killed)
    }

    /// Freezes the leader (SIGSTOP) for this time.
    pub async fn freeze_leader(&self, time: Duration) -> anyhow::Result<()> {
        let leader = self.leader().await?;
        let agent = self.replicas[leader].agent.as_ref().context("a replica runs")?;
        agent.freeze().await?;
        tokio::time::sleep(time).await;
        agent.thaw().await
    }

    /// Ends the connections of the leader to its API servers, and lets none begin for this time, and until the other
    /// replica holds all Leases. The leader's process runs on.
    pub async fn cut_leader_off(&self, time: Duration) -> anyhow::Result<()> {
        let leader = self.leader().await?;
        let gates = &self.replicas[leader].gates;
        gates.set_state(Gate::Shut)?;
        tokio::time::sleep(time).await;
        self.leader_other_than(Some(leader)).await?;
        gates.set_state(Gate::Open)
    }

    /// Stops each replica and starts its successor in a new pod, one replica after the other, as a rolling update of a
    /// Deployment.
    pub async fn replace(&mut self) -> anyhow::Result<()> {
        for index in 0..self.replicas.len() {
            self.replace_one(index).await?;
            self.leader().await?;
        }
        Ok(())
    }

    /// Replaces all replicas as [`Self::replace`] does, by agents whose program is in this folder. `None` for the
    /// program of the present sources.
    pub async fn replace_by(&mut self, folder: Option<&Path>) -> anyhow::Result<()> {
        let leases = if folder.is_some() { OLDER_LEASES } else { DEFAULT_LEASES };
        for index in 0..self.replicas.len() {
            let replica = &mut self.replicas[index];
            replica.spec = with_leases(replica.spec.clone().from_folder(folder), leases);
            self.replace_one(index).await?;
            self.is_led().await?;
        }
        if folder.is_none() {
            self.leader().await?;
        }
        Ok(())
    }

    /// Stops a replica, and starts its successor in a new pod.
    async fn replace_one(&mut self, index: usize) -> anyhow::Result<()> {
        let pod_uid = self.new_pod();
        let replica = &mut self.replicas[index];
        if let Some(agent) = replica.agent.take() {
            agent.terminate().await?;
        }
        replica.pod_uid = pod_uid;
        replica.agent = Some(replica.spec.clone().variable(POD_UID, &replica.pod_uid).start_ready().await?);
        Ok(())
    }

    /// Kills all replicas with SIGKILL. None starts again.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        for agent in self.replicas.iter_mut().filter_map(|replica| replica.agent.take()) {
            agent.kill().await?;
        }
        Ok(())
    }

    /// Waits until all replicas are ready and one of them leads.
    pub async fn are_ready(&self) -> anyhow::Result<()> {
        for replica in &self.replicas {
            replica.agent.as_ref().context("a replica runs")?.ready().await?;
        }
        self.leader().await.map(drop)
    }

    /// Returns the index of the replica that holds all Leases. Waits until there is one.
    async fn leader(&self) -> anyhow::Result<usize> {
        self.leader_other_than(None).await
    }

    /// Returns the index of the replica that holds all Leases. Waits until there is one, and it is not this one.
    async fn leader_other_than(&self, former: Option<usize>) -> anyhow::Result<usize> {
        let leader_of = |holders: &[String]| {
            let leads = |replica: &Replica| holders.iter().all(|holder| holder.contains(&replica.pod_uid));
            self.replicas.iter().position(leads).filter(|leader| Some(*leader) != former)
        };
        self.holders(leader_of).await
    }

    /// Waits until one process holds all Leases. The names of older agents do not contain their pods.
    async fn is_led(&self) -> anyhow::Result<()> {
        let is_one = |holders: &[String]| {
            let first = &holders[0];
            (!first.is_empty() && holders.iter().all(|holder| holder == first)).then_some(())
        };
        self.holders(is_one).await
    }

    /// Waits until the holders of all Leases give a value.
    async fn holders<T>(&self, value: impl Fn(&[String]) -> Option<T>) -> anyhow::Result<T> {
        let deadline = Deadline::start();
        loop {
            let leases = self.leases.list(&ListParams::default()).await?;
            let holders: Vec<String> = leases
                .into_iter()
                .map(|lease| lease.spec.and_then(|it| it.holder_identity).unwrap_or_default())
                .collect();
            if let Some(value) = Some(&holders).filter(|holders| !holders.is_empty()).and_then(|holders| value(holders))
            {
                return Ok(value);
            }
            deadline.pause(|| format!("no agent of {} holds all Leases: {holders:?}", self.name)).await?;
        }
    }
}

fn with_leases(spec: AgentSpec, [duration, deadline]: [&str; 2]) -> AgentSpec {
    spec.flag("--leader-election-lease-duration", duration).flag("--leader-election-renew-deadline", deadline)
}
