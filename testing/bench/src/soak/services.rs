//! Services that each member exports and the other imports, and the users that change their slices.

use super::Size;
use crate::limits::SOAK_ARRIVAL;
use anyhow::{Context as _, ensure};
use fastrand::Rng;
use harness::eventually::Deadline;
use harness::fleet::{FLEET_SYSTEM, Fleet};
use harness::user::{Consume, User, addresses_of};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{interval, sleep};

/// Endpoints of each slice.
const ENDPOINTS: u32 = 5;
/// Label with the name of a slice's Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

pub(super) struct Services {
    namespace: String,
    users: Vec<User>,
    /// Clients of the members' administrators.
    clients: Vec<kube::Client>,
    size: Size,
    is_stopped: AtomicBool,
}

fn service_name(member: usize, number: u32) -> String {
    format!("app-{member}-{number}")
}

fn addresses(rng: &mut Rng) -> Vec<String> {
    (0..ENDPOINTS).map(|index| format!("10.{}.{}.{}", rng.u8(1..250), rng.u8(..), 10 * index + 1)).collect()
}

impl Services {
    /// Creates, exports and imports all Services.
    pub(super) async fn create(fleet: &Fleet, size: Size) -> anyhow::Result<Self> {
        let namespace = fleet.namespace("soak").await?;
        let clients: Vec<_> = fleet.members.iter().map(|member| member.control_plane.admin()).collect();
        let users = clients.iter().map(|client| User::new(client.clone(), &namespace)).collect();
        let services = Self { namespace, users, clients, size, is_stopped: AtomicBool::new(false) };
        let mut rng = Rng::with_seed(size.seed);
        for (member, user) in services.users.iter().enumerate() {
            let importer = &services.users[1 - member];
            for number in 0..size.services {
                let name = service_name(member, number);
                user.create_service(&name).await?;
                for slice in 0..size.slices {
                    let addresses = addresses(&mut rng);
                    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
                    user.create_slice(&name, &format!("{name}-{slice}"), &addresses).await?;
                }
                user.export(&name).await?;
                importer.import(&name, &name, Consume::ClusterIp).await?;
            }
        }
        Ok(services)
    }

    /// Changes random slices at a steady rate until [`Services::stop`]. Returns the number of changes.
    ///
    /// # Errors
    /// If a request fails.
    pub(super) async fn change(self: Arc<Self>, size: Size, mut rng: Rng) -> anyhow::Result<u32> {
        let mut ticks = interval(Duration::from_secs(1) / size.rate.max(1));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut changes = 0;
        while !self.is_stopped.load(Ordering::Relaxed) {
            ticks.tick().await;
            let member = rng.usize(..self.users.len());
            let name = service_name(member, rng.u32(..size.services));
            let slice = format!("{name}-{}", rng.u32(..size.slices));
            let addresses = addresses(&mut rng);
            let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
            self.users[member].set_endpoints(&slice, &addresses).await.with_context(|| format!("change of {slice}"))?;
            changes += 1;
        }
        Ok(changes)
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Waits until each importer has what the exporters have.
    pub(super) async fn arrived(&self) -> anyhow::Result<()> {
        let deadline = Deadline::after(SOAK_ARRIVAL);
        loop {
            let different = self.different().await?;
            if different.is_empty() {
                return Ok(());
            }
            deadline.check().with_context(|| format!("not imported as exported: {different:#?}"))?;
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Returns the Services whose imported slices have other addresses than the exported slices.
    pub(super) async fn different(&self) -> anyhow::Result<Vec<String>> {
        let mut different = Vec::new();
        for member in 0..self.users.len() {
            let exported = self.addresses_in(member, &self.namespace).await?;
            let imported = self.addresses_in(1 - member, FLEET_SYSTEM).await?;
            for number in 0..self.size.services {
                let name = service_name(member, number);
                let there = exported.get(&name).context("the users' own slices")?;
                let here = imported.get(&format!("{}-{name}", self.namespace)).cloned().unwrap_or_default();
                if *there != here {
                    different.push(format!("{name} of member {member}: exported {there:?}, imported {here:?}"));
                }
            }
        }
        ensure!(self.size.services > 0, "there are Services to compare");
        Ok(different)
    }

    /// Returns the addresses of each Service's slices in a namespace.
    async fn addresses_in(&self, member: usize, namespace: &str) -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
        let api: Api<EndpointSlice> = Api::namespaced(self.clients[member].clone(), namespace);
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for slice in api.list(&Default::default()).await? {
            let service = slice.metadata.labels.as_ref().and_then(|labels| labels.get(SERVICE_NAME));
            if let Some(service) = service {
                all.entry(service.clone()).or_default().extend(addresses_of(&slice).map(str::to_owned));
            }
        }
        Ok(all)
    }
}
