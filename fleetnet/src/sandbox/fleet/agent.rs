//! The real agents, as tasks of this process.

use super::{FLEET_SYSTEM, HUB};
use crate::limits::STOP;
use crate::sandbox::event::{AgentState, Event};
use crate::sandbox::view::Stage;
use fleetnet_core::member::Settings;
use fleetnet_core::model::{Kind, Object};
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::client::Cluster;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::lease::{self, LeaseConfig};
use fleetnet_runtime::metrics::Metrics;
use fleetnet_runtime::run::{Runner, SourceStatus};
use fleetnet_runtime::shutdown::{Shutdown, ShutdownTrigger};
use fleetnet_runtime::{LaneId, Logic, SourceSpec};
use hub_agent::Hub;
use member_agent::{Latencies, Member, Parts};
use prometheus::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a derived Service outlives its last exporter: the member agent's default.
const DERIVED_SERVICE_GRACE_MICROS: i64 = 60_000_000;

/// The times of leader election.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTimes {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

impl LeaseTimes {
    /// For who wants to watch a successor take over.
    pub(crate) const SHORT: Self =
        Self { lease: Duration::from_secs(3), renew: Duration::from_secs(2), retry: Duration::from_millis(500) };
}

/// The agents' own.
impl Default for LeaseTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// An agent that runs.
pub(crate) struct Agent {
    name: String,
    stop: ShutdownTrigger,
    status: watch::Receiver<Vec<SourceStatus>>,
    task: Aborted<()>,
}

/// Starts the hub agent.
///
/// # Errors
/// Where it has no metrics.
pub(crate) fn of_hub(hub: Arc<Cluster>, times: LeaseTimes, stage: Stage) -> anyhow::Result<Agent> {
    let runner = Start { name: "hub-agent".to_owned(), cluster: Arc::clone(&hub), leases: hub_agent::leases(), times };
    runner.run(Hub::default(), hub_agent::sources(&hub), Metrics::new(&Registry::new())?, stage)
}

/// Starts a member's agent.
///
/// # Errors
/// Where it has no metrics.
pub(crate) fn of_member(
    member_name: &str,
    member: Arc<Cluster>,
    hub: Arc<Cluster>,
    times: LeaseTimes,
    stage: Stage,
) -> anyhow::Result<Agent> {
    let hub_namespace = member_namespace(member_name);
    let sources = member_agent::sources(&hub_namespace, &member, &hub);
    let settings = Settings {
        cluster: member_name.into(),
        hub_namespace,
        fleet_system_namespace: FLEET_SYSTEM.into(),
        derived_service_grace_micros: DERIVED_SERVICE_GRACE_MICROS,
    };
    let registry = Registry::new();
    let latencies = Latencies::new(member_name, &registry)?;
    let name = format!("member-agent of {member_name}");
    let start = Start { name, cluster: member, leases: Parts::ALL.leases(), times };
    start.run(Member::new(settings, Parts::ALL, latencies), sources, Metrics::new(&registry)?, stage)
}

/// What both agents are started with.
struct Start {
    name: String,
    /// Holds the Leases.
    cluster: Arc<Cluster>,
    leases: Vec<String>,
    times: LeaseTimes,
}

impl Start {
    fn run<L>(self, logic: L, sources: Vec<SourceSpec<L>>, metrics: Metrics, stage: Stage) -> anyhow::Result<Agent>
    where
        L: Logic<Source = Kind, Object = Object>,
    {
        let kind = if self.cluster.name == HUB { "hub-agent" } else { "member-agent" };
        let identity = lease::identity(kind);
        let lease = LeaseConfig {
            client: self.cluster.requests.clone(),
            namespace: FLEET_SYSTEM.to_owned(),
            names: self.leases,
            identity: identity.clone(),
            lease_duration: self.times.lease,
            renew_deadline: self.times.renew,
            retry_period: self.times.retry,
        };
        let seed = LaneId::of(&identity).0;
        let runner = Runner::new(logic, sources, identity, Clock::system(), metrics).with_seed(seed).with_lease(lease);
        let status = runner.status();
        let (stop, stopped) = Shutdown::new();
        // A task of its own, so that a panic of the agent is an end like others.
        let running = Aborted(tokio::spawn(runner.run(stopped)));
        let task = Aborted(tokio::spawn(watch_over(running, self.name.clone(), stage)));
        Ok(Agent { name: self.name, stop, status, task })
    }
}

/// A task that ends with this.
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells of an end that nobody asked for.
async fn watch_over(mut running: Aborted<Result<(), fleetnet_runtime::run::RunError>>, agent: String, stage: Stage) {
    let why = match (&mut running.0).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    stage.tell(Event::Agent { agent, state: AgentState::Failed, why: Some(why) }).await;
}

impl Agent {
    /// `hub-agent`, `member-agent of member-1`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until it knows all that it watches, or has ended.
    pub(crate) async fn ready(&mut self) {
        let known = |sources: &Vec<SourceStatus>| !sources.is_empty() && sources.iter().all(SourceStatus::is_settled);
        // An error says that it ended, which is told elsewhere.
        let _ = self.status.wait_for(known).await;
    }

    /// Lets it finish what is under way and give its Leases back; what takes too long is killed.
    pub(crate) async fn stop(mut self) {
        self.stop.request();
        if timeout(STOP, &mut self.task.0).await.is_err() {
            self.kill().await;
        }
    }

    /// Ends it at once, and waits until it is gone.
    pub(crate) async fn kill(mut self) {
        self.task.0.abort();
        // It was aborted, and that is what it says.
        let _ = (&mut self.task.0).await;
    }
}
