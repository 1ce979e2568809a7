//! Tests of two replicas of each agent on real control planes: a leader that is killed, that stops, and that is frozen.
//! `testing/sim/tests/fleets/failover_on_memkube.rs` checks the exact durations on paused time.

use anyhow::ensure;
use harness::agent::{Agent, AgentSpec};
use harness::fleet::Fleet;
use harness::process::Ended;
use harness::run;
use harness::user::{Consume, User};
use std::time::Duration;
use tokio::time::Instant;

const BEFORE: &[&str] = &["10.1.0.1"];
const AFTER: &[&str] = &["10.1.0.2", "10.1.0.3"];

/// Limit for a takeover after a kill: the documented 3 s, and what a busy machine adds. `failover_on_memkube` checks
/// exact times.
const AFTER_KILL: Duration = Duration::from_secs(20);
/// Limit for a takeover after a clean stop: the documented second, and what a busy machine adds.
const AFTER_STOP: Duration = Duration::from_secs(10);

/// Fleet of two members with two replicas of each agent. The second member imports a Service of the first.
struct Pair {
    exporter: User,
    importer: User,
    leaders: Vec<Agent>,
    /// Replicas that take over. They end when this value is dropped.
    _standbys: Vec<Agent>,
    fleet: Fleet,
}

/// Gives an agent Leases with the default durations, so that a takeover is possible while the test waits.
fn with_default_leases(spec: AgentSpec) -> AgentSpec {
    spec.flag("--leader-election-lease-duration", "3s").flag("--leader-election-renew-deadline", "2s")
}

/// Gives an agent Leases that a replica reads once in minutes, so that it takes over in time only if it watches them.
fn with_seldom_read_leases(spec: AgentSpec) -> AgentSpec {
    spec.flag("--leader-election-lease-duration", "300s")
        .flag("--leader-election-renew-deadline", "250s")
        .flag("--leader-election-retry-period", "200s")
}

fn leads(line: &str) -> Option<()> {
    line.contains("leading").then_some(())
}

impl Pair {
    async fn start(with_leases: fn(AgentSpec) -> AgentSpec) -> anyhow::Result<Self> {
        let fleet = Fleet::take(2).await?;
        let namespace = fleet.namespace("failover").await?;
        let user = |index: usize| User::new(fleet.members[index].control_plane.admin(), &namespace);
        let (exporter, importer) = (user(0), user(1));
        let mut specs = vec![fleet.hub_agent().await?];
        for member in &fleet.members {
            specs.push(fleet.member_agent(member).await?);
        }
        let (mut leaders, mut standbys) = (Vec::new(), Vec::new());
        for spec in specs.into_iter().map(with_leases) {
            let leader = spec.start_ready().await?;
            leader.log().find("that it leads", leads).await?;
            leaders.push(leader);
            standbys.push(spec.start_ready().await?);
        }
        exporter.export_new("app", BEFORE).await?;
        importer.import("app", "app", Consume::ClusterIp).await?;
        importer.sees("app", BEFORE).await?;
        Ok(Self { exporter, importer, leaders, _standbys: standbys, fleet })
    }

    /// Changes the endpoints, and waits until the importer has them.
    async fn change(&self, addresses: &[&str]) -> anyhow::Result<()> {
        self.exporter.set_endpoints("app-1", addresses).await?;
        self.importer.sees("app", addresses).await?;
        Ok(())
    }

    /// Changes the endpoints after the last leader ended, and checks how long the importer waits for them.
    async fn change_without_leaders(&self, at_most: Duration) -> anyhow::Result<()> {
        let ended = Instant::now();
        self.change(AFTER).await?;
        let took = ended.elapsed();
        println!("a change is imported {took:?} after the last leader ended");
        ensure!(
            took <= at_most,
            "a change is imported {took:?} after the last leader ended, and not within {at_most:?}"
        );
        Ok(())
    }
}

#[test]
fn replicas_take_over_from_leaders_that_are_killed() -> anyhow::Result<()> {
    run(async {
        let mut pair = Pair::start(with_default_leases).await?;
        for leader in std::mem::take(&mut pair.leaders) {
            leader.kill().await?;
        }
        pair.change_without_leaders(AFTER_KILL).await
    })
}

#[test]
fn replicas_take_over_at_once_from_leaders_that_stop() -> anyhow::Result<()> {
    run(async {
        let pair = Pair::start(with_seldom_read_leases).await?;
        for leader in &pair.leaders {
            ensure!(leader.terminate().await? == Ended::Exited(0), "the stop was clean");
        }
        pair.change_without_leaders(AFTER_STOP).await
    })
}

/// Also rule K3.
#[test]
fn leaders_that_go_on_after_their_leases_were_taken_undo_nothing() -> anyhow::Result<()> {
    run(async {
        let pair = Pair::start(with_default_leases).await?;
        for leader in &pair.leaders {
            leader.freeze().await?;
        }
        pair.change(AFTER).await?;
        let mark = pair.fleet.mark().await?;
        for leader in &pair.leaders {
            leader.thaw().await?;
        }
        for leader in &pair.leaders {
            let lost = |line: &str| line.contains("leadership was lost").then_some(());
            leader.log().find("that it does not lead any more", lost).await?;
        }
        pair.importer.sees("app", AFTER).await?;
        let ledger = pair.fleet.since(&mark).await?.objects();
        let late: usize = ledger.clusters().map(harness::audit::Ledger::count).sum();
        ensure!(late == 0, "the old leaders wrote:\n{ledger}");
        pair.change(BEFORE).await
    })
}
