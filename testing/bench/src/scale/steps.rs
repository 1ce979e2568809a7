//! Measurements of one scenario: the first distribution, changes at each rate, heartbeats, and restarts of both agents.

use super::fleet::Fleet;
use super::others::{self, Others};
use super::probe::Probe;
use super::scenario::Scenario;
use super::size::Size;
use crate::environment::{Memory, memory_of, processor_time, settled};
use crate::follow::Follow;
use crate::limits::{CHECK_INTERVAL, COPY, HEARTBEAT_RATE, HEARTBEATS, SETTLED};
use crate::quantiles::{Quantiles, milliseconds};
use anyhow::{Context as _, ensure};
use harness::agent::{Agent, AgentSpec};
use harness::eventually::Deadline;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, interval, sleep};

/// Results of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub scenario: Scenario,
    pub first: First,
    pub changes: Vec<Changes>,
    pub heartbeats: Heartbeats,
    pub hub_restart: Restart,
    pub member_restart: Restart,
    /// Memory of the hub agent after the changes and heartbeats.
    pub hub_memory: Memory,
    /// Memory of the agent of member 0 after the changes and heartbeats.
    pub member_memory: Memory,
}

/// First distribution of all slices.
#[derive(Clone, Debug, Serialize)]
pub struct First {
    /// Number of copies that the hub agent created.
    pub copies: u64,
    /// Time from the start of the agents until all copies exist and member 0 has imported its slices.
    pub seconds: f64,
    /// Processor time of the hub agent for each copy, until all agents settled.
    pub hub_microseconds_per_copy: f64,
    /// Number of writes by the hub agent.
    pub hub_writes: u64,
    /// Longest time in which the hub agent's `/healthz` answered.
    pub healthz_longest_milliseconds: f64,
    /// True if the hub agent kept its Lease all the time.
    pub lease_kept: bool,
    pub hub_memory: Memory,
    pub member_memory: Memory,
}

/// Changes at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Changes {
    /// Changes per second.
    pub rate: u32,
    pub changes: usize,
    /// Number of copies of changes that arrived in the hub.
    pub copies: usize,
    /// Number of copies of changes that never arrived, because a later change of the same slice replaced the change.
    pub overtaken: usize,
    /// Time from the change of the exporter in the hub until the watch shows a copy.
    pub copied: Quantiles,
    /// Time from the change of the exporter in the hub until the watch shows the slice that member 0 imported.
    pub imported: Quantiles,
    /// Processor time of the hub agent for each copy that it wrote.
    pub hub_microseconds_per_copy: f64,
    /// Processor time of the agent of member 0 for each slice that it wrote.
    pub member_microseconds_per_import: f64,
    /// Number of writes by the hub agent, divided by the number of copies that it wrote.
    pub hub_writes_per_copy: f64,
}

/// Cost of heartbeats in the hub agent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Heartbeats {
    pub heartbeats: u32,
    /// Processor time for each heartbeat. The processor time of an equally long time without heartbeats is subtracted.
    pub microseconds: f64,
    /// Processor time in one second without heartbeats and changes.
    pub idle_microseconds_per_second: f64,
    /// Number of writes by the hub agent during the heartbeats.
    pub hub_writes: u64,
}

/// Restart of one agent. The next agent starts when the previous agent has released its Leases.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Restart {
    /// Time from the start of the process until `/readyz` reports success.
    pub ready_seconds: f64,
    /// Time from the start of the process until a change that was made before the start has arrived.
    pub missed_change_seconds: f64,
    /// Time until a change that was made when the agent was ready has arrived.
    pub fresh_change_seconds: f64,
    /// Memory after the restart.
    pub memory: Memory,
    /// Number of writes by the agent, without those for the two changes.
    pub other_writes: u64,
}

/// Processor time of an agent and its writes, at one time.
#[derive(Clone, Copy)]
struct Used {
    processor: Duration,
    /// Writes of copies or imported slices, and all writes.
    writes: (u64, u64),
}

impl Used {
    fn since(self, before: Self) -> Self {
        let writes = (self.writes.0 - before.writes.0, self.writes.1 - before.writes.1);
        Self { processor: self.processor - before.processor, writes }
    }

    fn microseconds_per(self, count: u64) -> f64 {
        per(self.processor.as_secs_f64() * 1e6, count)
    }
}

/// Running agents, and the watches of the bench.
struct Running {
    fleet: Fleet,
    hub: Agent,
    member: Agent,
    copies: Follow,
    imports: Follow,
}

/// Agent to restart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Hub,
    Member,
}

/// Measures one scenario.
pub async fn measure(scenario: Scenario, size: &Size) -> anyhow::Result<Measured> {
    let fleet = Fleet::start(scenario, size).await?;
    let mut others = fleet.others();
    let (mut running, first) = Running::start(fleet).await?;
    let mut changes = Vec::new();
    for rate in size.rates.iter().copied() {
        changes.push(running.change(rate, size.seconds).await?);
    }
    let heartbeats = running.beat(&mut others).await?;
    let (hub_memory, member_memory) = running.memory()?;
    let hub_restart = running.restart(Side::Hub).await?;
    let member_restart = running.restart(Side::Member).await?;
    Fleet::stop(&running.member).await?;
    Fleet::stop(&running.hub).await?;
    Ok(Measured { scenario, first, changes, heartbeats, hub_restart, member_restart, hub_memory, member_memory })
}

impl Running {
    /// Starts the agents and measures the first distribution.
    async fn start(fleet: Fleet) -> anyhow::Result<(Self, First)> {
        let start = Instant::now();
        let (hub, member) = (fleet.hub_agent(), fleet.member_agent());
        let (hub, member) = futures::try_join!(hub.start(), member.start())?;
        let probe = Probe::start(hub.address().await?)?;
        let lease = fleet.hub_lease().await?;
        fleet.distributed().await?;
        let seconds = seconds(start.elapsed());
        let probed = probe.end()?;
        let (copies, imports) = (fleet.copies().await?, fleet.imports().await?);
        let running = Self { fleet, hub, member, copies, imports };
        running.settle().await?;
        let used = running.used(Side::Hub)?;
        let (hub_memory, member_memory) = running.memory()?;
        let first = First {
            copies: running.fleet.scenario.copies(),
            seconds,
            hub_microseconds_per_copy: used.microseconds_per(running.fleet.scenario.copies()),
            hub_writes: used.writes.1,
            healthz_longest_milliseconds: probed.into_iter().max().map_or(f64::INFINITY, milliseconds),
            lease_kept: running.fleet.hub_lease().await? == lease && running.hub.ended().is_none(),
            hub_memory,
            member_memory,
        };
        Ok((running, first))
    }

    /// Makes changes at a steady rate, and waits until the last change of each slice has arrived everywhere.
    async fn change(&mut self, rate: u32, seconds: u32) -> anyhow::Result<Changes> {
        let services = self.fleet.scenario.changed();
        let before = (self.used(Side::Hub)?, self.used(Side::Member)?);
        let made = self.fleet.changes(&services, rate, seconds).await?;
        let last: BTreeMap<u32, u32> = made.iter().map(|(service, marker, _)| (*service, *marker)).collect();
        for (service, marker) in last {
            self.arrived(service, marker).await?;
        }
        self.settle().await?;
        let (hub, member) = (self.used(Side::Hub)?.since(before.0), self.used(Side::Member)?.since(before.1));

        let (mut copied, mut imported, mut expected) = (Vec::new(), Vec::new(), 0);
        for (service, marker, sent) in &made {
            expected += usize::try_from(self.fleet.scenario.importers_of(*service))?;
            copied.extend(self.copies.times(*marker)?.into_iter().map(|at| at - *sent));
            imported.extend(self.imports.times(*marker)?.into_iter().map(|at| at - *sent));
        }
        ensure!(copied.len() <= expected, "{} copies of {expected}", copied.len());
        Ok(Changes {
            rate,
            changes: made.len(),
            copies: copied.len(),
            overtaken: expected - copied.len(),
            copied: Quantiles::of(copied),
            imported: Quantiles::of(imported),
            hub_microseconds_per_copy: hub.microseconds_per(hub.writes.0),
            member_microseconds_per_import: member.microseconds_per(member.writes.0),
            hub_writes_per_copy: per(count(hub.writes.1), hub.writes.0),
        })
    }

    /// Measures the cost of heartbeats. The usual heartbeats of the other members end.
    async fn beat(&self, others: &mut Others) -> anyhow::Result<Heartbeats> {
        others.pause_heartbeats().await?;
        // With each heartbeat, the hub agent updates the numbers of the member's objects. So it makes these writes
        // here.
        for member in 1..self.fleet.scenario.members {
            others::renew(&self.fleet.hub_client, &self.fleet.clock, member).await?;
        }
        self.settle().await?;
        let duration = Duration::from_secs(1) * HEARTBEATS / HEARTBEAT_RATE;
        let start = self.used(Side::Hub)?;
        sleep(duration).await;
        let idle = self.used(Side::Hub)?;
        let mut ticks = interval(Duration::from_secs(1) / HEARTBEAT_RATE);
        for member in (1..self.fleet.scenario.members).cycle().take(usize::try_from(HEARTBEATS)?) {
            ticks.tick().await;
            others::renew(&self.fleet.hub_client, &self.fleet.clock, member).await?;
        }
        let busy = self.used(Side::Hub)?.since(idle);
        let idle = idle.since(start);
        Ok(Heartbeats {
            heartbeats: HEARTBEATS,
            microseconds: busy.microseconds_per(HEARTBEATS.into()) - idle.microseconds_per(HEARTBEATS.into()),
            idle_microseconds_per_second: idle.processor.as_secs_f64() * 1e6 / duration.as_secs_f64(),
            hub_writes: busy.writes.1,
        })
    }

    /// Restarts one agent, with one change while no agent runs and one change as soon as the new agent is ready. Both
    /// change a Service that member 0 imports.
    async fn restart(&mut self, side: Side) -> anyhow::Result<Restart> {
        let imports = self.fleet.scenario.imports_of(0);
        let service = self.fleet.scenario.changed().into_iter().find(|service| imports.contains(service));
        let service = service.context("member 0 imports no Service that can change")?;
        let before = self.writes(side);
        let spec = match side {
            Side::Hub => self.fleet.hub_agent(),
            Side::Member => self.fleet.member_agent(),
        };
        Fleet::stop(self.agent(side)).await?;
        let (missed, write) = self.fleet.change(service);
        write.await?;
        let start = Instant::now();
        self.start_again(side, &spec).await?;
        let ready = Instant::now();
        let (fresh, write) = self.fleet.change(service);
        write.await?;
        // The change that the agent missed may arrive together with the fresh change, so both can have the same time.
        self.arrived(service, fresh).await?;
        let fresh = self.first_arrival(side, fresh)?.context("the fresh change has arrived")?;
        let missed = self.first_arrival(side, missed)?.unwrap_or(fresh);
        self.settle().await?;
        let (after, memory) = (self.writes(side), memory_of(self.agent(side).pid())?);
        Ok(Restart {
            ready_seconds: seconds(ready - start),
            missed_change_seconds: seconds(missed - start),
            fresh_change_seconds: seconds(fresh - ready),
            memory,
            other_writes: (after.1 - before.1) - (after.0 - before.0),
        })
    }

    async fn start_again(&mut self, side: Side, spec: &AgentSpec) -> anyhow::Result<()> {
        let agent = spec.start_ready().await?;
        match side {
            Side::Hub => self.hub = agent,
            Side::Member => self.member = agent,
        }
        Ok(())
    }

    fn first_arrival(&self, side: Side, marker: u32) -> anyhow::Result<Option<Instant>> {
        let arrivals = match side {
            Side::Hub => self.copies.times(marker)?,
            Side::Member => self.imports.times(marker)?,
        };
        Ok(arrivals.first().copied())
    }

    /// Waits until the state with this marker has arrived in all copies, and in member 0 if it imports the Service.
    async fn arrived(&self, service: u32, marker: u32) -> anyhow::Result<()> {
        let scenario = self.fleet.scenario;
        let imports = usize::from(scenario.importers(service).any(|member| member == 0));
        let expected = (usize::try_from(scenario.importers_of(service))?, imports);
        let deadline = Deadline::after(SETTLED);
        loop {
            let arrived = (self.copies.times(marker)?.len(), self.imports.times(marker)?.len());
            if arrived.0 >= expected.0 && arrived.1 >= expected.1 {
                return Ok(());
            }
            deadline.check().with_context(|| format!("{arrived:?} of {expected:?} copies and imported slices"))?;
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Waits until the agents have made no writes for a while.
    async fn settle(&self) -> anyhow::Result<()> {
        let copies = u32::try_from(self.fleet.scenario.copies())?;
        let writes = async || anyhow::Ok([Side::Hub, Side::Member].map(|side| self.writes(side)));
        settled(SETTLED + COPY * copies, writes, |writes: &[(u64, u64); 2]| *writes).await.map(drop)
    }

    fn agent(&self, side: Side) -> &Agent {
        match side {
            Side::Hub => &self.hub,
            Side::Member => &self.member,
        }
    }

    /// Returns the number of an agent's writes to copies or imported slices, and of all its writes.
    fn writes(&self, side: Side) -> (u64, u64) {
        match side {
            Side::Hub => self.fleet.hub_agent_writes(),
            Side::Member => self.fleet.member_agent_writes(),
        }
    }

    fn used(&self, side: Side) -> anyhow::Result<Used> {
        Ok(Used { processor: processor_time(self.agent(side).pid())?, writes: self.writes(side) })
    }

    fn memory(&self) -> anyhow::Result<(Memory, Memory)> {
        Ok((memory_of(self.hub.pid())?, memory_of(self.member.pid())?))
    }
}

fn seconds(duration: Duration) -> f64 {
    milliseconds(duration) / 1e3
}

#[allow(clippy::cast_precision_loss, reason = "numbers of writes are small")]
fn count(writes: u64) -> f64 {
    writes as f64
}

/// Returns `sum` divided by `number`, with one decimal. If `number` is 0, returns 0.
fn per(sum: f64, number: u64) -> f64 {
    if number == 0 { 0.0 } else { (sum / count(number) * 10.0).round() / 10.0 }
}
