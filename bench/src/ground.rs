//! The fleet that is measured: a hub, an exporter, an importer, and their agents as processes.

use crate::bare::Bare;
use crate::exposition::Exposition;
use crate::limits::{QUIET, SETTLED};
use anyhow::{Context as _, ensure};
use fleetnet_runtime::client::Cluster;
use fleetnet_tests::agent::Agent;
use fleetnet_tests::audit::{FleetLedger, FleetMark};
use fleetnet_tests::control_plane::ControlPlane;
use fleetnet_tests::eventually::Deadline;
use fleetnet_tests::fleet::Fleet;
use fleetnet_tests::process::Ended;
use futures::future::try_join_all;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The agents, in the order in which a change meets them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The member agent that exports.
    Exporter,
    /// The hub agent.
    Hub,
    /// The member agent that imports.
    Importer,
}

/// Resident memory of a process, in MiB.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Memory {
    /// Now.
    pub resident_mib: f64,
    /// Of it, what the process has allocated; the rest is its program.
    pub allocated_mib: f64,
    /// At most so far.
    pub peak_mib: f64,
}

/// What an agent tells of itself at some time, and the kernel of it.
#[derive(Clone, Debug)]
pub struct Scrape {
    /// Its metrics.
    pub metrics: Exposition,
    /// What it has taken of processors so far.
    pub processor: Duration,
}

/// The fleet with a namespace for its users.
pub struct Ground {
    /// The harness's fleet of two members: the first exports, the second imports.
    pub fleet: Fleet,
    /// The users' namespace, everywhere.
    pub namespace: String,
    agents: BTreeMap<Role, Agent>,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Exporter, Self::Hub, Self::Importer];
}

impl Ground {
    /// Takes a fleet and starts its agents.
    ///
    /// # Errors
    /// Where a control plane or an agent cannot be had; so of all that follows.
    pub async fn take() -> anyhow::Result<Self> {
        let fleet = Fleet::take(2).await?;
        let namespace = fleet.namespace("work").await?;
        let mut ground = Self { fleet, namespace, agents: BTreeMap::new() };
        ground.start_agents().await?;
        Ok(ground)
    }

    /// The control plane where a role's own objects are.
    #[must_use]
    pub fn control_plane(&self, role: Role) -> &ControlPlane {
        match role {
            Role::Exporter => &self.fleet.members[0].control_plane,
            Role::Hub => &self.fleet.hub,
            Role::Importer => &self.fleet.members[1].control_plane,
        }
    }

    /// A bare client of that control plane, with connections of its own.
    #[allow(clippy::missing_errors_doc)]
    pub async fn bare(&self, role: Role) -> anyhow::Result<Bare> {
        let control_plane = self.control_plane(role);
        let kubeconfig = control_plane.admin_kubeconfig()?;
        Ok(Bare::new(Cluster::discover(control_plane.name(), Some(&kubeconfig), "bench").await?))
    }

    /// Starts all agents and waits until they are ready.
    #[allow(clippy::missing_errors_doc)]
    pub async fn start_agents(&mut self) -> anyhow::Result<()> {
        let start = async |role: Role| {
            let spec = match role {
                Role::Exporter => self.fleet.member_agent(&self.fleet.members[0]).await?,
                Role::Hub => self.fleet.hub_agent().await?,
                Role::Importer => self.fleet.member_agent(&self.fleet.members[1]).await?,
            };
            anyhow::Ok((role, spec.start_ready().await?))
        };
        let started = try_join_all(Role::ALL.map(start)).await?;
        self.agents = started.into_iter().collect();
        Ok(())
    }

    /// Stops all agents, which gives their Leases back; tells when the last was gone.
    #[allow(clippy::missing_errors_doc)]
    pub async fn stop_agents(&mut self) -> anyhow::Result<Instant> {
        let agents = std::mem::take(&mut self.agents);
        for ended in try_join_all(agents.values().map(Agent::terminate)).await? {
            ensure!(ended == Ended::Exited(0), "an agent ended with {ended:?}");
        }
        Ok(Instant::now())
    }

    /// A mark in every audit log.
    #[allow(clippy::missing_errors_doc)]
    pub async fn mark(&self) -> anyhow::Result<FleetMark> {
        self.fleet.mark().await
    }

    /// What was written since a mark, by whomever.
    #[allow(clippy::missing_errors_doc)]
    pub async fn since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        self.fleet.since(mark).await
    }

    /// Waits until the agents have written nothing for [`QUIET`], Leases apart; tells what they wrote since the mark.
    ///
    /// # Errors
    /// Where they go on for longer than [`SETTLED`].
    pub async fn settled_since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        let deadline = Deadline::after(SETTLED);
        let mut before = self.since(mark).await?;
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.since(mark).await?;
            if agents_writes(&now) == agents_writes(&before) {
                return Ok(now);
            }
            deadline.check().context("the agents do not settle")?;
            before = now;
        }
    }

    /// Metrics and processor time of each agent.
    #[allow(clippy::missing_errors_doc)]
    pub async fn scrape(&self) -> anyhow::Result<BTreeMap<Role, Scrape>> {
        let mut scrapes = BTreeMap::new();
        for (role, agent) in &self.agents {
            let (status, text) = agent.get("/metrics").await?;
            ensure!(status == 200, "{status}: {text}");
            let processor = processor_time(agent.pid())?;
            scrapes.insert(*role, Scrape { metrics: Exposition::parse(&text), processor });
        }
        Ok(scrapes)
    }

    /// What each agent takes of memory.
    #[allow(clippy::missing_errors_doc)]
    pub fn memory(&self) -> anyhow::Result<BTreeMap<Role, Memory>> {
        let mut memory = BTreeMap::new();
        for (role, agent) in &self.agents {
            memory.insert(*role, memory_of(agent.pid())?);
        }
        Ok(memory)
    }
}

/// How many writes there are by agents, Leases and Events apart.
#[must_use]
pub fn agents_writes(ledger: &FleetLedger) -> usize {
    ledger.objects().clusters().map(fleetnet_tests::audit::Ledger::count).sum()
}

/// What a process takes of memory.
///
/// # Errors
/// Where it is gone.
pub fn memory_of(pid: i32) -> anyhow::Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let read = |field| mib(&status, field).with_context(|| format!("no {field} in {path}"));
    Ok(Memory { resident_mib: read("VmRSS:")?, allocated_mib: read("RssAnon:")?, peak_mib: read("VmHWM:")? })
}

/// Processor time of all threads of a process that there are, to the nanosecond.
///
/// # Errors
/// Where it is gone.
pub fn processor_time(pid: i32) -> anyhow::Result<Duration> {
    let folder = format!("/proc/{pid}/task");
    let mut sum = Duration::ZERO;
    for thread in std::fs::read_dir(&folder).with_context(|| folder.clone())? {
        let path = thread?.path().join("schedstat");
        // A thread that has ended meanwhile had nothing to do with what is measured.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
        sum += Duration::from_nanos(nanoseconds.with_context(|| format!("{}: {text}", path.display()))?);
    }
    Ok(sum)
}

/// A size in a process's status, of kB, in MiB to a tenth.
fn mib(status: &str, field: &str) -> Option<f64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: f64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib / 102.4).round() / 10.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_read_in_mebibytes() {
        let status = "Name:\tx\nVmHWM:\t   20480 kB\nVmRSS:\t   10291 kB\n";
        assert_eq!(super::mib(status, "VmHWM:"), Some(20.0));
        assert_eq!(super::mib(status, "VmRSS:"), Some(10.0));
        assert_eq!(super::mib(status, "VmSwap:"), None);
    }
}
