//! Requests arrive: in a cluster, and in another cluster of the fleet.

use anyhow::ensure;
use fleetnet_api::crd::multicluster::ServiceExport;
use harness::eventually;
use harness::fleet::FLEET_SYSTEM;
use harness::user::{Consume, User};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::WatchParams;
use packets::clock;
use packets::image::result::Totals;
use packets::interruptions::{Interruption, PRE_STOP};
use packets::kubelet::Times;
use packets::limits::SETTLED;
use packets::node::ProxyMode;
use packets::pair::Pair;
use packets::replicas::Successor;
use packets::workload::{self, Client, Servers, cluster_ip};
use packets::{Fleet, Settings, load_balancer};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Address of a load balancer in front of the importer.
const BALANCER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// Servers of most tests.
const APP: Servers<'static> = Servers { name: "app", replicas: 2, pre_stop: None, probe_delay: 0 };

/// Sends requests to a Service of the same cluster. Then stops kube-proxy, and sends requests to a new Service.
async fn own_service(proxy_mode: ProxyMode) -> anyhow::Result<()> {
    let mut fleet = Fleet::start(Settings { nodes: vec![1], proxy_mode, ..Settings::default() }).await?;
    let namespace = fleet.servers.namespace("own").await?;
    let user = fleet.user(0, &namespace);
    APP.create(&user).await?;
    let service = APP.create_service(&user).await?;
    let addresses = service.spec.as_ref().and_then(|spec| spec.cluster_ips.clone()).unwrap_or_default();
    let [four, six] = &addresses[..] else { anyhow::bail!("not of both families: {addresses:?}") };
    for (name, target, more) in [
        ("http", format!("http://{four}:80"), "--rate=50"),
        ("http6", format!("http://[{six}]:80"), "--rate=50"),
        ("kept", format!("http://{four}:80"), "--connections=4"),
        ("tcp", format!("tcp://{four}:81"), "--rate=50"),
        ("udp", format!("udp://{four}:80"), "--rate=50"),
        ("name", "http://app:80".to_owned(), "--rate=50"),
    ] {
        let client = Client::create(&user, name, &target, &[more]).await?;
        client.counts("answers", |totals| totals.servers.values().any(|server| server.answers > 20)).await?;
        client.stop().await?;
    }

    // Without kube-proxy, nobody knows the address of a new Service.
    fleet.members[0].nodes[0].stop_proxy().await?;
    let later = Servers { name: "later", ..APP };
    later.create(&user).await?;
    let service = later.create_service(&user).await?;
    let client = Client::create(&user, "lost", &format!("http://{}:80", cluster_ip(&service)?), &["--rate=50"]).await?;
    let totals = client.counts("20 requests without answer", |totals| totals.lost >= 20).await?;
    ensure!(totals.servers.is_empty(), "{totals:?}");
    Ok(())
}

#[test]
fn a_request_arrives_through_kube_proxy_and_not_without_it() -> anyhow::Result<()> {
    packets::inside(async || own_service(ProxyMode::Nftables).await)
}

#[test]
fn a_request_arrives_through_kube_proxy_in_iptables_mode() -> anyhow::Result<()> {
    packets::inside_with(&["iptables", "ip6tables"], async || own_service(ProxyMode::Iptables).await)
}

/// Fleet of an exporting member with two nodes and an importing member with one, whose agents run.
struct Shared {
    exporter: User,
    importer: User,
    namespace: String,
    _agents: packets::fleet::Agents,
    fleet: Fleet,
}

impl Shared {
    async fn start() -> anyhow::Result<Self> {
        let fleet = Fleet::start(Settings { nodes: vec![2, 1], ..Settings::default() }).await?;
        let namespace = fleet.servers.namespace("shared").await?;
        let agents = fleet.start_agents().await?;
        let [exporter, importer] = [0, 1].map(|index| fleet.user(index, &namespace));
        Ok(Self { exporter, importer, namespace, _agents: agents, fleet })
    }

    /// Exports a Service over the standard API. Returns the address of the import in the importer.
    async fn export(&self, service: &str) -> anyhow::Result<String> {
        let exporting = &self.fleet.servers.members[0].cluster_id;
        workload::export(&self.exporter, exporting, &self.importer, service).await
    }
}

#[test]
fn requests_to_an_imported_service_reach_the_pods_of_the_exporter() -> anyhow::Result<()> {
    packets::inside(async || {
        let shared = Shared::start().await?;
        let Shared { exporter, importer, namespace, .. } = &shared;
        APP.create(exporter).await?;
        APP.create_service(exporter).await?;
        let address = shared.export("app").await?;
        let name = format!("app.{namespace}.svc.clusterset.local");
        for (client, target) in [("address", format!("http://{address}:80")), ("name", format!("http://{name}:80"))] {
            let client = Client::create(importer, client, &target, &["--rate=50"]).await?;
            client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
            client.stop().await?;
        }

        // The same over the fleet's own API.
        exporter.export("app").await?;
        importer.import("app", "app", Consume::ClusterIp).await?;
        let derived = importer.derived_service("app").await?;
        let target = format!("http://{}:80", cluster_ip(&derived)?);
        let client = Client::create(importer, "fleet-api", &target, &["--rate=50"]).await?;
        client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
        Ok(())
    })
}

#[test]
fn no_request_is_lost_in_a_rolling_update_of_the_exporter() -> anyhow::Result<()> {
    packets::inside(async || {
        let shared = Shared::start().await?;
        let app = Servers { name: "app", replicas: 4, pre_stop: Some(10), probe_delay: 0 };
        app.create(&shared.exporter).await?;
        app.create_service(&shared.exporter).await?;
        let address = shared.export("app").await?;
        let target = format!("http://{address}:80");
        let mut clients = outside(&shared, "app").await?;
        for (name, settings) in
            [("new", ["--rate=100", "--connections=0"]), ("kept", ["--rate=100", "--connections=5"])]
        {
            clients.push(Client::create(&shared.importer, name, &target, &settings).await?);
        }
        let mut before = Vec::new();
        for client in &clients {
            before.push(client.counts("answers", |totals| totals.sent > totals.lost).await?);
        }
        // Until now, kube-proxy did not know all servers, and requests could be lost.
        tokio::time::sleep(SETTLED).await;
        for (client, before) in clients.iter().zip(&mut before) {
            *before = client.totals().await?;
        }
        app.roll(&shared.exporter, 2).await?;
        for (client, before) in clients.iter().zip(&before) {
            let is_new = |totals: &Totals| totals.servers.keys().any(|server| !before.servers.contains_key(server));
            client.counts("an answer of a new pod", is_new).await?;
            let after = client.stop().await?;
            eprintln!("requests in a rolling update: {client:?} {after:?}");
            ensure!(after.lost == before.lost, "lost by {client:?}: {after:?}, before: {before:?}");
            ensure!(after.sent - before.sent >= 250, "too few requests of {client:?}: {after:?}, before: {before:?}");
        }
        Ok(())
    })
}

/// Starts clients outside of all clusters: one at a node port of the importer, and one at the address of a load balancer in front of it.
async fn outside(shared: &Shared, service: &str) -> anyhow::Result<Vec<Client>> {
    let Shared { exporter, importer, fleet, .. } = shared;
    exporter.export(service).await?;
    importer.import(service, service, Consume::LoadBalancer).await?;
    let derived = importer.derived_service(service).await?.metadata.name.unwrap_or_default();
    let nodes: Vec<_> = fleet.members[1].nodes.iter().map(|node| node.network).collect();
    let system = fleet.user(1, FLEET_SYSTEM);
    let port = load_balancer::give(&system, &derived, BALANCER, &nodes).await?;
    let targets = [format!("http://{}:{port}", nodes[0].address()), format!("http://{BALANCER}:80")];
    let mut clients = Vec::new();
    for (target, control_port) in targets.iter().zip(9091..) {
        clients.push(Client::outside(target, target, control_port, &["--rate=50"]).await?);
    }
    Ok(clients)
}

#[test]
fn an_ended_export_refuses_requests_and_a_new_one_has_the_same_address() -> anyhow::Result<()> {
    packets::inside(async || {
        let shared = Shared::start().await?;
        let Shared { exporter, importer, .. } = &shared;
        APP.create(exporter).await?;
        APP.create_service(exporter).await?;
        let address = shared.export("app").await?;
        let client = Client::create(importer, "client", &format!("http://{address}:80"), &["--rate=50"]).await?;
        client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
        exporter.delete::<ServiceExport>("app").await?;
        let refused = |totals: &Totals| totals.kinds.get("refused").is_some_and(|count| *count > 0);
        client.counts("refused requests", refused).await?;
        ensure!(shared.export("app").await? == address, "the derived Service stays during its grace period");
        let again = client.totals().await?;
        let answers = |totals: &Totals| totals.servers.values().map(|server| server.answers).sum::<u64>();
        client.counts("answers again", |totals| answers(totals) >= answers(&again) + 20).await?;
        Ok(())
    })
}

/// Settings of clients that must lose nothing. A pod that is gone never answers, and a pod of a busy machine may be slow.
const STEADY: [&str; 2] = ["--rate=100", "--timeout=10000"];
/// Time for which the hub does not answer.
const OUTAGE: Duration = Duration::from_secs(6);

/// Lets these interruptions and kills happen in one fleet, and checks after each that a client in the importer has lost nothing.
async fn nothing_is_lost(interruptions: &[Interruption], successors: &[Successor]) -> anyhow::Result<()> {
    let mut pair = Pair::start("interrupted", Settings::default()).await?;
    let app = Servers { name: "app", replicas: 3, pre_stop: Some(PRE_STOP), probe_delay: 0 };
    app.create(&pair.exporter).await?;
    app.create_service(&pair.exporter).await?;
    let address = workload::export(&pair.exporter, pair.exporting(), &pair.importer, "app").await?;
    let client = Client::create(&pair.importer, "client", &format!("http://{address}:80"), &STEADY).await?;
    let mut before = client.counts("answers of all pods", |totals| totals.servers.len() == 3).await?;
    let mut version = 0;
    for interruption in interruptions {
        version += 1;
        interruption.happen(&mut pair, app, OUTAGE, version).await?;
        before = lost_nothing(&client, &before, interruption.detail()).await?;
    }
    for successor in successors {
        version += 1;
        let kill = async {
            for agent in &mut pair.agents {
                agent.kill_leader(*successor).await?;
            }
            anyhow::Ok(())
        };
        futures::try_join!(app.roll(&pair.exporter, version), kill)?;
        before = lost_nothing(&client, &before, &format!("leaders were killed: {successor:?}")).await?;
    }
    let after = client.stop().await?;
    ensure!(after.lost == before.lost, "lost requests at the end: {after:?}, before: {before:?}");
    Ok(())
}

/// Checks that a client has sent requests and lost none. Returns its counts.
async fn lost_nothing(client: &Client, before: &Totals, what: &str) -> anyhow::Result<Totals> {
    tokio::time::sleep(SETTLED).await;
    let after = client.totals().await?;
    ensure!(after.sent >= before.sent + 300, "{what}: too few requests: {after:?}, before: {before:?}");
    ensure!(after.lost == before.lost, "{what}: lost requests: {after:?}, before: {before:?}");
    Ok(after)
}

#[test]
fn no_request_is_lost_while_leaders_are_killed_or_frozen_in_rolling_updates() -> anyhow::Result<()> {
    packets::inside(async || {
        nothing_is_lost(&[Interruption::LeadersFrozen], &[Successor::SamePod, Successor::NewPod]).await
    })
}

#[test]
fn no_request_is_lost_while_servers_are_down_and_agents_are_replaced() -> anyhow::Result<()> {
    packets::inside(async || {
        let each = [Interruption::HubDown, Interruption::ServersDown, Interruption::AgentsRestarted];
        nothing_is_lost(&each, &[]).await
    })
}

#[test]
fn no_request_is_lost_while_users_change_ports_and_the_api() -> anyhow::Result<()> {
    packets::inside(async || {
        let each =
            [Interruption::Ports, Interruption::BothApis, Interruption::ConflictWon, Interruption::TokensReplaced];
        nothing_is_lost(&each, &[]).await
    })
}

#[test]
fn requests_by_name_arrive_again_after_a_lost_conflict_and_a_headless_service() -> anyhow::Result<()> {
    packets::inside(async || {
        let mut pair = Pair::start("renamed", Settings::default()).await?;
        APP.create(&pair.exporter).await?;
        APP.create_service(&pair.exporter).await?;
        workload::export(&pair.exporter, pair.exporting(), &pair.importer, "app").await?;
        let target = format!("http://app.{}.svc.clusterset.local:8080", pair.namespace());
        let client = Client::create(&pair.importer, "client", &target, &["--rate=50"]).await?;
        client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
        for interruption in [Interruption::ConflictLost, Interruption::Headless] {
            interruption.happen(&mut pair, APP, OUTAGE, 1).await?;
            let before = client.totals().await?;
            let again = |totals: &Totals| {
                totals.servers.iter().all(|(name, server)| server.answers > before.servers[name].answers)
            };
            client.counts(&format!("answers again after this: {}", interruption.detail()), again).await?;
        }
        Ok(())
    })
}

#[test]
fn a_dead_cluster_gets_no_requests_after_the_soft_limit_and_gets_them_again_when_it_returns() -> anyhow::Result<()> {
    packets::inside(async || {
        let settings = Settings { nodes: vec![1; 3], silence_soft: "30s", ..Settings::default() };
        let mut pair = Pair::start("death", settings).await?;
        let (second, second_id) = pair.second_exporter()?;
        for user in [&pair.exporter, &second] {
            APP.create(user).await?;
            APP.create_service(user).await?;
            user.export_standard("app", json!({})).await?;
        }
        let import = pair.importer.sees_ready_import("app", &[pair.exporting(), &second_id]).await?;
        let address = import.spec.ips.and_then(|addresses| addresses.first().cloned()).unwrap_or_default();
        let client = Client::create(&pair.importer, "client", &format!("http://{address}:80"), &["--rate=50"]).await?;
        let before = client.counts("answers of all pods", |totals| totals.servers.len() == 4).await?;
        let dead = pair.fleet.members[0].pod_times();
        pair.cut_exporter().await?;
        let dying = client.counts("lost requests", |totals| totals.lost > before.lost).await?;
        no_ready_endpoint(&pair.importer, &dead).await?;
        tokio::time::sleep(SETTLED).await;
        let withdrawn = clock::now().as_microsecond();
        client.counts("100 requests", |totals| totals.sent > dying.sent + 100).await?;
        pair.restore_exporter().await?;
        let again = client.totals().await?;
        let all =
            |totals: &Totals| totals.servers.iter().all(|(name, server)| server.answers > again.servers[name].answers);
        client.counts("answers of the pods that were dead", all).await?;
        let after = client.stop().await?;
        ensure!(after.last_loss < Some(withdrawn), "lost after {withdrawn}: {after:?}");
        Ok(())
    })
}

/// Waits until no imported slice of a cluster has a ready endpoint of these pods.
async fn no_ready_endpoint(importer: &User, pods: &Times) -> anyhow::Result<()> {
    let is_dead = |endpoint: &Endpoint| {
        let is_ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false);
        is_ready && pods.values().any(|pod| endpoint.addresses.contains(&pod.address.to_string()))
    };
    let none = |slices: &BTreeMap<String, EndpointSlice>| {
        !slices.is_empty() && !slices.values().flat_map(|slice| slice.endpoints.iter().flatten()).any(is_dead)
    };
    let selection = WatchParams::default().labels("multicluster.kubernetes.io/service-name=app");
    let what = "the endpoints of a dead cluster not to be ready";
    eventually::objects(&importer.api::<EndpointSlice>(), &selection, what, none).await.map(drop)
}
