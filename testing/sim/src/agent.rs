//! Real agents (hub agent and member agent), run as tasks of this process.

use crate::connection::Connection;
use crate::server::FLEET_SYSTEM;
use crate::stream::Streams;
use fleetnet_agent::build_info;
use fleetnet_agent::launch::Part;
use fleetnet_agent::traces::Sampling;
use fleetnet_core::hub::{NamespacePolicy, SilenceLimits};
use fleetnet_core::member::{McsApi, Membership, OnLeave, Settings};
use fleetnet_core::names::member_namespace;
use fleetnet_core::ranges::IpNet;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::engine::sources::SourceStatus;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::limits::LeaseTimes;
use fleetnet_runtime::manager::{ProcessContext, RunError};
use fleetnet_runtime::metrics::Metrics;
use fleetnet_runtime::process::lease::{self, LeaseConfig};
use fleetnet_runtime::process::shutdown::{Shutdown, ShutdownTrigger};
use fleetnet_types::ClusterId;
use hub_agent::{Hub, OBJECT_LAG, SILENCE};
use member_agent::stream::Use;
use member_agent::{DERIVED_SERVICE_GRACE, Parts};
use prometheus::{Registry, TextEncoder};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

/// Settings of an agent, except its connections to clusters.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Identity of the agent in Leases and Events, and seed of its random numbers. So each running agent needs a
    /// different identity.
    pub identity: String,
    pub clock: Clock,
    /// Namespace of the agent in its cluster, with its Leases. The namespace must exist.
    pub namespace: String,
    pub lease: LeaseTimes,
    /// Time for which a member agent keeps a derived Service after its last exporter is gone. Only for member agents.
    pub derived_service_grace: Duration,
    /// Settings of the EndpointSlice controller in a member agent; `None` if the controller is off. Only for member
    /// agents.
    pub endpointslices: Option<endpointslice_controller::Settings>,
    /// Time without a renewal of the MemberAgent after which a member agent takes the cluster id over from another
    /// cluster. Only for member agents.
    pub member_takeover_after: Duration,
    /// Address ranges in which a member agent accepts the endpoints of each other cluster. Only for member agents.
    pub source_ranges: BTreeMap<ClusterId, Vec<IpNet>>,
    /// Time that a member has after the deletion of its MemberCluster to remove its finalizers; `None` if the hub agent
    /// does not follow MemberClusters. Only for the hub agent.
    pub force_delete: Option<Duration>,
    /// Work of a member agent for a fleet manager. Only for member agents.
    pub membership: Membership,
    /// Policy for the annotations of hub namespaces that limit exporters and importers. Only for the hub agent.
    pub namespace_policy: NamespacePolicy,
    /// Use of the standard API. Only for member agents.
    pub mcs_api: McsApi,
    /// True for routing slices. Only for member agents with the standard API.
    pub routing_slices: bool,
    /// Cluster selection; `None` if it is off. Only for member agents.
    pub cluster_selection: Option<fleetnet_core::member::ClusterSelection>,
    /// Limits of the member agent.
    pub limits: fleetnet_core::member::Limits,
    /// Number of this replica of the agent, for its slice streams.
    pub replica: usize,
    /// Network of the slice streams, with the connection whose pauses hold them back too; `None` if the agents use
    /// none.
    pub streams: Option<(Streams, Connection)>,
    /// Time for which the hub agent's objects lag behind the streams. Only for the hub agent.
    pub object_lag: Duration,
    /// Times without a heartbeat after which importers do not use the endpoints of a member as usual; `None` for never.
    /// Only for the hub agent.
    pub silence: Option<SilenceLimits>,
    /// Part of the agent in traces.
    pub traces: Option<Sampling>,
}

impl Setup {
    /// Returns the agents' default settings, with the system clock and a new identity. `kind` is `hub-agent` or
    /// `member-agent`.
    #[must_use]
    pub fn usual(kind: &str) -> Self {
        Self {
            identity: lease::identity(kind),
            clock: Clock::system(),
            namespace: FLEET_SYSTEM.to_owned(),
            lease: LeaseTimes::default(),
            derived_service_grace: DERIVED_SERVICE_GRACE,
            endpointslices: None,
            member_takeover_after: MEMBER_TAKEOVER_AFTER,
            source_ranges: BTreeMap::new(),
            force_delete: None,
            membership: Membership::default(),
            namespace_policy: NamespacePolicy::default(),
            mcs_api: McsApi::Off,
            routing_slices: false,
            cluster_selection: None,
            limits: fleetnet_core::member::Limits::default(),
            replica: 0,
            streams: None,
            object_lag: OBJECT_LAG,
            silence: Some(SILENCE),
            traces: None,
        }
    }
}

/// Default of `--member-takeover-after`: time without a renewal of the MemberAgent after which another cluster may take
/// over its id.
pub const MEMBER_TAKEOVER_AFTER: Duration = Duration::from_secs(1_800);

/// Running agent. Dropping this value aborts the agent, as if its process was killed.
#[derive(Debug)]
pub struct Agent {
    name: String,
    registry: Registry,
    stop: ShutdownTrigger,
    statuses: Vec<watch::Receiver<Vec<SourceStatus>>>,
    /// Name of the agent's own cluster.
    own_cluster: String,
    blocked: Option<watch::Receiver<Option<String>>>,
    ended: watch::Receiver<Option<Ended>>,
    /// Handle that aborts the agent's task.
    abort: AbortHandle,
}

/// Outcome of an agent that ended without being killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The agent has finished its work after a request to stop.
    Stopped,
    /// The agent failed or panicked, with this message.
    Failed(String),
}

/// Starts the hub agent, which is named `hub-agent` in messages.
pub fn of_hub(hub: Arc<Cluster>, setup: Setup) -> anyhow::Result<Agent> {
    let (registry, context) = begin(&setup)?;
    let policy = setup.namespace_policy;
    let logic = Hub::new(policy, &registry)?
        .with_object_lag(setup.object_lag)
        .with_member_memory(hub_agent::MEMBER_MEMORY_MIB)
        .with_member_fan_out(hub_agent::MEMBER_FAN_OUT)
        .with_silence(setup.silence)
        .with_force_delete(setup.force_delete)
        .with_traces(setup.traces.clone());
    let leads = logic.leads();
    let runner = context.runner(logic, hub_agent::sources(&hub, policy, setup.force_delete));
    let (statuses, mut manager) = (vec![runner.status()], context.manager());
    if let Some((streams, connection)) = &setup.streams {
        let client = hub.requests.clone();
        let (server, task) = hub_agent::stream::Server::new(&runner, leads, client, setup.clock.clone(), &registry)?;
        let offer = streams.serve(setup.replica, server, connection.clone());
        runner.inbox().try_send(hub_agent::stream::Message::Offer(offer))?;
        manager = manager.with_task(|_| task);
    }
    let manager = manager.with_agent(runner);
    let part = Part { manager, statuses, own_cluster: hub, leases: hub_agent::leases(), blocked: None };
    Ok(run("hub-agent".to_owned(), part, registry, &setup))
}

/// Starts the agent of a member, which is named `member-agent of <member>` in messages.
pub fn of_member(member_name: &str, member: Arc<Cluster>, hub: &Arc<Cluster>, setup: Setup) -> anyhow::Result<Agent> {
    let (registry, context) = begin(&setup)?;
    let all = Parts { endpoint_slice: setup.endpointslices.is_some(), ..Parts::ALL };
    let parts = match setup.membership.on_leave {
        OnLeave::Delete => all,
        OnLeave::Keep => Parts::NONE,
    };
    let mut settings = Settings {
        cluster: member_name.into(),
        hub_namespace: member_namespace(member_name),
        fleet_system_namespace: setup.namespace.as_str().into(),
        derived_service_grace_micros: i64::try_from(setup.derived_service_grace.as_micros())?,
        announces: parts.announcement(setup.mcs_api),
        leader: setup.identity.as_str().into(),
        takeover_after_micros: i64::try_from(setup.member_takeover_after.as_micros())?,
        source_ranges: setup.source_ranges.clone(),
        own_ranges: fleetnet_core::member::OwnRanges::default(),
        load_balancers_per_namespace: None,
        membership: setup.membership.clone(),
        mcs_api: setup.mcs_api,
        routing_slices: setup.routing_slices || setup.cluster_selection.is_some(),
        cluster_selection: setup.cluster_selection.clone(),
        limits: setup.limits,
    };
    if let (Some(announced), Some(_)) = (&mut settings.announces, &settings.cluster_selection) {
        announced.add_cluster_selection();
    }
    let endpoints = setup.endpointslices.clone();
    let settings = member_agent::Settings {
        member: settings,
        hub: None,
        parts,
        leases: all.leases(),
        token_secret: None,
        slice_stream: setup
            .streams
            .as_ref()
            .map_or(Use::Off, |(streams, connection)| Use::Offered(streams.dialers(member_name, connection))),
        endpoints,
    };
    let part = member_agent::part(&settings, &member, Some(hub), setup.traces.clone(), &registry, &context)?;
    Ok(run(format!("member-agent of {member_name}"), part, registry, &setup))
}

fn begin(setup: &Setup) -> anyhow::Result<(Registry, ProcessContext)> {
    let registry = Registry::new();
    build_info::register(&registry)?;
    let metrics = Metrics::new(&registry)?;
    let context = ProcessContext { identity: setup.identity.clone(), clock: setup.clock.clone(), metrics };
    Ok((registry, context))
}

fn run(name: String, part: Part, registry: Registry, setup: &Setup) -> Agent {
    let Part { manager, statuses, own_cluster, leases, blocked } = part;
    let own_name = own_cluster.name.clone();
    let lease = LeaseConfig {
        client: own_cluster.requests.clone(),
        namespace: setup.namespace.clone(),
        names: leases,
        identity: setup.identity.clone(),
        times: setup.lease,
    };
    let (stop, stopped) = Shutdown::new();
    let (end, ended) = watch::channel(None);
    // Run the agent in a separate task, so that a panic ends only the agent, as an error does.
    let running = Aborted(tokio::spawn(manager.with_lease(lease).run(stopped)));
    let abort = tokio::spawn(watch_over(running, end)).abort_handle();
    Agent { name, registry, stop, statuses, own_cluster: own_name, blocked, ended, abort }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Task that is aborted when this value is dropped.
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
    /// Returns the agent's name, such as `hub-agent` or `member-agent of member-1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the agent has listed all kinds that it watches, or until the agent ends.
    pub async fn ready(&self) {
        let known = |sources: &Vec<SourceStatus>| !sources.is_empty() && sources.iter().all(SourceStatus::is_settled);
        for status in &self.statuses {
            // An error means that the agent has ended, so the wait is over.
            let _ = status.clone().wait_for(known).await;
        }
    }

    /// Returns the kinds that the agent has not listed, and because of which it is not ready.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let statuses = self.statuses.iter().flat_map(|status| status.borrow().clone());
        let missing =
            statuses.filter(|source| source.cluster == self.own_cluster && !source.optional && !source.is_settled());
        missing.map(|source| source.resource.to_string()).collect()
    }

    /// Returns the reason why the agent is not ready, even if all watches of its own cluster are complete. `None` if
    /// there is no such reason.
    #[must_use]
    pub fn blocked(&self) -> Option<String> {
        self.blocked.as_ref()?.borrow().clone()
    }

    /// Waits until the agent ends. Returns `None` if the agent was killed.
    pub fn ended(&self) -> impl Future<Output = Option<Ended>> + Send + use<> {
        let mut ended = self.ended.clone();
        async move { ended.wait_for(Option::is_some).await.ok()?.clone() }
    }

    /// Returns the agent's metrics in the text format of `/metrics`.
    pub fn metrics(&self) -> anyhow::Result<String> {
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }

    /// Requests that the agent finishes its current work, releases its Leases and ends. If the agent has not ended
    /// after `within`, kills the agent and returns `None`.
    pub async fn stop(&self, within: Duration) -> Option<Ended> {
        self.stop.request();
        if let Ok(ended) = timeout(within, self.ended()).await {
            return ended;
        }
        self.kill().await;
        None
    }

    /// Kills the agent, as a crash does, and waits until its task has ended. The agent neither finishes its work nor
    /// releases its Leases.
    pub async fn kill(&self) {
        self.abort.abort();
        // Wait until the channel is closed. The agent's task owns the sender, so the channel is closed when the task
        // ends.
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}
