//! A hub, its members and the agents of all of them.

use crate::agent::{self, Agent, Ended, LeaseTimes, MEMBER_TAKEOVER_AFTER, Setup};
use crate::limits::{AUDIT_ENTRIES, READY, STOP};
use crate::line::Line;
use crate::server::Server;
use anyhow::{Context as _, bail};
use fleetnet_api::crds::Form;
use fleetnet_core::ids::Text;
use fleetnet_core::names::member_namespace;
use fleetnet_core::ranges::Range;
use fleetnet_core::rights::NamespacePolicy;
use fleetnet_runtime::clock::{Clock, Timestamp};
use futures::future::join_all;
use member_agent::DERIVED_SERVICE_GRACE;
use member_agent::endpoints;
use memkube::audit::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The hub agent's user.
pub const HUB_AGENT: &str = "system:serviceaccount:fleet-system:hub-agent";
/// A member agent's user in its own cluster.
pub const MEMBER_AGENT: &str = "system:serviceaccount:fleet-system:member-agent";
/// When a fleet's time begins: noon of an arbitrary day.
const NOON: Timestamp = Timestamp::from_seconds(1_800_014_400);

/// What a fleet is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many members it has, called `member-1`, `member-2`, …
    pub members: usize,
    /// Of all that is random.
    pub seed: u64,
    /// The agents' leader election.
    pub lease: LeaseTimes,
    /// How long a derived Service outlives its last exporter.
    pub derived_service_grace: Duration,
    /// How the member agents make their clusters' EndpointSlices; none: they do not.
    pub endpointslices: Option<endpoints::Settings>,
    /// Of the definitions that the servers have.
    pub form: Form,
    /// Ids of the members where they are not `member-1`, `member-2`, …: two of them may be equal.
    pub cluster_ids: Vec<String>,
    /// How long another cluster may be silent before a member agent takes its id over.
    pub member_takeover_after: Duration,
    /// Where the member agents believe that the endpoints of other clusters lie.
    pub source_ranges: BTreeMap<Text, Vec<Range>>,
    /// What namespaces of the hub decide.
    pub namespace_policy: NamespacePolicy,
}

impl Options {
    /// With the agents' defaults.
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
            namespace_policy: NamespacePolicy::default(),
        }
    }
}

/// A fleet. Its time moves with tokio's clock alone.
#[derive(Debug)]
pub struct Fleet {
    /// The hub.
    pub hub: Server,
    /// The members, in order of their numbers.
    pub members: Vec<Member>,
    clock: Clock,
    options: Options,
    /// How many agents were started ever.
    started: u32,
    agents: BTreeMap<Place, (Agent, Line)>,
}

/// A member cluster.
#[derive(Debug)]
pub struct Member {
    /// Its id in the fleet.
    pub name: String,
    /// Its namespace in the hub.
    pub hub_namespace: Text,
    /// Its agent's user there. Of several clusters with one id each has its own, so that their writes can be told apart.
    pub hub_user: String,
    /// Its API server.
    pub server: Server,
}

/// What the servers of a fleet held at one moment.
#[derive(Debug)]
pub struct Backup(Vec<memkube::Backup>);

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the hub.
    Hub,
    /// In the member of that index, from 0.
    Member(usize),
}

impl Fleet {
    /// Makes the servers with the namespaces that agents need; no agent runs yet.
    ///
    /// # Errors
    /// Where a server refuses.
    pub async fn new(options: Options) -> anyhow::Result<Self> {
        let clock = Clock::virtual_at(NOON);
        let hub = server("hub", &clock, options.seed, options.form).await?;
        let mut members: Vec<Member> = Vec::new();
        for number in 1..=options.members {
            let id = options.cluster_ids.get(number - 1).cloned();
            let name = id.unwrap_or_else(|| format!("member-{number}"));
            let seed = options.seed.wrapping_add(u64::try_from(number)?);
            let hub_namespace = member_namespace(&name);
            let mut hub_user = hub_user(&hub_namespace);
            match members.iter().filter(|member| member.name == name).count() {
                0 => hub.make_namespace(&hub_namespace).await?,
                others => hub_user = format!("{hub_user}-{}", others + 1),
            }
            members.push(Member {
                server: server(&name, &clock, seed, options.form).await?,
                name,
                hub_namespace,
                hub_user,
            });
        }
        Ok(Self { hub, members, clock, options, started: 0, agents: BTreeMap::new() })
    }

    /// The clock of servers and agents.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The servers with their names, the hub first.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Server)> {
        let members = self.members.iter().map(|member| (member.name.as_str(), &member.server));
        std::iter::once(("hub", &self.hub)).chain(members)
    }

    /// Makes a namespace for users everywhere.
    ///
    /// # Errors
    /// Where a server refuses.
    pub async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        for (_, server) in self.servers() {
            server.make_namespace(name).await?;
        }
        Ok(())
    }

    /// Starts every agent that does not run, and waits until all know their clusters.
    ///
    /// # Errors
    /// Where one is not ready in time.
    pub async fn start_agents(&mut self) -> anyhow::Result<()> {
        for place in self.places() {
            if !self.agents.contains_key(&place) {
                self.start(place)?;
            }
        }
        self.ready().await
    }

    /// Waits until all agents know their clusters.
    ///
    /// # Errors
    /// Where one is not ready in time.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let ready = join_all(self.agents.values().map(|(agent, _)| agent.ready()));
        timeout(READY, ready).await.with_context(|| format!("the agents were not ready within {READY:?}"))?;
        Ok(())
    }

    /// Starts an agent, in the place of one that runs there.
    ///
    /// # Errors
    /// Where it has no metrics.
    pub fn start(&mut self, place: Place) -> anyhow::Result<()> {
        self.started += 1;
        let setup = |kind: &str| Setup {
            identity: format!("{kind}_{}_{}", self.options.seed, self.started),
            clock: self.clock.clone(),
            lease: self.options.lease,
            derived_service_grace: self.options.derived_service_grace,
            endpointslices: self.options.endpointslices.clone(),
            member_takeover_after: self.options.member_takeover_after,
            source_ranges: self.options.source_ranges.clone(),
            namespace_policy: self.options.namespace_policy,
        };
        let line = Line::default();
        let agent = match place {
            Place::Hub => {
                let hub = self.hub.cluster_over(&line, "hub", HUB_AGENT);
                agent::of_hub(Arc::new(hub), setup("hub-agent"))?
            }
            Place::Member(index) => {
                let Member { name, server, hub_user, .. } = &self.members[index];
                let member = Arc::new(server.cluster_over(&line, "member", MEMBER_AGENT));
                let hub = Arc::new(self.hub.cluster_over(&line, "hub", hub_user));
                agent::of_member(name, member, &hub, setup("member-agent"))?
            }
        };
        self.agents.insert(place, (agent, line));
        Ok(())
    }

    /// The agent that runs there.
    #[must_use]
    pub fn agent(&self, place: Place) -> Option<&Agent> {
        self.agents.get(&place).map(|(agent, _)| agent)
    }

    /// The line of the agent that runs there.
    #[must_use]
    pub fn line(&self, place: Place) -> Option<&Line> {
        self.agents.get(&place).map(|(_, line)| line)
    }

    /// All places where agents belong, the hub first.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        std::iter::once(Place::Hub).chain((0..self.members.len()).map(Place::Member))
    }

    /// Ends an agent as a crash does.
    pub async fn kill(&mut self, place: Place) {
        if let Some((agent, _)) = self.agents.remove(&place) {
            agent.kill().await;
        }
    }

    /// Every request that the hub and then the members remember, with its time and its answer's status.
    #[must_use]
    pub fn history(&self) -> Vec<Entry> {
        self.servers().flat_map(|(_, server)| server.memkube().audit().entries).collect()
    }

    /// What the servers hold now.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.servers().map(|(_, server)| server.memkube().backup()).collect())
    }

    /// Goes back to a backup of this fleet. Agents that run find that out as they would of a restored etcd: not at all.
    pub fn restore(&self, backup: &Backup) {
        for ((_, server), backup) in self.servers().zip(&backup.0) {
            server.memkube().restore(backup);
        }
    }

    /// Stops all agents in good order, at once.
    ///
    /// # Errors
    /// Where one fails, or has to be killed.
    pub async fn stop_agents(&mut self) -> anyhow::Result<()> {
        let agents = std::mem::take(&mut self.agents);
        join_all(agents.into_values().map(|(agent, _)| stop(agent))).await.into_iter().collect()
    }

    /// Stops the agent of a place in good order.
    ///
    /// # Errors
    /// Where none runs, it fails, or has to be killed.
    pub async fn stop(&mut self, place: Place) -> anyhow::Result<()> {
        let (agent, _) = self.agents.remove(&place).context("an agent runs there")?;
        stop(agent).await
    }
}

async fn stop(agent: Agent) -> anyhow::Result<()> {
    match agent.stop(STOP).await {
        Some(Ended::Stopped) => Ok(()),
        ended => bail!("{} was to stop and ended otherwise: {ended:?}", agent.name()),
    }
}

/// A member agent's user in the hub.
#[must_use]
pub fn hub_user(hub_namespace: &str) -> String {
    format!("system:serviceaccount:{hub_namespace}:member-agent")
}

async fn server(name: &str, clock: &Clock, seed: u64, form: Form) -> anyhow::Result<Server> {
    let clock = clock.clone();
    let mut options = memkube::Options::new(Arc::new(move || clock.now().to_jiff()), seed);
    options.limits.audit_entries = AUDIT_ENTRIES;
    Server::with_definitions(name, options, form).await
}
