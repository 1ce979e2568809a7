//! Tests of two replicas of each agent, on paused time: how long a takeover takes, and that a former leader undoes
//! nothing. `testing/scenarios/tests/e2e/failover.rs` plays the same on real control planes with processes.

use anyhow::{Context as _, ensure};
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
/// Time limit of a takeover from a killed leader in docs/contributors/reliability.md.
const TAKEOVER: Duration = Duration::from_secs(3);
/// Time limit of a takeover from a leader that released its Leases. Virtual time passes only where an agent waits, and
/// a replica that watches its Leases does not wait. On real control planes a takeover takes less than 1 s
/// (`testing/scenarios/tests/e2e/failover.rs` prints it).
const HANDOVER: Duration = Duration::from_millis(10);
/// Time in which all members open their streams to a new leader.
const STREAMS_OPEN: Duration = Duration::from_secs(60);
/// Time for the three writes of a change. Time passes only where an agent waits.
const CHANGE: Duration = Duration::from_millis(100);

struct Pair {
    fleet: Fleet,
    exporter: User,
    importer: User,
}

impl Pair {
    /// Returns a fleet of two members with two replicas of each agent. The second member imports the Service of the
    /// first.
    async fn new() -> anyhow::Result<Self> {
        Self::with(Options::members(2)).await
    }

    async fn with(options: Options) -> anyhow::Result<Self> {
        let mut fleet = Fleet::new(options).await?;
        fleet.make_namespace("work").await?;
        let [exporter, importer] = [0, 1].map(|index| User::new(fleet.members[index].server.admin(), "work"));
        fleet.start_agents().await?;
        for place in fleet.places() {
            fleet.start_replica(place, SECOND)?;
        }
        fleet.ready().await?;
        exporter.export_new("app", BEFORE).await?;
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
        let of_first = pair.fleet.replicas().filter(|(_, replica, ..)| *replica == FIRST);
        let connections: Vec<_> = of_first.map(|(.., connection)| connection.clone()).collect();
        // The slice changes, and the leaders have sent their writes when they are paused: the writes arrive after those
        // of the new leaders.
        connections.iter().for_each(|it| it.hold());
        pair.change(AFTER).await?;
        let writes = pair.writes();
        connections.iter().for_each(|it| it.release());
        sleep(Duration::from_secs(60)).await;
        pair.importer.sees("app", AFTER).await?;
        ensure!(pair.change(BEFORE).await? <= CHANGE, "the new leaders work");
        let late = pair.writes() - writes;
        ensure!(late <= 3 + 3, "{late} writes: those of the last change, and late writes of the old leaders");
        Ok(())
    })
}

/// Returns the value of a metric of a replica.
fn metric(fleet: &Fleet, place: Place, replica: usize, name: &str) -> anyhow::Result<f64> {
    let metrics = fleet.replica(place, replica).context("the replica runs")?.metrics()?;
    Ok(metrics.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok()).sum())
}

/// Also rule K3.
#[test]
fn streams_are_between_leaders_whoever_leads() -> anyhow::Result<()> {
    const STREAMS: &str = "fleetnet_slice_streams";
    const CONNECTED: &str = "fleetnet_slice_stream_connected";
    sim::paused(async {
        let pair = Pair::with(Options { slice_streams: true, ..Options::members(2) }).await?;
        let fleet = &pair.fleet;
        let has_streams = async |hub: usize, importer: usize| {
            while metric(fleet, Place::Hub, hub, STREAMS)? != 2.0
                || metric(fleet, Place::Member(1), importer, CONNECTED)? != 1.0
                || metric(fleet, Place::Hub, 1 - hub, STREAMS)? != 0.0
                || metric(fleet, Place::Member(1), 1 - importer, CONNECTED)? != 0.0
            {
                sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        timeout(STREAMS_OPEN, has_streams(FIRST, FIRST)).await.context("the first replicas have streams")??;
        let connection = |place, replica| {
            let mut replicas = fleet.replicas().filter(|(at, number, ..)| (*at, *number) == (place, replica));
            replicas.next().map(|(.., connection)| connection.clone()).context("the replica runs")
        };
        // The first replica of one agent after the other does not reach its API servers for a while, and goes on.
        for (place, leaders) in [(Place::Hub, [SECOND, FIRST]), (Place::Member(1), [SECOND, SECOND])] {
            let cut_off = connection(place, FIRST)?;
            cut_off.hold();
            let [hub, importer] = leaders;
            timeout(STREAMS_OPEN, has_streams(hub, importer))
                .await
                .with_context(|| format!("{place:?} has failed over"))??;
            cut_off.release();
            sleep(Duration::from_secs(30)).await;
            timeout(STREAMS_OPEN, has_streams(hub, importer)).await.with_context(|| format!("{place:?} goes on"))??;
        }
        Ok(())
    })
}
