//! Agents that crash at a write, on real API servers. For each kind of write, an agent crashes at one such write and another
//! agent starts in its place. The fleet must end like a fleet without crashes, and then make no more writes. On memkube every
//! single write is tried, before and after its commit.

use anyhow::{Context as _, ensure};
use fleetnet_tests::eventually::Deadline;
use fleetnet_tests::limits::{EVENTUALLY, POLL};
use fleetnet_tests::picture::{Picture, differences, draw};
use fleetnet_tests::proxy::{Line, Stop};
use fleetnet_tests::scenes::actions::Action;
use fleetnet_tests::scenes::marker::{MARKER, Marker};
use fleetnet_tests::stage::{Cast, Ground as _, OnProcesses, Place, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const CAST: Cast = Cast::of(2).with_grace(Duration::from_millis(1));

/// Each crash takes some seconds.
const LIMIT: Duration = Duration::from_secs(1800);

/// A kind of write of one agent, and an action that causes it.
#[derive(Clone, Debug)]
struct Point {
    action: Action,
    place: Place,
    stop: Stop,
}

/// A fleet on which actions are played one after the other, each in a namespace of its own.
struct Theatre {
    stage: Stage<OnProcesses>,
    marker: Marker,
    plays: usize,
}

impl Theatre {
    async fn open() -> anyhow::Result<Self> {
        let stage = Stage::<OnProcesses>::set(CAST).await?;
        let marker = Marker::make(&stage).await?;
        Ok(Self { stage, marker, plays: 0 })
    }

    /// Creates a new namespace on the same fleet.
    async fn next(&mut self) -> anyhow::Result<()> {
        self.plays += 1;
        self.stage.namespace = self.stage.ground.namespace(&format!("play-{}", self.plays)).await?;
        Ok(())
    }

    /// Restarts the agent of a place with this connection.
    async fn rewire(&mut self, place: Place, line: &Line) -> anyhow::Result<()> {
        self.stage.ground.stop(place).await?;
        let spec = self.stage.ground.spec(place, Some(line)).await?;
        self.stage.ground.start(place, &spec).await
    }

    /// Plays the action without a crash. Returns the result, and the kinds of writes of each agent.
    async fn undisturbed(&mut self, action: Action, lines: &[(Place, Line)]) -> anyhow::Result<(Picture, Vec<Point>)> {
        self.next().await?;
        action.prepare(&self.stage).await?;
        self.marker.at_peace(&self.stage).await?;
        lines.iter().for_each(|(_, line)| line.arm(None));
        action.act(&self.stage).await?;
        action.came_true(&self.stage).await?;
        self.marker.change().await?;
        let mut points = Vec::new();
        for (place, line) in lines {
            let stops = line.passed().into_iter().map(|write| Stop { write, carried_out: false });
            points.extend(stops.map(|stop| Point { action, place: *place, stop }));
        }
        Ok((draw(&self.stage).await?, points))
    }

    /// Plays the action with a crash of an agent at a write, and a restart.
    async fn disturbed(&mut self, point: &Point, expected: &Picture) -> anyhow::Result<()> {
        self.next().await?;
        let (line, place) = (line(), point.place);
        self.rewire(place, &line).await?;
        point.action.prepare(&self.stage).await?;
        self.marker.at_peace(&self.stage).await?;
        line.arm(Some(point.stop.clone()));
        point.action.act(&self.stage).await?;
        timeout(EVENTUALLY, line.stopped()).await.context("the write never comes")?;
        self.stage.ground.kill(place).await?;
        self.stage.ground.forget_leases(place).await?;
        let successor = self.stage.ground.spec(place, None).await?;
        self.stage.ground.start(place, &successor).await?;
        point.action.came_true(&self.stage).await?;
        let deadline = Deadline::start();
        loop {
            let differences = differences(expected, &draw(&self.stage).await?);
            if differences.is_empty() {
                break;
            }
            deadline.check().with_context(|| differences.join("\n"))?;
            sleep(POLL).await;
        }
        self.marker.at_peace(&self.stage).await
    }
}

/// A connection on which changes of the marker do not count.
fn line() -> Line {
    Line::but_for(Some(MARKER))
}

/// One point for each kind of write of each agent, with the sides of the commit in turn.
fn one_of_each_kind(points: Vec<Point>) -> Vec<Point> {
    let mut known = BTreeSet::new();
    let new = points.into_iter().filter(|point| known.insert((point.place, point.stop.write.clone())));
    let mut points: Vec<Point> = new.collect();
    for (index, point) in points.iter_mut().enumerate() {
        point.stop.carried_out = index % 2 == 1;
    }
    points
}

#[test]
fn an_agent_killed_at_any_kind_of_write_is_succeeded_by_one_that_ends_what_it_began() -> anyhow::Result<()> {
    fleetnet_tests::run_within(LIMIT, async {
        let mut theatre = Theatre::open().await?;
        let lines: Vec<(Place, Line)> = theatre.stage.ground.places().map(|place| (place, line())).collect();
        for (place, line) in &lines {
            theatre.rewire(*place, line).await?;
        }
        let (mut expected, mut points) = (BTreeMap::new(), Vec::new());
        for action in Action::ALL {
            let (picture, of_action) = theatre.undisturbed(action, &lines).await?;
            expected.insert(format!("{action:?}"), picture);
            points.extend(of_action);
        }
        for (place, _) in &lines {
            theatre.stage.ground.stop(*place).await?;
            let spec = theatre.stage.ground.spec(*place, None).await?;
            theatre.stage.ground.start(*place, &spec).await?;
        }
        let points = one_of_each_kind(points);
        for point in &points {
            let expected = &expected[&format!("{:?}", point.action)];
            theatre.disturbed(point, expected).await.with_context(|| format!("{point:?}"))?;
        }
        println!("{} agents killed, each at another kind of write", points.len());
        ensure!(points.len() >= 25, "only {} kinds of writes were met: {points:?}", points.len());
        Ok(())
    })
}
