//! Crash points: each agent crashes before each of its writes, after each write, and while its concurrent writes still
//! reach the server. Then a new agent starts in its place. The fleet must reach the same state as a fleet without
//! crashes, and then make no more writes.

mod support;

use anyhow::{Context as _, ensure};
use harness::audit::Ledger;
use scenarios::actions::Action;
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use scenarios::snapshot::{Snapshot, differences, take_snapshot};
use sim::connection::{Connection, Cut, Side};
use sim::fleet::Backup;
use sim::fleet::Place;
use std::time::Duration;
use support::OnMemkube;
use tokio::time::{sleep, timeout};

/// Time within which all effects of an action happen. This includes the expiry of the Leases of a crashed agent, and
/// the grace period of the derived Service.
const DONE: Duration = Duration::from_secs(40);
/// Time without writes after an action that proves that the fleet has settled.
const QUIET: Duration = Duration::from_secs(40);
/// Grace period of derived Services, shorter than [`DONE`].
const GRACE: Duration = Duration::from_secs(5);
/// Time within which all writes of an action are made, including a heartbeat of each member.
const WRITTEN: Duration = Duration::from_secs(12);
/// Time within which a new agent becomes the leader.
const LED: Duration = Duration::from_secs(10);
/// Time limit for the write at which an agent crashes.
const SOON: Duration = Duration::from_secs(30);

/// Fleet that is ready for an action. The test can restore this state.
struct CrashTest {
    action: Action,
    env: Environment<OnMemkube>,
    before: Backup,
}

impl CrashTest {
    async fn new(action: Action) -> anyhow::Result<Self> {
        let mut env = Environment::<OnMemkube>::create(FleetSpec::of(2).with_grace(GRACE)).await?;
        action.prepare(&env).await?;
        sleep(Duration::from_secs(1)).await;
        env.backend.stop_agents().await?;
        let before = env.backend.0.backup();
        Ok(Self { action, env, before })
    }

    /// Restores the state of the fleet before the action, and waits until its agents lead.
    async fn reset(&mut self) -> anyhow::Result<()> {
        self.env.backend.stop_agents().await?;
        self.env.backend.0.restore(&self.before);
        self.env.backend.start_agents().await?;
        sleep(LED).await;
        Ok(())
    }

    fn connection(&self, place: Place) -> anyhow::Result<Connection> {
        self.env.backend.0.connection(place).cloned().context("every agent runs")
    }

    /// Runs the action without a crash. Returns the state of the fleet at the end, and the number of writes of each
    /// agent.
    async fn without_crash(&mut self) -> anyhow::Result<(Snapshot, Vec<(Place, usize)>)> {
        self.reset().await?;
        let places: Vec<Place> = self.env.backend.0.places().collect();
        for place in &places {
            self.connection(*place)?.arm(None);
        }
        self.action.act(&self.env).await?;
        sleep(WRITTEN).await;
        let writes = places.into_iter().map(|place| Ok((place, self.connection(place)?.written())));
        let writes = writes.collect::<anyhow::Result<_>>()?;
        sleep(DONE - WRITTEN).await;
        self.action.is_visible(&self.env).await?;
        Ok((take_snapshot(&self.env).await?, writes))
    }

    /// Runs the action. One agent crashes at one of its writes, and a new agent starts in its place. Returns the
    /// differences from the expected state.
    async fn with_crash(&mut self, place: Place, cut: Cut, expected: &Snapshot) -> anyhow::Result<Vec<String>> {
        self.reset().await?;
        let connection = self.connection(place)?;
        connection.arm(Some(cut));
        let routes = self.env.user(1).routes("app");
        self.action.act(&self.env).await?;
        timeout(SOON, connection.is_cut()).await.context("the write never comes")?;
        let fleet = &mut self.env.backend.0;
        fleet.kill(place).await;
        fleet.start(place)?;
        sleep(DONE).await;
        self.action.is_visible(&self.env).await?;

        let mut wrong = differences(expected, &take_snapshot(&self.env).await?);
        if self.action == Action::RecreateSlices {
            wrong.extend(routes.never_empty().err().map(|error| error.to_string()));
        }
        let mark = self.env.backend.mark().await?;
        sleep(QUIET).await;
        let ledger = self.env.backend.since(&mark).await?.objects();
        if ledger.clusters().map(Ledger::count).sum::<usize>() > 0 {
            wrong.push(format!("the fleet is not settled:\n{ledger}"));
        }
        Ok(wrong)
    }
}

/// Runs the action once for each crash point: each write of each agent, with the crash at each [`Side`] of the write.
/// `crash_points` is the expected number of runs.
fn every_crash_point_of(action: Action, crash_points: usize) -> anyhow::Result<()> {
    crash_points_of(action, crash_points, |_| Side::ALL.to_vec())
}

/// Runs the action once for each write of each agent. The [`Side`] of the write at which the agent crashes alternates.
/// `crash_points` is the expected number of runs.
fn a_crash_at_every_write_of(action: Action, crash_points: usize) -> anyhow::Result<()> {
    crash_points_of(action, crash_points, |write| vec![Side::ALL[write % Side::ALL.len()]])
}

fn crash_points_of(action: Action, crash_points: usize, sides: impl Fn(usize) -> Vec<Side>) -> anyhow::Result<()> {
    sim::paused(async {
        let mut test = CrashTest::new(action).await?;
        let (expected, writes) = test.without_crash().await?;
        let (mut points, mut wrong) = (0, Vec::new());
        for (place, count) in writes {
            for (write, side) in (1..=count).flat_map(|write| sides(write).into_iter().map(move |side| (write, side))) {
                points += 1;
                let outcome = test.with_crash(place, Cut { write, side }, &expected).await;
                let differences = outcome.unwrap_or_else(|error| vec![format!("{error:#}")]);
                wrong.extend(
                    differences.into_iter().map(|line| format!("{place:?}, {side:?} write {write}/{count}: {line}")),
                );
            }
        }
        println!("{action:?}: {points} crash points");
        ensure!(wrong.is_empty(), "{action:?}:\n{}", wrong.join("\n"));
        ensure!(points == crash_points, "{action:?} has {points} crash points, not {crash_points}");
        Ok(())
    })
}

#[test]
fn every_crash_point_of_an_export() -> anyhow::Result<()> {
    every_crash_point_of(Action::Export, 42)
}

#[test]
fn every_crash_point_of_an_import() -> anyhow::Result<()> {
    every_crash_point_of(Action::Import, 60)
}

#[test]
fn every_crash_point_of_a_change() -> anyhow::Result<()> {
    every_crash_point_of(Action::Change, 24)
}

#[test]
fn every_crash_point_of_a_port_change() -> anyhow::Result<()> {
    every_crash_point_of(Action::PortChange, 42)
}

#[test]
fn every_crash_point_of_recreated_slices() -> anyhow::Result<()> {
    every_crash_point_of(Action::RecreateSlices, 42)
}

#[test]
fn every_crash_point_of_an_unexport() -> anyhow::Result<()> {
    every_crash_point_of(Action::Unexport, 66)
}

#[test]
fn every_crash_point_of_a_multi_cluster_services_deletion() -> anyhow::Result<()> {
    every_crash_point_of(Action::DeleteImport, 48)
}

/// Also rule A2.
#[test]
fn a_crash_at_every_write_of_fields_beyond_the_go_form() -> anyhow::Result<()> {
    a_crash_at_every_write_of(Action::Enrich, 21)?;
    a_crash_at_every_write_of(Action::TurnHeadless, 39)
}

/// Also rule A2.
#[test]
fn a_crash_at_every_write_while_a_clusters_rights_change() -> anyhow::Result<()> {
    a_crash_at_every_write_of(Action::ForbidExport, 21)?;
    a_crash_at_every_write_of(Action::AllowExport, 22)?;
    a_crash_at_every_write_of(Action::ForbidImport, 15)?;
    a_crash_at_every_write_of(Action::AllowImport, 15)
}
