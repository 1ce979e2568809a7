//! Fleet with its agents and users, as scenarios use it, on any backend. In this crate the backend is real control
//! planes in separate processes. In the tests of `sim` the backend is memkube in one process.

mod on_processes;

pub use on_processes::OnProcesses;

use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport};
use harness::audit::{FleetLedger, FleetMark, Ledger};
use harness::user::{Consume, User};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// Settings of the fleet that a scenario needs.
#[derive(Clone, Copy, Debug)]
pub struct FleetSpec {
    pub members: usize,
    /// Time from the removal of the last export to the removal of the derived Service. `None` for the agents' default.
    pub derived_service_grace: Option<Duration>,
    /// Address ranges (CIDR) to which importers limit the first member's endpoints; `None` for no limit.
    pub source_ranges: Option<&'static str>,
    /// True if the agents use slice streams.
    pub slice_streams: bool,
}

impl FleetSpec {
    /// Two members, where a derived Service goes at once with its last export.
    pub const WITHOUT_GRACE: Self = Self::of(2).with_grace(Duration::from_millis(1));

    /// Returns settings for a fleet with this number of members, and agents with default settings.
    #[must_use]
    pub const fn of(members: usize) -> Self {
        Self { members, derived_service_grace: None, source_ranges: None, slice_streams: false }
    }

    /// Lets the agents use slice streams.
    #[must_use]
    pub const fn with_slice_streams(self) -> Self {
        Self { slice_streams: true, ..self }
    }

    /// Sets the time from the removal of the last export to the removal of the derived Service.
    #[must_use]
    pub const fn with_grace(self, grace: Duration) -> Self {
        Self { derived_service_grace: Some(grace), ..self }
    }

    /// Sets the address ranges to which importers limit the first member's endpoints.
    #[must_use]
    pub const fn with_source_ranges(self, ranges: &'static str) -> Self {
        Self { source_ranges: Some(ranges), ..self }
    }
}

/// Cluster in which an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentPlace {
    Hub,
    /// Member with this index, from 0.
    Member(usize),
}

/// Backend that runs a fleet's servers and agents, such as memkube or real control planes.
pub trait Backend: Sized {
    /// Address families that Services in the members can have, the default first.
    const FAMILIES: &'static [&'static str];

    /// Creates a fleet whose agents do not run yet.
    fn create(spec: FleetSpec) -> impl Future<Output = anyhow::Result<Self>>;

    /// Returns a client with all rights in the hub.
    fn hub(&self) -> Client;

    fn members(&self) -> Vec<Member>;

    /// Creates a namespace for users in every cluster. Returns its name, which begins with `name`.
    fn namespace(&self, name: &str) -> impl Future<Output = anyhow::Result<String>>;

    /// Starts all agents and waits until they are ready.
    fn start_agents(&mut self) -> impl Future<Output = anyhow::Result<()>>;

    /// Stops all agents gracefully, as an operator does.
    ///
    /// # Errors
    /// If an agent ends with an error.
    fn stop_agents(&mut self) -> impl Future<Output = anyhow::Result<()>>;

    /// Starts the agent of a cluster and waits until it is ready.
    fn start_agent(&mut self, place: AgentPlace) -> impl Future<Output = anyhow::Result<()>>;

    /// Stops the agent of a cluster gracefully, as an operator does.
    ///
    /// # Errors
    /// If no agent runs in the cluster, or the agent ends with an error.
    fn stop_agent(&mut self, place: AgentPlace) -> impl Future<Output = anyhow::Result<()>>;

    /// Returns the metrics of a member's agent, as text.
    fn metrics(&self, member: usize) -> impl Future<Output = anyhow::Result<String>>;

    /// Returns the present position in the audit log of every cluster.
    fn mark(&self) -> impl Future<Output = anyhow::Result<FleetMark>>;

    /// Returns the writes of all users in every cluster after the position `mark`.
    fn since(&self, mark: &FleetMark) -> impl Future<Output = anyhow::Result<FleetLedger>>;
}

/// Member of the fleet, as scenarios use it.
#[derive(Clone)]
pub struct Member {
    /// Client with all rights in the member cluster.
    pub client: Client,
    pub cluster_id: String,
    pub hub_namespace: String,
}

/// Running fleet, with a namespace for its users.
pub struct Environment<B> {
    pub backend: B,
    /// Namespace of the users, in every cluster.
    pub namespace: String,
    pub members: Vec<Member>,
}

impl<B: Backend> Environment<B> {
    /// Creates a fleet and starts its agents.
    pub async fn create(spec: FleetSpec) -> anyhow::Result<Self> {
        Self::on(B::create(spec).await?).await
    }

    /// Starts the agents of a fleet that a backend has created.
    pub async fn on(mut backend: B) -> anyhow::Result<Self> {
        let namespace = backend.namespace("work").await?;
        backend.start_agents().await?;
        let members = backend.members();
        Ok(Self { backend, namespace, members })
    }

    /// Returns a user in a member cluster.
    #[must_use]
    pub fn user(&self, member: usize) -> User {
        User::new(self.members[member].client.clone(), &self.namespace)
    }

    /// Returns the API for a kind's objects in a namespace of the hub.
    #[must_use]
    pub fn hub<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.backend.hub(), namespace)
    }

    /// Exports the Service `app` with one slice from the first member.
    pub async fn export(&self, addresses: &[&str]) -> anyhow::Result<()> {
        let exporter = self.user(0);
        exporter.export_new("app", addresses).await?;
        exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await
    }

    /// Exports the Service `app` from the first member and imports it in the second.
    pub async fn export_and_import(&self, addresses: &[&str]) -> anyhow::Result<()> {
        self.export(addresses).await?;
        self.user(1).import("app", "app", Consume::LoadBalancer).await?;
        self.user(1).sees("app", addresses).await?;
        self.user(1).sees_import("app", "True").await
    }

    /// Returns the agents' writes after the position `mark`, in the hub and in each member, without Leases and Events.
    pub async fn ledger(&self, mark: &FleetMark) -> anyhow::Result<Vec<BTreeMap<String, usize>>> {
        let ledger = self.backend.since(mark).await?.objects();
        Ok(ledger.clusters().map(Ledger::counts).collect())
    }

    /// Waits until the hub has no objects of this member for the users' namespace.
    pub async fn hub_is_empty(&self, member: usize) -> anyhow::Result<()> {
        let namespace = &self.members[member].hub_namespace;
        self.hub_has_no_slices(member).await?;
        self.nothing_of(&self.hub::<InternalServiceExport>(namespace)).await?;
        self.nothing_of(&self.hub::<InternalServiceImport>(namespace)).await
    }

    /// Waits until the hub has no slices of the users' namespace that this member exports or imports.
    pub async fn hub_has_no_slices(&self, member: usize) -> anyhow::Result<()> {
        let namespace = &self.members[member].hub_namespace;
        self.nothing_of(&self.hub::<EndpointSliceExport>(namespace)).await?;
        self.nothing_of(&self.hub::<EndpointSliceImport>(namespace)).await
    }

    async fn nothing_of<K: harness::eventually::Shown>(&self, api: &Api<K>) -> anyhow::Result<()> {
        let ours = format!("{}-", self.namespace);
        let empty = format!("nothing of {} to be left in the hub", self.namespace);
        let is_gone = |objects: &BTreeMap<String, K>| objects.keys().all(|name| !name.contains(&ours));
        harness::eventually::objects(api, &Default::default(), &empty, is_gone).await.map(drop)
    }
}
