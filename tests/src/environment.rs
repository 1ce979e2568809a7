//! A fleet with its agents and users, as scenarios see it, in any environment. Here it runs on control planes in processes of
//! their own; in `sim`'s tests it runs on memkube in one process.

mod on_processes;

pub use on_processes::OnProcesses;

use crate::audit::{FleetLedger, FleetMark, Ledger};
use crate::user::{Consume, User};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// Fleet that a scenario needs.
#[derive(Clone, Copy, Debug)]
pub struct FleetSpec {
    pub members: usize,
    /// Time that a derived Service outlives its last exporter; `None` for the default.
    pub derived_service_grace: Option<Duration>,
    /// CIDRs of the first member's endpoints, as importers have them in their settings; `None` for no limit.
    pub source_ranges: Option<&'static str>,
}

impl FleetSpec {
    /// That many members, with agents with default settings.
    #[must_use]
    pub const fn of(members: usize) -> Self {
        Self { members, derived_service_grace: None, source_ranges: None }
    }

    /// The same with this time that a derived Service outlives its last exporter.
    #[must_use]
    pub const fn with_grace(self, grace: Duration) -> Self {
        Self { derived_service_grace: Some(grace), ..self }
    }

    /// The same with these ranges of the first member's endpoints.
    #[must_use]
    pub const fn with_source_ranges(self, ranges: &'static str) -> Self {
        Self { source_ranges: Some(ranges), ..self }
    }
}

/// Cluster of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentPlace {
    Hub,
    /// The member of that index, from 0.
    Member(usize),
}

/// Environment of a fleet.
pub trait Backend: Sized {
    /// Address families that Services in members can have, the default first.
    const FAMILIES: &'static [&'static str];

    /// Creates a fleet whose agents do not run yet.
    fn create(spec: FleetSpec) -> impl Future<Output = anyhow::Result<Self>>;

    /// Client of the hub with all rights.
    fn hub(&self) -> Client;

    fn members(&self) -> Vec<Member>;

    /// Creates a namespace for users in each cluster. Returns its name, which begins with `name`.
    #[allow(clippy::missing_errors_doc)]
    fn namespace(&self, name: &str) -> impl Future<Output = anyhow::Result<String>>;

    /// Starts all agents and waits until they are ready.
    #[allow(clippy::missing_errors_doc)]
    fn start_agents(&mut self) -> impl Future<Output = anyhow::Result<()>>;

    /// Stops all agents as an operator does.
    ///
    /// # Errors
    /// If one ends with an error.
    fn stop_agents(&mut self) -> impl Future<Output = anyhow::Result<()>>;

    /// Starts the agent of a place and waits until it is ready.
    #[allow(clippy::missing_errors_doc)]
    fn start_agent(&mut self, place: AgentPlace) -> impl Future<Output = anyhow::Result<()>>;

    /// Stops the agent of a place as an operator does.
    ///
    /// # Errors
    /// If none runs, or it ends with an error.
    fn stop_agent(&mut self, place: AgentPlace) -> impl Future<Output = anyhow::Result<()>>;

    /// Metrics of a member's agent, as text.
    #[allow(clippy::missing_errors_doc)]
    fn metrics(&self, member: usize) -> impl Future<Output = anyhow::Result<String>>;

    /// A mark in every audit log.
    #[allow(clippy::missing_errors_doc)]
    fn mark(&self) -> impl Future<Output = anyhow::Result<FleetMark>>;

    /// Writes of all users since a mark.
    #[allow(clippy::missing_errors_doc)]
    fn since(&self, mark: &FleetMark) -> impl Future<Output = anyhow::Result<FleetLedger>>;
}

/// A member of a fleet.
#[derive(Clone)]
pub struct Member {
    /// Client with all rights.
    pub client: Client,
    pub cluster_id: String,
    pub hub_namespace: String,
}

/// A fleet whose agents run, with a namespace for its users.
pub struct Environment<B> {
    /// Environment of the fleet.
    pub backend: B,
    /// Namespace of users, in each cluster.
    pub namespace: String,
    pub members: Vec<Member>,
}

impl<B: Backend> Environment<B> {
    /// Creates a fleet and starts its agents.
    pub async fn create(spec: FleetSpec) -> anyhow::Result<Self> {
        Self::on(B::create(spec).await?).await
    }

    /// Starts the agents of an existing fleet.
    pub async fn on(mut backend: B) -> anyhow::Result<Self> {
        let namespace = backend.namespace("work").await?;
        backend.start_agents().await?;
        let members = backend.members();
        Ok(Self { backend, namespace, members })
    }

    /// A user in a member.
    #[must_use]
    pub fn user(&self, member: usize) -> User {
        User::new(self.members[member].client.clone(), &self.namespace)
    }

    /// Objects of a kind in a namespace of the hub.
    #[must_use]
    pub fn hub<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.backend.hub(), namespace)
    }

    /// Exports `app` with one slice from the first member.
    #[allow(clippy::missing_errors_doc)]
    pub async fn export(&self, addresses: &[&str]) -> anyhow::Result<()> {
        let exporter = self.user(0);
        exporter.create_service("app").await?;
        exporter.create_slice("app", "app-1", addresses).await?;
        exporter.export("app").await?;
        exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await
    }

    /// Exports `app` and imports it in the second member.
    #[allow(clippy::missing_errors_doc)]
    pub async fn export_and_import(&self, addresses: &[&str]) -> anyhow::Result<()> {
        self.export(addresses).await?;
        self.user(1).import("app", "app", Consume::LoadBalancer).await?;
        self.user(1).sees("app", addresses).await?;
        self.user(1).sees_import("app", "True").await
    }

    /// Writes of the agents since then, in the hub and in each member, without Leases and Events.
    #[allow(clippy::missing_errors_doc)]
    pub async fn ledger(&self, mark: &FleetMark) -> anyhow::Result<Vec<BTreeMap<String, usize>>> {
        let ledger = self.backend.since(mark).await?.objects();
        Ok(ledger.clusters().map(Ledger::counts).collect())
    }

    /// Waits until the hub has no objects of a member for the users' namespace.
    #[allow(clippy::missing_errors_doc)]
    pub async fn hub_is_empty(&self, member: usize) -> anyhow::Result<()> {
        let namespace = &self.members[member].hub_namespace;
        self.hub_has_no_slices(member).await?;
        self.nothing_of(&self.hub::<InternalServiceExport>(namespace)).await?;
        self.nothing_of(&self.hub::<InternalServiceImport>(namespace)).await
    }

    /// Waits until the hub has no slices of the users' namespace that a member exports or imports.
    #[allow(clippy::missing_errors_doc)]
    pub async fn hub_has_no_slices(&self, member: usize) -> anyhow::Result<()> {
        let namespace = &self.members[member].hub_namespace;
        self.nothing_of(&self.hub::<EndpointSliceExport>(namespace)).await?;
        self.nothing_of(&self.hub::<EndpointSliceImport>(namespace)).await
    }

    async fn nothing_of<K: crate::eventually::Shown>(&self, api: &Api<K>) -> anyhow::Result<()> {
        let ours = format!("{}-", self.namespace);
        let empty = format!("nothing of {} to be left in the hub", self.namespace);
        let is_gone = |objects: &BTreeMap<String, K>| objects.keys().all(|name| !name.contains(&ours));
        crate::eventually::objects(api, &Default::default(), &empty, is_gone).await.map(drop)
    }
}
