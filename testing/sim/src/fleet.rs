//! Simulated fleet: a hub, its members and their agents.

use crate::agent::{self, Agent, Ended, MEMBER_TAKEOVER_AFTER, Setup};
use crate::connection::Connection;
use crate::limits::{AUDIT_ENTRIES, READY, STOP};
use crate::server::{ADMIN, FLEET_SYSTEM, Server};
use crate::stream::Streams;
use anyhow::{Context as _, bail};
use fleetnet_agent::traces::Sampling;
use fleetnet_api::crds::{self, Form};
use fleetnet_core::hub::{NamespacePolicy, SilenceLimits};
use fleetnet_core::member::{McsApi, Membership};
use fleetnet_core::names::member_namespace;
use fleetnet_core::ranges::IpNet;
use fleetnet_runtime::clock::{Clock, to_jiff};
use fleetnet_runtime::limits::LeaseTimes;
use fleetnet_types::{ClusterId, MemberNamespace, Text, Timestamp};
use futures::future::join_all;
use hub_agent::{OBJECT_LAG, SILENCE};
use member_agent::DERIVED_SERVICE_GRACE;
use memkube::audit::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// User name of the hub agent.
pub const HUB_AGENT: &str = "system:serviceaccount:fleet-system:hub-agent";
/// User name of a member agent in its own cluster.
pub const MEMBER_AGENT: &str = "system:serviceaccount:fleet-system:member-agent";
/// ServiceAccount of a member's agent in its hub namespace.
pub const MEMBER_ACCOUNT: &str = "member-agent";
/// Prefix of the group that names the replica of an agent in its requests.
pub const REPLICA: &str = "replica:";
/// Time on the virtual clock at which each fleet starts: noon of an arbitrary day.
const NOON: Timestamp = Timestamp::from_seconds(1_800_014_400);

/// Settings of a simulated fleet.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of members. Their default ids are `member-1`, `member-2`, ….
    pub members: usize,
    /// Seed of all random numbers in the fleet.
    pub seed: u64,
    pub lease: LeaseTimes,
    /// Time for which a member agent keeps a derived Service after its last exporter is gone.
    pub derived_service_grace: Duration,
    /// Settings of the member agents' EndpointSlice controller; `None` if the controller is off.
    pub endpointslices: Option<endpointslice_controller::Settings>,
    /// Form of the CRDs on the servers: fleetnet's form or the form of the Go agents.
    pub form: Form,
    /// Cluster ids of the members; empty for the default ids. Two members may have the same id.
    pub cluster_ids: Vec<String>,
    /// Time without a renewal of the MemberAgent after which a member agent takes the cluster id over from another
    /// cluster.
    pub member_takeover_after: Duration,
    /// Address ranges in which the member agents accept the endpoints of each other cluster.
    pub source_ranges: BTreeMap<ClusterId, Vec<IpNet>>,
    /// Time that a member has after the deletion of its MemberCluster; `None` if the hub agent does not follow
    /// MemberClusters.
    pub force_delete: Option<Duration>,
    /// Work of the member agents for a fleet manager.
    pub membership: Membership,
    /// Policy for the annotations of hub namespaces that limit exporters and importers.
    pub namespace_policy: NamespacePolicy,
    /// Use of the standard API by the members. Unless it is off, their servers have its definitions.
    pub mcs_api: McsApi,
    /// Members, by index, that use routing slices for the standard API.
    pub routing_slices: BTreeSet<usize>,
    /// Cluster selection of all members; `None` if it is off.
    pub cluster_selection: Option<fleetnet_core::member::ClusterSelection>,
    /// True if the hub agent has slice streams.
    pub slice_streams: bool,
    /// Members, by index, that use no slice stream.
    pub without_stream: BTreeSet<usize>,
    /// Times without a heartbeat after which importers do not use the endpoints of a member as usual; `None` for never.
    pub silence: Option<SilenceLimits>,
    /// Agents that take part in traces.
    pub traces: BTreeMap<Place, Sampling>,
}

impl Options {
    /// Returns the agents' default settings, for a fleet with this number of members.
    #[must_use]
    pub fn members(members: usize) -> Self {
        let (lease, derived_service_grace) = (LeaseTimes::default(), DERIVED_SERVICE_GRACE);
        Self {
            members,
            seed: 0,
            lease,
            derived_service_grace,
            endpointslices: None,
            form: Form::Full,
            cluster_ids: Vec::new(),
            member_takeover_after: MEMBER_TAKEOVER_AFTER,
            source_ranges: BTreeMap::new(),
            force_delete: None,
            membership: Membership::default(),
            namespace_policy: NamespacePolicy::default(),
            mcs_api: McsApi::Off,
            routing_slices: BTreeSet::new(),
            cluster_selection: None,
            slice_streams: false,
            without_stream: BTreeSet::new(),
            silence: Some(SILENCE),
            traces: BTreeMap::new(),
        }
    }
}

/// Simulated fleet: hub, members and agents. Its virtual time advances only with tokio's clock.
#[derive(Debug)]
pub struct Fleet {
    pub hub: Server,
    /// Members in the order of their numbers, from `member-1`.
    pub members: Vec<Member>,
    clock: Clock,
    /// Clocks of the clusters whose clock differs from `clock`.
    own_clocks: BTreeMap<Place, Clock>,
    options: Options,
    /// Network of the slice streams, which the agents use if the options say so.
    pub streams: Streams,
    /// Number of agents that were started. The identity of each new agent contains this number.
    started: u32,
    /// Running agents, by cluster and number of the replica.
    agents: BTreeMap<(Place, usize), (Agent, Connection)>,
}

#[derive(Debug)]
pub struct Member {
    pub name: String,
    pub hub_namespace: MemberNamespace,
    /// User name of the member's agent in the hub. Two members with the same cluster id have different users, so that
    /// tests can distinguish their writes.
    pub hub_user: String,
    pub server: Server,
}

/// Copy of the contents of all servers of a fleet, which [`Fleet::restore`] writes back.
#[derive(Debug)]
pub struct Backup(Vec<memkube::Backup>);

/// Cluster in which an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Hub,
    /// Member with this index, from 0.
    Member(usize),
}

impl Fleet {
    /// Creates the servers of a fleet, and the namespaces that agents need. Does not start agents.
    pub async fn new(options: Options) -> anyhow::Result<Self> {
        let clock = Clock::virtual_at(NOON);
        let hub = server("hub", &clock, options.seed, options.form).await?;
        let mut members: Vec<Member> = Vec::new();
        for number in 1..=options.members {
            let id = options.cluster_ids.get(number - 1).cloned();
            let name = id.unwrap_or_else(|| format!("member-{number}"));
            let seed = options.seed.wrapping_add(u64::try_from(number)?);
            let hub_namespace = member_namespace(&name);
            let mut account = MEMBER_ACCOUNT.to_owned();
            match members.iter().filter(|member| member.name == name).count() {
                0 => hub.make_namespace(&hub_namespace).await?,
                others => account = format!("{account}-{}", others + 1),
            }
            hub.make_service_account(&hub_namespace, &account).await?;
            let server = server(&name, &clock, seed, options.form).await?;
            if options.mcs_api != McsApi::Off {
                server.install(&crds::mcs()).await?;
            }
            members.push(Member {
                server,
                name,
                hub_user: format!("system:serviceaccount:{hub_namespace}:{account}"),
                hub_namespace,
            });
        }
        let (own_clocks, agents, streams) = (BTreeMap::new(), BTreeMap::new(), Streams::default());
        Ok(Self { hub, members, clock, own_clocks, options, streams, started: 0, agents })
    }

    /// Returns the virtual clock that servers and agents share.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Gives the agents of a cluster a wrong clock, from their next start on. The API servers keep the clock of the
    /// fleet.
    pub fn set_own_clock(&mut self, place: Place, microseconds_ahead: i64) {
        let clock = Clock::virtual_at(self.clock.now().plus_micros(microseconds_ahead));
        self.own_clocks.insert(place, clock);
    }

    /// Moves the clock of the running agents of a cluster, as if somebody set the clock. Only after
    /// [`Fleet::set_own_clock`] and a start.
    pub fn move_own_clock(&self, place: Place, microseconds: i64) {
        if let Some(clock) = self.own_clocks.get(&place) {
            clock.set_by(microseconds);
        }
    }

    /// Returns the servers with the names of their clusters, the hub first.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Server)> {
        let members = self.members.iter().map(|member| (member.name.as_str(), &member.server));
        std::iter::once(("hub", &self.hub)).chain(members)
    }

    /// Creates a namespace for users in the hub and in all members.
    pub async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        for (_, server) in self.servers() {
            server.make_namespace(name).await?;
        }
        Ok(())
    }

    /// Starts every agent that is not running, and waits until all agents are ready.
    pub async fn start_agents(&mut self) -> anyhow::Result<()> {
        for place in self.places() {
            if !self.agents.contains_key(&(place, 0)) {
                self.start(place)?;
            }
        }
        self.ready().await
    }

    /// Waits until all agents have listed all kinds that they watch.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let ready = join_all(self.agents.values().map(|(agent, _)| agent.ready()));
        timeout(READY, ready).await.with_context(|| format!("the agents were not ready within {READY:?}"))?;
        Ok(())
    }

    /// Returns the present time of the fleet's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sets the part of a cluster's agent in traces, from its next start on.
    pub fn set_traces(&mut self, place: Place, sampling: Option<Sampling>) {
        self.options.traces.remove(&place);
        self.options.traces.extend(sampling.map(|sampling| (place, sampling)));
    }

    /// Starts the agent of a cluster. If an agent already runs there, kills that agent first.
    pub fn start(&mut self, place: Place) -> anyhow::Result<()> {
        self.start_replica(place, 0)
    }

    /// Starts a replica of the agent of a cluster. If this replica already runs there, kills it first.
    pub fn start_replica(&mut self, place: Place, replica: usize) -> anyhow::Result<()> {
        self.started += 1;
        let (connection, group) = (Connection::default(), format!("{REPLICA}{replica}"));
        let setup = |kind: &str| Setup {
            // Like a container that starts again in its pod.
            identity: format!("{kind}_{}_{place:?}-{replica}.{}", self.options.seed, self.started),
            clock: self.own_clocks.get(&place).unwrap_or(&self.clock).clone(),
            namespace: FLEET_SYSTEM.to_owned(),
            lease: self.options.lease,
            derived_service_grace: self.options.derived_service_grace,
            endpointslices: self.options.endpointslices.clone(),
            member_takeover_after: self.options.member_takeover_after,
            source_ranges: self.options.source_ranges.clone(),
            force_delete: self.options.force_delete,
            membership: self.options.membership.clone(),
            namespace_policy: self.options.namespace_policy,
            streams: self.has_stream(place).then(|| (self.streams.clone(), connection.clone())),
            object_lag: OBJECT_LAG,
            mcs_api: self.options.mcs_api,
            routing_slices: self.has_routing_slices(place),
            cluster_selection: self.options.cluster_selection.clone(),
            limits: fleetnet_core::member::Limits::default(),
            silence: self.options.silence,
            traces: self.options.traces.get(&place).cloned(),
            replica,
        };
        let agent = match place {
            Place::Hub => {
                let hub = self.hub.cluster_over(&connection, "hub", HUB_AGENT, &group);
                agent::of_hub(Arc::new(hub), setup("hub-agent"))?
            }
            Place::Member(index) => {
                let Member { name, server, hub_user, .. } = &self.members[index];
                let member = Arc::new(server.cluster_over(&connection, "member", MEMBER_AGENT, &group));
                let hub = Arc::new(self.hub.cluster_over(&connection, "hub", hub_user, &group));
                agent::of_member(name, member, &hub, setup("member-agent"))?
            }
        };
        self.agents.insert((place, replica), (agent, connection));
        Ok(())
    }

    /// True if the agent of a member uses routing slices from its next start on.
    #[must_use]
    pub fn has_routing_slices(&self, place: Place) -> bool {
        matches!(place, Place::Member(index) if self.options.routing_slices.contains(&index))
    }

    /// Turns the routing slices of a member on or off, from the next start of its agent on.
    pub fn toggle_routing_slices(&mut self, index: usize) {
        if !self.options.routing_slices.remove(&index) {
            self.options.routing_slices.insert(index);
        }
    }

    /// True if the agents of a cluster use slice streams.
    fn has_stream(&self, place: Place) -> bool {
        let is_without = matches!(place, Place::Member(index) if self.options.without_stream.contains(&index));
        self.options.slice_streams && !is_without
    }

    /// Returns the running agent of a cluster.
    #[must_use]
    pub fn agent(&self, place: Place) -> Option<&Agent> {
        self.replica(place, 0)
    }

    /// Returns the value of a metric of a cluster's agent: the sum of its series, or of those with these labels. 0
    /// without a series.
    ///
    /// # Errors
    /// If no agent runs there.
    pub fn metric(&self, place: Place, series: &str) -> anyhow::Result<f64> {
        let text = self.agent(place).context("an agent runs there")?.metrics()?;
        let is_of_it = |line: &&str| line.strip_prefix(series).is_some_and(|rest| rest.starts_with([' ', '{']));
        let values = text.lines().filter(is_of_it).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// Returns the connection through which a cluster's agent sends its requests.
    #[must_use]
    pub fn connection(&self, place: Place) -> Option<&Connection> {
        self.agents.get(&(place, 0)).map(|(_, connection)| connection)
    }

    /// Returns a running replica of the agent of a cluster.
    #[must_use]
    pub fn replica(&self, place: Place, replica: usize) -> Option<&Agent> {
        self.agents.get(&(place, replica)).map(|(agent, _)| agent)
    }

    /// Returns the running replicas of all agents, each with its connection.
    pub fn replicas(&self) -> impl Iterator<Item = (Place, usize, &Agent, &Connection)> {
        self.agents.iter().map(|((place, replica), (agent, connection))| (*place, *replica, agent, connection))
    }

    /// Returns all clusters that have an agent, the hub first.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        std::iter::once(Place::Hub).chain((0..self.members.len()).map(Place::Member))
    }

    /// Kills the agent of a cluster, as a crash does.
    pub async fn kill(&mut self, place: Place) {
        self.kill_replica(place, 0).await;
    }

    /// Kills a replica of the agent of a cluster.
    pub async fn kill_replica(&mut self, place: Place, replica: usize) {
        if let Some((agent, _)) = self.agents.remove(&(place, replica)) {
            self.agent_ended(place, replica);
            agent.kill().await;
        }
    }

    /// Returns all recorded requests with their times and statuses: first the requests to the hub, then the requests to
    /// each member.
    #[must_use]
    pub fn history(&self) -> Vec<Entry> {
        self.servers().flat_map(|(_, server)| server.memkube().audit().entries).collect()
    }

    /// Returns the writes of agents in [`Fleet::history`], without heartbeats, the hub agent's answers to them, Leases
    /// and Events.
    #[must_use]
    pub fn agent_writes(&self) -> Vec<Entry> {
        let mut history = self.history();
        history.retain(|Entry { call, .. }| {
            let is_heartbeat =
                &*call.target.resource == "internalmemberclusters" && &*call.target.subresource == "status";
            let is_counted = !is_heartbeat && !["leases", "events", "memberagents"].contains(&&*call.target.resource);
            call.verb.writes() && is_counted && &*call.user.name != ADMIN
        });
        history
    }

    /// Returns the writes of the hub agent to the status of MemberAgents, by name.
    #[must_use]
    pub fn answers(&self) -> Vec<Text> {
        let is_answer = |Entry { call, .. }: &Entry| {
            call.verb.writes() && (&*call.target.resource, &*call.target.subresource) == ("memberagents", "status")
        };
        self.history().into_iter().filter(is_answer).map(|entry| (&*entry.call.target.name).into()).collect()
    }

    /// Returns a copy of the current contents of all servers, for [`Fleet::restore`].
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.servers().map(|(_, server)| server.memkube().backup()).collect())
    }

    /// Restores the contents of all servers from a backup. As with a restored etcd, running agents get no watch events
    /// about it.
    pub fn restore(&self, backup: &Backup) {
        for ((_, server), backup) in self.servers().zip(&backup.0) {
            server.memkube().restore(backup);
        }
    }

    /// Stops all agents in parallel. Fails if an agent ends with an error or must be killed.
    pub async fn stop_agents(&mut self) -> anyhow::Result<()> {
        let agents = std::mem::take(&mut self.agents);
        agents.keys().for_each(|(place, replica)| self.agent_ended(*place, *replica));
        join_all(agents.into_values().map(|(agent, _)| stop(agent))).await.into_iter().collect()
    }

    /// Stops the agent of a cluster. Fails if no agent runs there, if the agent ends with an error, or if it must be
    /// killed.
    pub async fn stop(&mut self, place: Place) -> anyhow::Result<()> {
        self.stop_replica(place, 0).await
    }

    /// Stops a replica of the agent of a cluster, as [`Fleet::stop`] does.
    pub async fn stop_replica(&mut self, place: Place, replica: usize) -> anyhow::Result<()> {
        let (agent, _) = self.agents.remove(&(place, replica)).context("an agent runs there")?;
        let stopped = stop(agent).await;
        self.agent_ended(place, replica);
        stopped
    }

    /// Breaks the slice streams of an agent that ended.
    fn agent_ended(&self, place: Place, replica: usize) {
        match place {
            Place::Hub => self.streams.end(replica),
            Place::Member(index) => self.streams.cut(&self.members[index].name),
        }
    }
}

async fn stop(agent: Agent) -> anyhow::Result<()> {
    match agent.stop(STOP).await {
        Some(Ended::Stopped) => Ok(()),
        ended => bail!("{} was to stop and ended otherwise: {ended:?}", agent.name()),
    }
}

/// Returns the user name of a member's agent in the hub.
#[must_use]
pub fn hub_user(hub_namespace: &str) -> String {
    format!("system:serviceaccount:{hub_namespace}:{MEMBER_ACCOUNT}")
}

async fn server(name: &str, clock: &Clock, seed: u64, form: Form) -> anyhow::Result<Server> {
    let clock = clock.clone();
    let mut options = memkube::Options::new(Arc::new(move || to_jiff(clock.now())), seed);
    options.limits.audit_entries = AUDIT_ENTRIES;
    Server::with_definitions(name, options, form).await
}
