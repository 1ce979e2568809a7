//! Requests arrive: in a cluster, and in another cluster of the fleet.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::ServiceExport;
use harness::fleet::FLEET_SYSTEM;
use harness::user::Consume;
use packets::image::result::Totals;
use packets::limits::SETTLED;
use packets::load_balancer;
use packets::pair::Pair;
use packets::workload::{Client, Servers, cluster_ip};
use packets::{Fleet, Settings};
use std::net::Ipv4Addr;

/// Address of a load balancer in front of the importer.
const BALANCER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// Setting of clients that must lose nothing: a pod that is gone never answers, and a pod of a busy machine may be
/// slow.
const PATIENT: &str = "--timeout=10000";
/// Servers of most tests.
const APP: Servers<'static> = Servers { name: "app", replicas: 2, pre_stop: None, probe_delay: 0 };

/// Sends requests to a Service of the same cluster. Then stops kube-proxy, and sends requests to a new Service.
#[test]
fn a_request_arrives_through_kube_proxy_and_not_without_it() -> anyhow::Result<()> {
    packets::inside(async || {
        let mut fleet = Fleet::start(Settings { nodes: vec![1], ..Settings::default() }).await?;
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
        let client =
            Client::create(&user, "lost", &format!("http://{}:80", cluster_ip(&service)?), &["--rate=50"]).await?;
        let totals = client.counts("20 requests without answer", |totals| totals.lost >= 20).await?;
        ensure!(totals.servers.is_empty(), "{totals:?}");
        Ok(())
    })
}

#[test]
fn requests_to_an_import_reach_the_pods_of_the_exporter_and_none_is_lost_in_a_rolling_update() -> anyhow::Result<()> {
    packets::inside(async || {
        let settings = Settings { nodes: vec![2, 1], ..Settings::default() };
        let pair = Pair::start("requests", settings).await?;
        let arrive = async { imported_service(&pair).await.context("requests to an import") };
        let roll = async { rolling_update(&pair).await.context("a rolling update") };
        let end = async { ended_export(&pair).await.context("an ended export") };
        futures::try_join!(arrive, roll, end).map(drop)
    })
}

/// Sends requests to an import by its address and by its name, and to the derived Service of the fleet's API.
async fn imported_service(pair: &Pair) -> anyhow::Result<()> {
    let Pair { exporter, importer, .. } = pair;
    APP.create(exporter).await?;
    APP.create_service(exporter).await?;
    let address = pair.export("app").await?;
    let name = format!("app.{}.svc.clusterset.local", pair.namespace());
    for (client, target) in [("address", format!("http://{address}:80")), ("name", format!("http://{name}:80"))] {
        let client = Client::create(importer, client, &target, &["--rate=50"]).await?;
        client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
        client.stop().await?;
    }

    exporter.export("app").await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    let derived = importer.derived_service("app").await?;
    let target = format!("http://{}:80", cluster_ip(&derived)?);
    let client = Client::create(importer, "fleet-api", &target, &["--rate=50"]).await?;
    client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
    client.stop().await.map(drop)
}

/// Replaces all pods, while clients with new and with kept connections and clients outside send requests.
async fn rolling_update(pair: &Pair) -> anyhow::Result<()> {
    let app = Servers { name: "rolled", replicas: 4, pre_stop: Some(10), probe_delay: 0 };
    app.create(&pair.exporter).await?;
    app.create_service(&pair.exporter).await?;
    let target = format!("http://{}:80", pair.export(app.name).await?);
    let mut clients = outside(pair, app.name).await?;
    for (name, settings) in [("new", ["--rate=100", "--connections=0"]), ("kept", ["--rate=100", "--connections=5"])] {
        let settings = [&settings[..], &[PATIENT]].concat();
        clients.push(Client::create(&pair.importer, name, &target, &settings).await?);
    }
    for client in &clients {
        client.counts("answers", |totals| totals.sent > totals.lost).await?;
    }
    // Until now, kube-proxy did not know all servers, and requests could be lost.
    tokio::time::sleep(SETTLED).await;
    let mut before = Vec::new();
    for client in &clients {
        before.push(client.totals().await?);
    }
    app.roll(&pair.exporter, 2).await?;
    for (client, before) in clients.iter().zip(&before) {
        let is_new = |totals: &Totals| totals.servers.keys().any(|server| !before.servers.contains_key(server));
        client.counts("an answer of a new pod", is_new).await?;
        let after = client.stop().await?;
        ensure!(after.lost == before.lost, "lost by {client:?}: {after:?}, before: {before:?}");
        ensure!(after.sent - before.sent >= 250, "too few requests of {client:?}: {after:?}, before: {before:?}");
    }
    Ok(())
}

/// Starts clients outside of all clusters: one at a node port of the importer, and one at the address of a load
/// balancer in front of it.
async fn outside(pair: &Pair, service: &str) -> anyhow::Result<Vec<Client>> {
    let Pair { exporter, importer, fleet, .. } = pair;
    exporter.export(service).await?;
    importer.import(service, service, Consume::LoadBalancer).await?;
    let derived = importer.derived_service(service).await?.metadata.name.unwrap_or_default();
    let nodes: Vec<_> = fleet.members[1].nodes.iter().map(|node| node.network).collect();
    let system = fleet.user(1, FLEET_SYSTEM);
    let port = load_balancer::give(&system, &derived, BALANCER, &nodes).await?;
    let targets = [format!("http://{}:{port}", nodes[0].address()), format!("http://{BALANCER}:80")];
    let mut clients = Vec::new();
    for (target, control_port) in targets.iter().zip(991..) {
        let client = async |port| Client::outside(target, target, port, &["--rate=50", PATIENT]).await;
        // The first client waits until kube-proxy knows the address. Its requests before that are lost.
        client(control_port + 10).await?.counts("answers", |totals| totals.sent > totals.lost).await?;
        clients.push(client(control_port).await?);
    }
    Ok(clients)
}

/// Ends an export, so that requests are refused, and begins it again.
async fn ended_export(pair: &Pair) -> anyhow::Result<()> {
    let Pair { exporter, importer, .. } = pair;
    let app = Servers { name: "ended", ..APP };
    app.create(exporter).await?;
    app.create_service(exporter).await?;
    let address = pair.export(app.name).await?;
    let client = Client::create(importer, "ended", &format!("http://{address}:80"), &["--rate=50"]).await?;
    client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
    exporter.delete::<ServiceExport>(app.name).await?;
    let refused = |totals: &Totals| totals.kinds.get("refused").is_some_and(|count| *count > 0);
    client.counts("refused requests", refused).await?;
    ensure!(pair.export(app.name).await? == address, "the derived Service stays during its grace period");
    let again = client.totals().await?;
    let answers = |totals: &Totals| totals.servers.values().map(|server| server.answers).sum::<u64>();
    client.counts("answers again", |totals| answers(totals) >= answers(&again) + 20).await.map(drop)
}
