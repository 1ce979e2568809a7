//! The measured fleet: servers in the bench, agents as processes, and the writes that change it.

use super::content::{self, cluster_id, hub_collection, user_collection};
use super::others::Others;
use super::scenario::{Api, NAMESPACE, OTHER_NAMESPACE, Scenario};
use super::size::Size;
use crate::bare::Bare;
use crate::follow::Follow;
use crate::limits::{CHECK_INTERVAL, COPY, IMPORT, IN_FLIGHT_PER_CLUSTER, LOG_BYTES, LOG_CHANGES};
use crate::objects::{service, service_name, slice, slice_name};
use anyhow::Context as _;
use fleetnet_api::crds;
use fleetnet_api::names::{GROUP, MCS_GROUP, MCS_VERSION, labels};
use fleetnet_core::names::member_namespace;
use fleetnet_runtime::clock::{Clock, to_jiff};
use fleetnet_runtime::io::client::Cluster;
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use harness::agent::{Agent, AgentSpec};
use harness::eventually::Deadline;
use harness::in_memory::{AGENT, HUB_AGENT, Server, hub_agent, member_agent_of};
use harness::process::Ended;
use kube::api::ListParams;
use memkube::auth::{Call, Verb};
use memkube::faults::{Fault, Faults};
use memkube::{Options, User};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval};

/// Running fleet.
pub struct Fleet {
    pub scenario: Scenario,
    pub clock: Clock,
    hub: Server,
    own: Server,
    pub hub_client: Arc<Bare>,
    own_client: Bare,
    endpoints: usize,
    next_marker: u32,
}

/// Delay of every write.
struct SlowWrites(Duration);

impl Faults for SlowWrites {
    fn request(&self, call: &Call) -> Fault {
        let delay_before = if call.verb.writes() { self.0 } else { Duration::ZERO };
        Fault { delay_before, ..Fault::default() }
    }
}

impl Fleet {
    /// Starts the servers, and writes everything that the users and the other members write before the agents start.
    pub async fn start(scenario: Scenario, size: &Size) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let (hub, own) = (server("hub", &clock, 1).await?, server("member", &clock, 2).await?);
        let client = |server: &Server| {
            let client = server.memkube.client(User::new("bench"));
            Bare::new(Cluster::from_clients("bench", client.clone(), client))
        };
        let (hub_client, own_client) = (Arc::new(client(&hub)), client(&own));
        let (endpoints, next_marker) = (size.endpoints, scenario.services);
        let fleet = Self { scenario, clock, hub, own, hub_client, own_client, endpoints, next_marker };
        fleet.fill_hub().await?;
        fleet.fill_member().await?;
        for server in [&fleet.hub, &fleet.own] {
            server.memkube.set_faults(Some(Arc::new(SlowWrites(size.write_delay()))));
        }
        Ok(fleet)
    }

    #[must_use]
    pub fn hub(&self) -> &Server {
        &self.hub
    }

    /// Starts the tasks of the other members.
    #[must_use]
    pub fn others(&self) -> Others {
        Others::start(&self.hub_client, &self.clock, &self.scenario)
    }

    /// Returns settings for the hub agent.
    #[must_use]
    pub fn hub_agent(&self) -> AgentSpec {
        hub_agent(&self.hub)
    }

    /// Returns settings for the agent of member 0. Its EndpointSlice controller is off, because users write the slices
    /// here.
    #[must_use]
    pub fn member_agent(&self) -> AgentSpec {
        let agent = member_agent_of(&self.own, &self.hub).flag("--endpointslices", "off");
        match self.scenario.api {
            Api::Fleet => agent,
            Api::Mcs => agent.flag("--multicluster-api", "true"),
        }
    }

    /// Starts to record the copies that arrive in the hub.
    pub async fn copies(&self) -> anyhow::Result<Follow> {
        Follow::start(&self.hub_client, &format!("/apis/{GROUP}/v1alpha1/endpointsliceimports")).await
    }

    /// Starts to record the slices that member 0 imports.
    pub async fn imports(&self) -> anyhow::Result<Follow> {
        let namespace = match self.scenario.api {
            Api::Fleet => "fleet-system",
            Api::Mcs => NAMESPACE,
        };
        Follow::start(&self.own_client, &user_collection("apis/discovery.k8s.io/v1", namespace, "endpointslices")).await
    }

    /// Changes the slice of a Service in the hub, as its exporter does. Returns the marker of the new state at once,
    /// and a future that makes the write.
    pub fn change(&mut self, service: u32) -> (u32, impl Future<Output = anyhow::Result<()>> + use<>) {
        let marker = self.next_marker;
        self.next_marker += 1;
        let (of, hub) = (self.scenario.exported(service), Arc::clone(&self.hub_client));
        let path = format!("{}/{}", hub_collection("endpointsliceexports", of.member), content::slice_export_name(of));
        let body = content::slice_change(of, marker, self.endpoints, &self.clock);
        (marker, async move { hub.patch(&path, &body).await.map(drop) })
    }

    /// Changes the slices of these Services in turn, at a steady rate, until the hub has answered all changes. Returns
    /// the Service, the marker and the time of each change.
    pub async fn changes(
        &mut self,
        services: &[u32],
        rate: u32,
        seconds: u32,
    ) -> anyhow::Result<Vec<(u32, u32, Instant)>> {
        let mut ticks = interval(Duration::from_secs(1) / rate);
        let (mut made, mut writes) = (Vec::new(), Vec::new());
        for service in services.iter().cycle().take(usize::try_from(rate * seconds)?) {
            ticks.tick().await;
            let (marker, write) = self.change(*service);
            made.push((*service, marker, Instant::now()));
            writes.push(tokio::spawn(write));
        }
        for write in try_join_all(writes).await? {
            write?;
        }
        Ok(made)
    }

    /// Returns the number of writes that the hub agent has made to the copies, and the number of its writes in total,
    /// without Leases and Events.
    #[must_use]
    pub fn hub_agent_writes(&self) -> (u64, u64) {
        let all = writes(&self.hub, HUB_AGENT);
        let copies = all.iter().filter(|(resource, _)| resource.starts_with("endpointsliceimports"));
        (copies.map(|(_, count)| count).sum(), all.iter().map(|(_, count)| count).sum())
    }

    /// Returns the number of writes that the agent of member 0 has made to imported slices, and the number of its
    /// writes in total, without Leases, Events and heartbeats.
    #[must_use]
    pub fn member_agent_writes(&self) -> (u64, u64) {
        let own = writes(&self.own, AGENT);
        let imported =
            own.iter().filter(|(resource, _)| resource.starts_with("endpointslices")).map(|(_, count)| count);
        let hub: u64 = writes(&self.hub, AGENT).iter().map(|(_, count)| count).sum();
        (imported.sum(), hub + own.iter().map(|(_, count)| count).sum::<u64>())
    }

    /// Waits until the hub agent has created all copies, and the agent of member 0 has created its imported slices.
    pub async fn distributed(&self) -> anyhow::Result<()> {
        let (copies, imports) = (self.scenario.copies(), self.scenario.imports_of(0).len());
        let deadline = Deadline::after(IMPORT + COPY * u32::try_from(copies)?);
        loop {
            let (made, imported) = (self.created(Side::Hub), self.created(Side::Member));
            if made >= copies && imported >= u64::try_from(imports)? {
                return Ok(());
            }
            let state = || format!("{made} of {copies} copies, {imported} of {imports} imported slices");
            deadline.check().with_context(state)?;
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Waits until the hub agent has its Lease. Returns the holder and the number of transitions.
    pub async fn hub_lease(&self) -> anyhow::Result<(String, i32)> {
        let deadline = Deadline::start();
        loop {
            let leases = self.hub.leases().list(&ListParams::default()).await?;
            let held = leases.into_iter().filter_map(|lease| {
                let spec = lease.spec?;
                let holder = spec.holder_identity.filter(|holder| !holder.is_empty())?;
                Some((holder, spec.lease_transitions.unwrap_or_default()))
            });
            if let Some(held) = held.into_iter().next() {
                return Ok(held);
            }
            deadline.check().context("the hub agent does not get its Lease")?;
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Stops an agent, which releases its Leases.
    pub async fn stop(agent: &Agent) -> anyhow::Result<()> {
        let ended = agent.terminate().await?;
        anyhow::ensure!(ended == Ended::Exited(0), "an agent ended with {ended:?}");
        Ok(())
    }

    fn created(&self, side: Side) -> u64 {
        let (server, user, plural) = match side {
            Side::Hub => (&self.hub, HUB_AGENT, "endpointsliceimports."),
            Side::Member => (&self.own, AGENT, "endpointslices."),
        };
        let counts = server.memkube.audit().counts.into_iter();
        let created = counts.filter(|(kind, _)| {
            &*kind.user == user && kind.verb == Verb::Create && kind.code == 201 && kind.resource.starts_with(plural)
        });
        created.map(|(_, count)| count).sum()
    }

    async fn fill_hub(&self) -> anyhow::Result<()> {
        let Scenario { members, services, .. } = self.scenario;
        namespace(&self.hub_client, NAMESPACE).await?;
        for member in 1..members {
            namespace(&self.hub_client, &member_namespace(&cluster_id(member))).await?;
            let agent = content::member_agent(member, &self.clock);
            self.hub_client.create(&hub_collection("memberagents", member), &agent).await?;
        }
        let mut bodies: Vec<(String, Value)> = Vec::new();
        for service in 0..services {
            let exporter = self.scenario.exporter(service);
            if exporter != 0 {
                let of = self.scenario.exported(service);
                let slice = content::slice_export(of, service, self.endpoints, &self.clock);
                let export = content::service_export(of);
                bodies.push((hub_collection("internalserviceexports", exporter), export));
                bodies.push((hub_collection("endpointsliceexports", exporter), slice));
            }
            if self.scenario.api == Api::Mcs {
                continue; // the other members request the slices when the hub agent has made the MergedServiceImports
            }
            let importers = self.scenario.importers(service).filter(|importer| *importer != 0);
            bodies.extend(
                importers.map(|it| (hub_collection("internalserviceimports", it), content::claim(service, it))),
            );
        }
        create_all(&self.hub_client, bodies).await
    }

    async fn fill_member(&self) -> anyhow::Result<()> {
        namespace(&self.own_client, NAMESPACE).await?;
        let export_version = match self.scenario.api {
            Api::Fleet => format!("{GROUP}/v1beta1"),
            Api::Mcs => format!("{MCS_GROUP}/{MCS_VERSION}"),
        };
        if self.scenario.api == Api::Mcs {
            for definition in crds::mcs() {
                let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
                self.own_client.create(path, &serde_json::to_value(definition)?).await?;
            }
            namespace(&self.own_client, OTHER_NAMESPACE).await?;
            let label = json!({"metadata": {"labels": {labels::IMPORT: "true"}}});
            self.own_client.patch(&format!("/api/v1/namespaces/{NAMESPACE}"), &label).await?;
        }
        let mut bodies: Vec<(String, Value)> = Vec::new();
        for number in (0..self.scenario.services).filter(|service| self.scenario.exporter(*service) == 0) {
            let (name, at) = (service_name(number), self.scenario.exported(number).namespace);
            let source = slice(&name, &slice_name(number, 0), number, self.endpoints);
            let export = json!({"apiVersion": export_version, "kind": "ServiceExport", "metadata": {"name": name}});
            bodies.push((user_collection("api/v1", at, "services"), service(&name)));
            bodies.push((user_collection("apis/discovery.k8s.io/v1", at, "endpointslices"), source));
            bodies.push((user_collection(&format!("apis/{export_version}"), at, "serviceexports"), export));
        }
        if self.scenario.api == Api::Mcs {
            return create_all(&self.own_client, bodies).await;
        }
        let imports = user_collection(&format!("apis/{GROUP}/v1alpha1"), NAMESPACE, "multiclusterservices");
        for name in self.scenario.imports_of(0).into_iter().map(service_name) {
            let import = json!({
                "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "MultiClusterService",
                "metadata": {"name": name}, "spec": {"serviceImport": {"name": name}, "type": "ClusterIP"},
            });
            bodies.push((imports.clone(), import));
        }
        create_all(&self.own_client, bodies).await
    }
}

/// Cluster in which an agent creates slices.
#[derive(Clone, Copy)]
enum Side {
    Hub,
    Member,
}

/// Starts a server in memory with the clock of the agents. Servers with the same seed give the same UIDs to their
/// objects.
pub(crate) async fn server(name: &str, clock: &Clock, seed: u64) -> anyhow::Result<Server> {
    let clock = clock.clone();
    let mut options = Options::new(Arc::new(move || to_jiff(clock.now())), seed);
    (options.limits.log_changes, options.limits.log_bytes) = (LOG_CHANGES, LOG_BYTES);
    // The measurement reads only the numbers of requests.
    options.limits.audit_entries = 1;
    Server::with(name, options).await
}

/// Returns the number of successful writes of a user for each resource, without Leases, Events and the heartbeats of
/// members.
fn writes(server: &Server, user: &str) -> Vec<(String, u64)> {
    let counts = server.memkube.audit().counts.into_iter();
    let of_user = counts.filter(|(kind, _)| &*kind.user == user && kind.verb.writes() && kind.code < 300);
    let other = |resource: &str| {
        let is_heartbeat = resource.starts_with("memberagents.") && !resource.ends_with("/status");
        is_heartbeat || ["leases.", "events"].iter().any(|other| resource.starts_with(other))
    };
    of_user.map(|(kind, count)| (kind.resource, count)).filter(|(resource, _)| !other(resource)).collect()
}

async fn namespace(client: &Bare, name: &str) -> anyhow::Result<()> {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client.create("/api/v1/namespaces", &body).await.map(drop)
}

async fn create_all(client: &Bare, bodies: Vec<(String, Value)>) -> anyhow::Result<()> {
    let creates = bodies.iter().map(|(path, body)| client.create(path, body));
    stream::iter(creates).buffer_unordered(IN_FLIGHT_PER_CLUSTER).try_for_each(|_| async { Ok(()) }).await
}
