//! Tests of two replicas of each agent, on paused time: how long a takeover takes, and that a former leader undoes nothing.
//! `tests/tests/e2e/failover.rs` plays the same on real control planes with processes.

use anyhow::ensure;
use futures::future::join_all;
use harness::user::{Consume, User};
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Numbers of the replica that leads at first, and of the other.
const FIRST: usize = 0;
const SECOND: usize = 1;
const BEFORE: &[&str] = &["10.1.0.1"];
const AFTER: &[&str] = &["10.1.0.2", "10.1.0.3"];
/// Time limit of a takeover from a killed leader in docs/reliability.md. The Lease expires after 15 s, and a replica looks at its
/// Leases every 2 s, with jitter.
const TAKEOVER: Duration = Duration::from_secs(20);
/// Time limit of a takeover from a leader that released its Leases. Virtual time passes only where an agent waits, and a replica
/// that watches its Leases does not wait. On real control planes a takeover takes less than 1 s (`tests/tests/e2e/failover.rs` prints it).
const HANDOVER: Duration = Duration::from_millis(10);
/// Time for the three writes of a change. Time passes only where an agent waits.
const CHANGE: Duration = Duration::from_millis(100);

struct Pair {
    fleet: Fleet,
    exporter: User,
    importer: User,
}

impl Pair {
    /// Returns a fleet of two members with two replicas of each agent. The second member imports the Service of the first.
    async fn new() -> anyhow::Result<Self> {
        let mut fleet = Fleet::new(Options::members(2)).await?;
        fleet.make_namespace("work").await?;
        let [exporter, importer] = [0, 1].map(|index| User::new(fleet.members[index].server.admin(), "work"));
        fleet.start_agents().await?;
        for place in fleet.places() {
            fleet.start_replica(place, SECOND)?;
        }
        fleet.ready().await?;
        exporter.create_service("app").await?;
        exporter.create_slice("app", "app-1", BEFORE).await?;
        exporter.export("app").await?;
        importer.import("app", "app", Consume::ClusterIp).await?;
        importer.sees("app", BEFORE).await?;
        Ok(Self { fleet, exporter, importer })
    }

    /// Changes the endpoints. Returns the time until the importer has them.
    async fn change(&self, addresses: &[&str]) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.exporter.set_endpoints("app-1", addresses).await?;
        self.importer.sees("app", addresses).await?;
        Ok(begun.elapsed())
    }

    /// Returns the number of writes so far, without Leases, Events and heartbeats.
    fn writes(&self) -> usize {
        self.fleet.agent_writes().len()
    }
}

#[test]
fn a_replica_takes_over_from_a_killed_leader_when_its_lease_has_expired() -> anyhow::Result<()> {
    sim::paused(async {
        let mut pair = Pair::new().await?;
        for place in pair.fleet.places() {
            pair.fleet.kill_replica(place, FIRST).await;
        }
        let passed = pair.change(AFTER).await?;
        ensure!(passed <= TAKEOVER + CHANGE, "the takeover took {passed:?}");
        Ok(())
    })
}

#[test]
fn a_replica_takes_over_soon_from_a_leader_that_stops() -> anyhow::Result<()> {
    sim::paused(async {
        let mut pair = Pair::new().await?;
        let leaders: Vec<Place> = pair.fleet.places().collect();
        for place in leaders {
            pair.fleet.stop_replica(place, FIRST).await?;
        }
        let passed = pair.change(AFTER).await?;
        ensure!(passed <= HANDOVER + CHANGE, "the takeover took {passed:?}");
        Ok(())
    })
}

#[test]
fn a_leader_that_goes_on_after_its_lease_was_taken_undoes_nothing() -> anyhow::Result<()> {
    sim::paused(async {
        let pair = Pair::new().await?;
        let held = |fleet: &Fleet| -> Vec<_> {
            let first = fleet.replicas().filter(|(_, replica, ..)| *replica == FIRST);
            first.map(|(.., agent, line)| (agent.ended(), line.clone())).collect()
        };
        let leaders = held(&pair.fleet);
        // The slice changes, and the leaders have sent their writes when they are paused: the writes arrive after those of the
        // new leaders.
        leaders.iter().for_each(|(_, line)| line.hold());
        pair.change(AFTER).await?;
        let writes = pair.writes();
        leaders.iter().for_each(|(_, line)| line.release());
        let ended = timeout(Duration::from_secs(60), join_all(leaders.into_iter().map(|(ended, _)| ended))).await?;
        ensure!(ended.iter().all(Option::is_some), "a leader without its Lease still runs: {ended:?}");
        sleep(Duration::from_secs(60)).await;
        pair.importer.sees("app", AFTER).await?;
        ensure!(pair.change(BEFORE).await? <= CHANGE, "the new leaders work");
        let late = pair.writes() - writes;
        ensure!(late <= 3 + 3, "{late} writes: those of the last change, and late writes of the old leaders");
        Ok(())
    })
}
