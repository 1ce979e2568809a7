//! Tests of the hub agent's work for many importers: it is counted, on simulated API servers. Only the hub agent runs.
//! The test writes what the member agents would write.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport};
use fleetnet_api::names::GROUP;
use harness::user::User;
use kube::Api;
use kube::api::ListParams;
use memkube::auth::{Call, Verb};
use memkube::faults::{Fault, Faults};
use serde_json::{Value, json};
use sim::agent::{self, Agent, Setup};
use sim::server::Server;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const EXPORTER: &str = "fleet-member-exporter";
const IMPORTERS: usize = 20;
const SERVICES: usize = 20;

fn importer(number: usize) -> String {
    format!("fleet-member-importer-{number:02}")
}

fn app(number: usize) -> String {
    format!("app-{number:02}")
}

/// Returns a reference to an object of a member.
fn reference(kind: &str, cluster: &str, name: &str, generation: i64) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "clusterId": cluster, "namespace": "work", "name": name,
           "namespacedName": format!("work/{name}"), "uid": format!("uid-{cluster}-{name}"), "resourceVersion": "1",
           "generation": generation, "exportedSince": "2026-11-21T03:46:06Z"})
}

fn slice_export(service: usize, address: &str, generation: i64) -> Value {
    let name = app(service);
    json!({"metadata": {"name": format!("exporter-work-{name}")},
           "spec": {"addressType": "IPv4", "endpoints": [{"addresses": [address]}],
                    "endpointSliceReference": reference("EndpointSlice", "exporter", &name, generation),
                    "ownerServiceReference": {"namespace": "work", "name": name, "namespacedName": format!("work/{name}")},
                    "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}})
}

/// Server that takes 2 ms for each write of the hub agent, as real servers do.
struct Slow;

impl Faults for Slow {
    fn request(&self, call: &Call) -> Fault {
        let is_write = matches!(call.verb, Verb::Create | Verb::Patch | Verb::Update | Verb::Delete);
        let delay = if is_write && &*call.user.name == "hub-agent" { Duration::from_millis(2) } else { Duration::ZERO };
        Fault { delay_before: delay, ..Fault::default() }
    }
}

struct Hub {
    server: Server,
    agent: Agent,
}

impl Hub {
    /// Starts a hub in which one member exports [`SERVICES`] Services with one slice each, and [`IMPORTERS`] members
    /// import all of them.
    async fn start() -> anyhow::Result<Self> {
        let options = memkube::Options::new(Arc::new(|| jiff::Timestamp::constant(1_795_000_000, 0)), 0);
        let server = Server::start("hub", options).await?;
        for namespace in ["work".to_owned(), EXPORTER.to_owned()].into_iter().chain((0..IMPORTERS).map(importer)) {
            server.make_namespace(&namespace).await?;
        }
        let cluster = Arc::new(server.cluster("hub", "hub-agent"));
        let agent = agent::of_hub(cluster, Setup::usual("hub-agent"))?;
        let hub = Self { server, agent };
        for service in 0..SERVICES {
            let name = app(service);
            let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}]);
            let export = json!({"metadata": {"name": format!("work-{name}")},
                                "spec": {"ports": ports, "serviceReference": reference("Service", "exporter", &name, 0)}});
            hub.in_namespace(EXPORTER).create::<InternalServiceExport>(export).await?;
            hub.in_namespace(EXPORTER).create::<EndpointSliceExport>(slice_export(service, "10.0.0.1", 1)).await?;
            for importer in (0..IMPORTERS).map(importer) {
                let cluster = importer.trim_start_matches("fleet-member-");
                let annotations = json!({format!("{GROUP}/service-type"): "ClusterIP"});
                let claim = json!({"metadata": {"name": format!("work-{name}"), "annotations": annotations},
                                   "spec": {"serviceImportReference": reference("ServiceImport", cluster, &name, 1)}});
                hub.in_namespace(&importer).create::<InternalServiceImport>(claim).await?;
            }
        }
        hub.agent.ready().await;
        hub.settles().await?;
        Ok(hub)
    }

    fn in_namespace(&self, namespace: &str) -> User {
        User::new(self.server.admin(), namespace)
    }

    /// Waits until the hub agent has planned nothing for five seconds. Returns the number of its plans.
    async fn settles(&self) -> anyhow::Result<u64> {
        let mut plans = self.plans()?;
        loop {
            sleep(Duration::from_secs(5)).await;
            let now = self.plans()?;
            if now == plans {
                return Ok(now);
            }
            plans = now;
        }
    }

    fn plans(&self) -> anyhow::Result<u64> {
        const COUNT: &str = "fleetnet_plan_duration_seconds_count{controller=\"fleet\"} ";
        let metrics = self.agent.metrics()?;
        let count = metrics.lines().find_map(|line| line.strip_prefix(COUNT));
        Ok(count.context("plans are counted")?.trim().parse()?)
    }

    /// Returns the number of objects with this address.
    async fn imported(&self, address: &str) -> anyhow::Result<usize> {
        let copies = Api::<EndpointSliceImport>::all(self.server.admin()).list(&ListParams::default()).await?;
        let has = |copy: &&EndpointSliceImport| {
            copy.spec.slice.endpoints.iter().any(|endpoint| endpoint.addresses.iter().any(|other| other == address))
        };
        Ok(copies.items.iter().filter(has).count())
    }
}

/// Also rule Q9.
#[test]
fn many_changes_for_many_importers_cost_two_plans_for_each_write() -> anyhow::Result<()> {
    sim::paused(async {
        let hub = Hub::start().await?;
        ensure!(hub.imported("10.0.0.1").await? == SERVICES * IMPORTERS, "each importer has each slice");
        let before = hub.plans()?;
        hub.server.memkube().set_faults(Some(Arc::new(Slow)));
        for service in 0..SERVICES {
            let changed = slice_export(service, "10.0.0.2", 2);
            let name = format!("exporter-work-{}", app(service));
            hub.in_namespace(EXPORTER).merge::<EndpointSliceExport>(&name, changed).await?;
        }
        let plans = hub.settles().await? - before;
        let writes = hub.imported("10.0.0.2").await?;
        ensure!(writes == SERVICES * IMPORTERS, "{writes} copies have the change");
        // One plan begins each write, and one follows its answer. Each changed export is planned too.
        ensure!(plans == (2 * writes + SERVICES) as u64, "{plans} plans for {writes} writes");
        Ok(())
    })
}
