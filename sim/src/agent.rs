//! The real agents, as tasks of this process.

use crate::server::FLEET_SYSTEM;
use fleetnet_core::ids::Text;
use fleetnet_core::member::Settings;
use fleetnet_core::names::member_namespace;
use fleetnet_core::ranges::Range;
use fleetnet_core::rights::NamespacePolicy;
use fleetnet_runtime::client::Cluster;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::lease::{self, LeaseConfig};
use fleetnet_runtime::metrics::Metrics;
use fleetnet_runtime::run::{RunError, Runner, SourceStatus};
use fleetnet_runtime::shutdown::{Shutdown, ShutdownTrigger};
use fleetnet_runtime::{LaneId, Logic, SourceSpec};
use hub_agent::Hub;
use member_agent::endpoints::{self, Serving};
use member_agent::{DERIVED_SERVICE_GRACE, Hindrances, Latencies, Member, Parts};
use prometheus::{Registry, TextEncoder};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

/// The times of leader election.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTimes {
    /// Others may take a Lease that was not renewed for so long.
    pub lease: Duration,
    /// A leader that could not renew for so long stops.
    pub renew: Duration,
    /// Between two renewals.
    pub retry: Duration,
}

impl LeaseTimes {
    /// For who wants to see a successor take over soon. Still, an agent that has no processor for some seconds goes on.
    pub const SHORT: Self =
        Self { lease: Duration::from_secs(6), renew: Duration::from_secs(5), retry: Duration::from_millis(500) };
}

/// The agents' own.
impl Default for LeaseTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// What an agent is started with beside its clusters.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who it is as a candidate for its Leases and in Events; all that is random in it follows from this. No two that run
    /// may have the same.
    pub identity: String,
    /// Its clock.
    pub clock: Clock,
    /// Its leader election.
    pub lease: LeaseTimes,
    /// How long a derived Service outlives its last exporter; of no account for the hub agent.
    pub derived_service_grace: Duration,
    /// How a member agent makes the EndpointSlices of its cluster; none: it does not. Of no account for the hub agent.
    pub endpointslices: Option<endpoints::Settings>,
    /// How long another cluster may be silent before a member agent takes its id over. Of no account for the hub agent.
    pub member_takeover_after: Duration,
    /// Where a member agent believes that the endpoints of other clusters lie. Of no account for the hub agent.
    pub source_ranges: BTreeMap<Text, Vec<Range>>,
    /// What namespaces of the hub decide. Of no account for a member agent.
    pub namespace_policy: NamespacePolicy,
}

/// The defaults of the agents, on the system's clock and with an identity like theirs.
impl Setup {
    /// For an agent of that kind, `hub-agent` or `member-agent`.
    #[must_use]
    pub fn usual(kind: &str) -> Self {
        Self {
            identity: lease::identity(kind),
            clock: Clock::system(),
            lease: LeaseTimes::default(),
            derived_service_grace: DERIVED_SERVICE_GRACE,
            endpointslices: None,
            member_takeover_after: MEMBER_TAKEOVER_AFTER,
            source_ranges: BTreeMap::new(),
            namespace_policy: NamespacePolicy::default(),
        }
    }
}

/// How long another cluster may be silent before a member agent takes its id over: the member agent's default.
pub const MEMBER_TAKEOVER_AFTER: Duration = Duration::from_secs(1_800);

/// An agent that runs. It ends with this, as a process that is killed does.
#[derive(Debug)]
pub struct Agent {
    name: String,
    registry: Registry,
    stop: ShutdownTrigger,
    status: watch::Receiver<Vec<SourceStatus>>,
    blocked: Option<watch::Receiver<Option<String>>>,
    ended: watch::Receiver<Option<Ended>>,
    /// Ends the task that runs it.
    abort: AbortHandle,
}

/// How an agent ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to, and did all that had to be done first.
    Stopped,
    /// It gave up, or panicked; why.
    Failed(String),
}

/// Starts the hub agent, called `hub-agent`.
///
/// # Errors
/// Where it has no metrics; so of all agents.
pub fn of_hub(hub: Arc<Cluster>, setup: Setup) -> anyhow::Result<Agent> {
    let policy = setup.namespace_policy;
    let sources = hub_agent::sources(&hub, policy);
    let start = Start { name: "hub-agent".to_owned(), cluster: hub, leases: hub_agent::leases(), setup };
    let registry = Registry::new();
    start.run(Hub::new(policy, &registry)?, None, sources, registry)
}

/// Starts the agent of the member `member_name`, called `member-agent of <member>`.
///
/// # Errors
/// Where it has no metrics.
pub fn of_member(member_name: &str, member: Arc<Cluster>, hub: &Arc<Cluster>, setup: Setup) -> anyhow::Result<Agent> {
    let hub_namespace = member_namespace(member_name);
    let endpoints = setup.endpointslices.as_ref();
    let sources = member_agent::sources(&member, Some((&hub_namespace, hub)), endpoints);
    let parts = Parts { endpoint_slice: endpoints.is_some(), ..Parts::ALL };
    let settings = Settings {
        cluster: member_name.into(),
        hub_namespace,
        fleet_system_namespace: FLEET_SYSTEM.into(),
        derived_service_grace_micros: i64::try_from(setup.derived_service_grace.as_micros())?,
        announces: parts.announcement(),
        leader: setup.identity.as_str().into(),
        takeover_after_micros: i64::try_from(setup.member_takeover_after.as_micros())?,
        source_ranges: setup.source_ranges.clone(),
    };
    let registry = Registry::new();
    let latencies = Latencies::new(member_name, &registry)?;
    let serving = endpoints.map(|settings| Serving::new(settings, &registry)).transpose()?;
    let name = format!("member-agent of {member_name}");
    let start = Start { name, cluster: member, leases: parts.leases(), setup };
    let hindrances = Hindrances::new(&registry)?;
    let logic = Member::new(settings, parts, latencies, hindrances, serving);
    let blocked = logic.blocked();
    start.run(logic, Some(blocked), sources, registry)
}

/// What both agents are started with.
struct Start {
    name: String,
    /// Holds the Leases.
    cluster: Arc<Cluster>,
    leases: Vec<String>,
    setup: Setup,
}

impl Start {
    fn run<L: Logic>(
        self,
        logic: L,
        blocked: Option<watch::Receiver<Option<String>>>,
        sources: Vec<SourceSpec<L>>,
        registry: Registry,
    ) -> anyhow::Result<Agent> {
        let Setup { identity, clock, lease: times, .. } = self.setup;
        let lease = LeaseConfig {
            client: self.cluster.requests.clone(),
            namespace: FLEET_SYSTEM.to_owned(),
            names: self.leases,
            identity: identity.clone(),
            lease_duration: times.lease,
            renew_deadline: times.renew,
            retry_period: times.retry,
        };
        let (seed, metrics) = (LaneId::of(&identity).0, Metrics::new(&registry)?);
        let runner = Runner::new(logic, sources, identity, clock, metrics).with_seed(seed).with_lease(lease);
        let status = runner.status();
        let (stop, stopped) = Shutdown::new();
        let (end, ended) = watch::channel(None);
        // A task of its own, so that a panic of the agent is an end like others.
        let running = Aborted(tokio::spawn(runner.run(stopped)));
        let abort = tokio::spawn(watch_over(running, end)).abort_handle();
        Ok(Agent { name: self.name, registry, stop, status, blocked, ended, abort })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// A task that ends with this.
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn watch_over(mut running: Aborted<Result<(), RunError>>, end: watch::Sender<Option<Ended>>) {
    let ended = match (&mut running.0).await {
        Ok(Ok(())) => Ended::Stopped,
        Ok(Err(error)) => Ended::Failed(error.to_string()),
        Err(error) => Ended::Failed(error.to_string()),
    };
    end.send_replace(Some(ended));
}

impl Agent {
    /// `hub-agent`, `member-agent of member-1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until it knows all that it watches, or has ended.
    pub async fn ready(&self) {
        let known = |sources: &Vec<SourceStatus>| !sources.is_empty() && sources.iter().all(SourceStatus::is_settled);
        // An error says that it has ended.
        let _ = self.status.clone().wait_for(known).await;
    }

    /// Why it is not ready although it knows its own cluster.
    #[must_use]
    pub fn blocked(&self) -> Option<String> {
        self.blocked.as_ref()?.borrow().clone()
    }

    /// How it ends by itself; nothing where it is killed.
    pub fn ended(&self) -> impl Future<Output = Option<Ended>> + Send + use<> {
        let mut ended = self.ended.clone();
        async move { ended.wait_for(Option::is_some).await.ok()?.clone() }
    }

    /// What `/metrics` would answer.
    ///
    /// # Errors
    /// Where a metric cannot be written as text.
    pub fn metrics(&self) -> anyhow::Result<String> {
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }

    /// Asks it to finish what is under way and to give its Leases back. Tells how it ended; nothing where that takes too
    /// long and it is killed.
    pub async fn stop(&self, within: Duration) -> Option<Ended> {
        self.stop.request();
        if let Ok(ended) = timeout(within, self.ended()).await {
            return ended;
        }
        self.kill().await;
        None
    }

    /// Ends it at once, as a crash does, and waits until it is gone: nothing is finished, no Lease is given back.
    pub async fn kill(&self) {
        self.abort.abort();
        // The sender goes with the task.
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}
