//! Tests of agents that crash at a write, on real API servers. For each kind of write, an agent crashes at one such
//! write and a new agent starts. The final state must be the same as without crashes, and the agents must then make no
//! more writes. The tests of `sim` on memkube try every single write, with a crash before and after its commit.

use anyhow::{Context as _, ensure};
use harness::eventually::Deadline;
use harness::limits::{EVENTUALLY, POLL};
use harness::proxy::{Line, Stop};
use scenarios::actions::Action;
use scenarios::environment::{AgentPlace, Backend as _, Environment, FleetSpec, OnProcesses};
use scenarios::marker::{MARKER, Marker};
use scenarios::snapshot::{Snapshot, differences, take_snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const FLEET: FleetSpec = FleetSpec::of(2).with_grace(Duration::from_millis(1));

/// Time limit of these tests. A test has many crashes, and each crash takes some seconds.
const LIMIT: Duration = Duration::from_secs(1800);

/// Crash point: a kind of write of one agent, and an action that causes such a write.
#[derive(Clone, Debug)]
struct Point {
    action: Action,
    place: AgentPlace,
    stop: Stop,
}

/// Fleet on which actions run one after the other, each action in a new namespace.
struct CrashTest {
    env: Environment<OnProcesses>,
    marker: Marker,
    runs: usize,
}

impl CrashTest {
    async fn new() -> anyhow::Result<Self> {
        let env = Environment::<OnProcesses>::create(FLEET).await?;
        let marker = Marker::make(&env).await?;
        Ok(Self { env, marker, runs: 0 })
    }

    /// Creates a new namespace on the same fleet, for the next action.
    async fn next(&mut self) -> anyhow::Result<()> {
        self.runs += 1;
        self.env.namespace = self.env.backend.namespace(&format!("run-{}", self.runs)).await?;
        Ok(())
    }

    /// Restarts the agent of a cluster. The new agent makes its requests through proxies with the shared state `line`.
    async fn restart_over(&mut self, place: AgentPlace, line: &Line) -> anyhow::Result<()> {
        self.env.backend.stop(place).await?;
        let spec = self.env.backend.spec(place, Some(line)).await?;
        self.env.backend.start(place, &spec).await
    }

    /// Runs the action without a crash. Returns the resulting state, and the kinds of each agent's writes.
    async fn without_crash(
        &mut self,
        action: Action,
        lines: &[(AgentPlace, Line)],
    ) -> anyhow::Result<(Snapshot, Vec<Point>)> {
        self.next().await?;
        action.prepare(&self.env).await?;
        self.marker.is_settled(&self.env).await?;
        lines.iter().for_each(|(_, line)| line.arm(None));
        action.act(&self.env).await?;
        action.is_visible(&self.env).await?;
        self.marker.change().await?;
        let mut points = Vec::new();
        for (place, line) in lines {
            let stops = line.passed().into_iter().map(|write| Stop { write, carried_out: false });
            points.extend(stops.map(|stop| Point { action, place: *place, stop }));
        }
        Ok((take_snapshot(&self.env).await?, points))
    }

    /// Runs the action, with a crash of an agent at a write. Starts a new agent, and compares the resulting state with
    /// `expected`.
    async fn with_crash(&mut self, point: &Point, expected: &Snapshot) -> anyhow::Result<()> {
        self.next().await?;
        let (line, place) = (line(), point.place);
        self.restart_over(place, &line).await?;
        point.action.prepare(&self.env).await?;
        self.marker.is_settled(&self.env).await?;
        line.arm(Some(point.stop.clone()));
        point.action.act(&self.env).await?;
        timeout(EVENTUALLY, line.stopped()).await.context("the write never comes")?;
        self.env.backend.kill(place).await?;
        self.env.backend.forget_leases(place).await?;
        let successor = self.env.backend.spec(place, None).await?;
        self.env.backend.start(place, &successor).await?;
        point.action.is_visible(&self.env).await?;
        let deadline = Deadline::start();
        loop {
            let differences = differences(expected, &take_snapshot(&self.env).await?);
            if differences.is_empty() {
                break;
            }
            deadline.check().with_context(|| differences.join("\n"))?;
            sleep(POLL).await;
        }
        self.marker.is_settled(&self.env).await
    }
}

/// Returns a new shared state for the proxies of one agent. The proxies ignore writes for the marker Service.
fn line() -> Line {
    Line::but_for(Some(MARKER))
}

/// Returns one crash point for each kind of write of each agent. The points alternate between crashes before and after
/// the commit.
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
fn an_agent_killed_at_any_kind_of_write_is_replaced_by_one_that_completes_its_work() -> anyhow::Result<()> {
    harness::run_within(LIMIT, async {
        let mut test = CrashTest::new().await?;
        let lines: Vec<(AgentPlace, Line)> = test.env.backend.places().map(|place| (place, line())).collect();
        for (place, line) in &lines {
            test.restart_over(*place, line).await?;
        }
        let (mut expected, mut points) = (BTreeMap::new(), Vec::new());
        for action in Action::ALL {
            let (snapshot, of_action) = test.without_crash(action, &lines).await?;
            expected.insert(format!("{action:?}"), snapshot);
            points.extend(of_action);
        }
        for (place, _) in &lines {
            test.env.backend.stop(*place).await?;
            let spec = test.env.backend.spec(*place, None).await?;
            test.env.backend.start(*place, &spec).await?;
        }
        let points = one_of_each_kind(points);
        for point in &points {
            let expected = &expected[&format!("{:?}", point.action)];
            test.with_crash(point, expected).await.with_context(|| format!("{point:?}"))?;
        }
        println!("{} agents killed, each at another kind of write", points.len());
        ensure!(points.len() >= 25, "only {} kinds of writes were met: {points:?}", points.len());
        Ok(())
    })
}
