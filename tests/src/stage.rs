//! A fleet with its agents and users as scenes see it, whatever it stands on: control planes in processes of their own
//! here, memkube in one process in `sim`'s tests.

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

/// What a scene asks for.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// How many members the fleet has.
    pub members: usize,
    /// How long a derived Service outlives its last exporter; `None`: as long as by default.
    pub derived_service_grace: Option<Duration>,
    /// Where the endpoints of the first member lie, as CIDRs, as importers are told; `None`: anywhere.
    pub source_ranges: Option<&'static str>,
}

impl Cast {
    /// So many members with agents as they are by default.
    #[must_use]
    pub const fn of(members: usize) -> Self {
        Self { members, derived_service_grace: None, source_ranges: None }
    }

    /// The same where a derived Service outlives its last exporter for so long.
    #[must_use]
    pub const fn with_grace(self, grace: Duration) -> Self {
        Self { derived_service_grace: Some(grace), ..self }
    }

    /// The same where the endpoints of the first member are said to lie there.
    #[must_use]
    pub const fn with_source_ranges(self, ranges: &'static str) -> Self {
        Self { source_ranges: Some(ranges), ..self }
    }
}

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the hub.
    Hub,
    /// In the member of that index, from 0.
    Member(usize),
}

/// A fleet to play on.
pub trait Ground: Sized {
    /// The families of which Services in members can have addresses, the usual one first.
    const FAMILIES: &'static [&'static str];

    /// Makes a fleet; its agents do not run yet.
    ///
    /// # Errors
    /// Where a server cannot be had; so of all that follows.
    fn set(cast: Cast) -> impl Future<Output = anyhow::Result<Self>>;

    /// A client of the hub that may do everything.
    fn hub(&self) -> Client;

    /// The members, in their order.
    fn members(&self) -> Vec<Member>;

    /// Makes a namespace for users everywhere and tells its name, which begins with this.
    #[allow(clippy::missing_errors_doc)]
    fn namespace(&self, name: &str) -> impl Future<Output = anyhow::Result<String>>;

    /// Starts all agents and waits until they are ready.
    #[allow(clippy::missing_errors_doc)]
    fn start_agents(&mut self) -> impl Future<Output = anyhow::Result<()>>;

    /// Stops all agents as an operator does.
    ///
    /// # Errors
    /// Where one ends otherwise than well.
    fn stop_agents(&mut self) -> impl Future<Output = anyhow::Result<()>>;

    /// Starts the agent of a place and waits until it is ready.
    #[allow(clippy::missing_errors_doc)]
    fn start_agent(&mut self, place: Place) -> impl Future<Output = anyhow::Result<()>>;

    /// Stops the agent of a place as an operator does.
    ///
    /// # Errors
    /// Where none runs, or it ends otherwise than well.
    fn stop_agent(&mut self, place: Place) -> impl Future<Output = anyhow::Result<()>>;

    /// The metrics of a member's agent, as text.
    #[allow(clippy::missing_errors_doc)]
    fn metrics(&self, member: usize) -> impl Future<Output = anyhow::Result<String>>;

    /// A mark in every audit log.
    #[allow(clippy::missing_errors_doc)]
    fn mark(&self) -> impl Future<Output = anyhow::Result<FleetMark>>;

    /// What was written since a mark, by whomever.
    #[allow(clippy::missing_errors_doc)]
    fn since(&self, mark: &FleetMark) -> impl Future<Output = anyhow::Result<FleetLedger>>;
}

/// A member of a fleet to play on.
#[derive(Clone)]
pub struct Member {
    /// A client that may do everything.
    pub client: Client,
    /// Its id in the fleet.
    pub cluster_id: String,
    /// Its namespace in the hub.
    pub hub_namespace: String,
}

/// A fleet whose agents run, with a namespace for its users.
pub struct Stage<G> {
    /// What it stands on.
    pub ground: G,
    /// The users' namespace, everywhere.
    pub namespace: String,
    /// The members, in their order.
    pub members: Vec<Member>,
}

impl<G: Ground> Stage<G> {
    /// Sets the stage.
    ///
    /// # Errors
    /// Where a server cannot be had or an agent is not ready; so of all that follows.
    pub async fn set(cast: Cast) -> anyhow::Result<Self> {
        Self::on(G::set(cast).await?).await
    }

    /// Sets the stage on a fleet whose agents do not run yet.
    ///
    /// # Errors
    /// Where an agent is not ready.
    pub async fn on(mut ground: G) -> anyhow::Result<Self> {
        let namespace = ground.namespace("work").await?;
        ground.start_agents().await?;
        let members = ground.members();
        Ok(Self { ground, namespace, members })
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
        Api::namespaced(self.ground.hub(), namespace)
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

    /// What the agents wrote since then, in the hub and in each member, Leases and Events apart.
    #[allow(clippy::missing_errors_doc)]
    pub async fn ledger(&self, mark: &FleetMark) -> anyhow::Result<Vec<BTreeMap<String, usize>>> {
        let ledger = self.ground.since(mark).await?.objects();
        Ok(ledger.clusters().map(Ledger::counts).collect())
    }

    /// Waits until the hub holds nothing that a member has to do with the users' namespace.
    #[allow(clippy::missing_errors_doc)]
    pub async fn hub_is_empty(&self, member: usize) -> anyhow::Result<()> {
        let namespace = &self.members[member].hub_namespace;
        self.hub_has_no_slices(member).await?;
        self.nothing_of(&self.hub::<InternalServiceExport>(namespace)).await?;
        self.nothing_of(&self.hub::<InternalServiceImport>(namespace)).await
    }

    /// Waits until the hub holds no slices of the users' namespace that a member exports or is given.
    #[allow(clippy::missing_errors_doc)]
    pub async fn hub_has_no_slices(&self, member: usize) -> anyhow::Result<()> {
        let namespace = &self.members[member].hub_namespace;
        self.nothing_of(&self.hub::<EndpointSliceExport>(namespace)).await?;
        self.nothing_of(&self.hub::<EndpointSliceImport>(namespace)).await
    }

    async fn nothing_of<K: crate::eventually::Shown>(&self, api: &Api<K>) -> anyhow::Result<()> {
        let ours = format!("{}-", self.namespace);
        let empty = format!("nothing of {} to be left in the hub", self.namespace);
        let is_gone = |held: &BTreeMap<String, K>| held.keys().all(|name| !name.contains(&ours));
        crate::eventually::objects(api, &Default::default(), &empty, is_gone).await.map(drop)
    }
}
