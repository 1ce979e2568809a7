//! Fleet that is measured: a hub, an exporter, an importer, and their agents as processes.

use crate::bare::Bare;
use crate::exposition::Exposition;
use crate::limits::{METRICS, QUIET, SETTLED};
use crate::stream::certificate::Certificate;
use anyhow::{Context as _, ensure};
use fleetnet_runtime::io::client::Cluster;
use futures::future::try_join_all;
use harness::agent::Agent;
use harness::audit::{FleetLedger, FleetMark};
use harness::control_plane::ControlPlane;
use harness::eventually::Deadline;
use harness::fleet::Fleet;
use harness::process::Ended;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Agents of the measured fleet. The order of the variants is the order in which the agents handle a change.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Member agent of the exporting member.
    Exporter,
    /// Hub agent.
    Hub,
    /// Member agent of the importing member.
    Importer,
}

/// Resident memory of a process in MiB.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Memory {
    /// Current resident memory.
    pub resident_mib: f64,
    /// Part of the resident memory that the process has allocated. The remaining part is mapped from files, such as the
    /// program.
    pub allocated_mib: f64,
    /// Peak resident memory.
    pub peak_mib: f64,
}

/// Metrics and processor time of an agent at one time.
#[derive(Clone, Debug)]
pub struct Scrape {
    pub metrics: Exposition,
    /// Processor time that the agent has used.
    pub processor: Duration,
}

/// Measured fleet, with a namespace for its users.
pub struct Environment {
    /// Fleet of the end-to-end harness with two members: the first exports, the second imports.
    pub fleet: Fleet,
    /// Namespace of the users' objects in every cluster.
    pub namespace: String,
    agents: BTreeMap<Role, Agent>,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Exporter, Self::Hub, Self::Importer];
}

impl Environment {
    /// Acquires a fleet from the test harness and starts its agents.
    pub async fn take() -> anyhow::Result<Self> {
        let fleet = Fleet::take(2).await?;
        let namespace = fleet.namespace("work").await?;
        let mut environment = Self { fleet, namespace, agents: BTreeMap::new() };
        environment.start_agents().await?;
        Ok(environment)
    }

    /// Returns the control plane of the cluster that a role's agent runs in.
    #[must_use]
    pub fn control_plane(&self, role: Role) -> &ControlPlane {
        match role {
            Role::Exporter => &self.fleet.members[0].control_plane,
            Role::Hub => &self.fleet.hub,
            Role::Importer => &self.fleet.members[1].control_plane,
        }
    }

    /// Returns a client for the cluster of a role, with its own connections.
    pub async fn bare(&self, role: Role) -> anyhow::Result<Bare> {
        let control_plane = self.control_plane(role);
        let kubeconfig = control_plane.admin_kubeconfig()?;
        Ok(Bare::new(Cluster::discover(control_plane.name(), Some(&kubeconfig), "bench").await?))
    }

    /// Starts all agents and waits until they are ready.
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

    /// Starts the hub agent with a slice stream, and then the agents of both members, which use it. Waits until they
    /// have streams.
    pub async fn start_agents_with_streams(&mut self, certificate: &Certificate) -> anyhow::Result<()> {
        let hub_agent = certificate.served_by(self.fleet.hub_agent().await?).start_ready().await?;
        let address = hub_agent.slice_stream_address().await?.to_string();
        let member = async |index: usize| {
            let spec = self.fleet.member_agent(&self.fleet.members[index]).await?;
            let spec = spec.flag("--slice-stream-address", &address);
            let agent = spec.flag("--slice-stream-ca-file", certificate.authority()).start_ready().await?;
            agent.metrics_have("fleetnet_slice_stream_connected 1").await?;
            anyhow::Ok(agent)
        };
        let (exporter, importer) = futures::try_join!(member(0), member(1))?;
        self.agents = BTreeMap::from([(Role::Exporter, exporter), (Role::Hub, hub_agent), (Role::Importer, importer)]);
        Ok(())
    }

    /// Stops all agents, which release their Leases. Returns the time at which the last agent ended.
    pub async fn stop_agents(&mut self) -> anyhow::Result<Instant> {
        let agents = std::mem::take(&mut self.agents);
        for ended in try_join_all(agents.values().map(Agent::terminate)).await? {
            ensure!(ended == Ended::Exited(0), "an agent ended with {ended:?}");
        }
        Ok(Instant::now())
    }

    pub async fn mark(&self) -> anyhow::Result<FleetMark> {
        self.fleet.mark().await
    }

    /// Returns all writes in the fleet by any user since `mark`, which is a position in each cluster's audit log.
    pub async fn since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        self.fleet.since(mark).await
    }

    /// Waits until the agents have made no writes except Leases for the duration [`QUIET`]. Returns the fleet's writes
    /// since `mark`, which is a position in each cluster's audit log.
    ///
    /// # Errors
    /// If the agents still write after the time limit [`SETTLED`].
    pub async fn settled_since(&self, mark: &FleetMark) -> anyhow::Result<FleetLedger> {
        settled(SETTLED, async || self.since(mark).await, agents_writes).await
    }

    /// Returns metrics and processor time of each agent.
    pub async fn scrape(&self) -> anyhow::Result<BTreeMap<Role, Scrape>> {
        let mut scrapes = BTreeMap::new();
        tokio::time::sleep(METRICS).await;
        for (role, agent) in &self.agents {
            let (status, text) = agent.get("/metrics").await?;
            ensure!(status == 200, "{status}: {text}");
            let processor = processor_time(agent.pid())?;
            scrapes.insert(*role, Scrape { metrics: Exposition::parse(&text), processor });
        }
        Ok(scrapes)
    }

    pub fn memory(&self) -> anyhow::Result<BTreeMap<Role, Memory>> {
        let mut memory = BTreeMap::new();
        for (role, agent) in &self.agents {
            memory.insert(*role, memory_of(agent.pid())?);
        }
        Ok(memory)
    }
}

/// Reads something with writes until the number of its writes has not changed for the duration [`QUIET`]. Returns what
/// was read last.
///
/// # Errors
/// If the number still changes after the time limit.
pub async fn settled<T, N: PartialEq>(
    limit: Duration,
    read: impl AsyncFn() -> anyhow::Result<T>,
    writes: impl Fn(&T) -> N,
) -> anyhow::Result<T> {
    let deadline = Deadline::after(limit);
    let mut before = writes(&read().await?);
    loop {
        tokio::time::sleep(QUIET).await;
        let last = read().await?;
        let now = writes(&last);
        if now == before {
            return Ok(last);
        }
        deadline.check().context("the agents do not settle")?;
        before = now;
    }
}

/// Returns the number of the agents' writes in `ledger`. Writes of Leases and Events are not counted.
#[must_use]
pub fn agents_writes(ledger: &FleetLedger) -> usize {
    ledger.objects().clusters().map(harness::audit::Ledger::count).sum()
}

/// Returns the memory of a process. Fails if the process has ended.
pub fn memory_of(pid: i32) -> anyhow::Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let read = |field| mib(&status, field).with_context(|| format!("no {field} in {path}"));
    Ok(Memory { resident_mib: read("VmRSS:")?, allocated_mib: read("RssAnon:")?, peak_mib: read("VmHWM:")? })
}

/// Returns the processor time of all current threads of a process. Fails if the process has ended.
pub fn processor_time(pid: i32) -> anyhow::Result<Duration> {
    let folder = format!("/proc/{pid}/task");
    let mut sum = Duration::ZERO;
    for thread in std::fs::read_dir(&folder).with_context(|| folder.clone())? {
        let path = thread?.path().join("schedstat");
        // Skip a thread that has ended, so that its file no longer exists. Such a thread takes no part in the measured
        // work.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
        sum += Duration::from_nanos(nanoseconds.with_context(|| format!("{}: {text}", path.display()))?);
    }
    Ok(sum)
}

/// Returns a size from a process's `status` file in /proc, converted from kB to MiB with one decimal.
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
