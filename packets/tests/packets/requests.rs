//! Requests arrive: in a cluster, and in another cluster of the fleet.

use anyhow::ensure;
use harness::user::{Consume, User};
use packets::node::ProxyMode;
use packets::workload::{self, Client, Servers, cluster_ip};
use packets::{Fleet, Settings};

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
        let client =
            Client::create(&shared.importer, "client", &format!("http://{address}:80"), &["--rate=100"]).await?;
        client.counts("answers of all pods", |totals| totals.servers.len() == 4).await?;
        let before = client.totals().await?;
        app.roll(&shared.exporter, 2).await?;
        client.counts("answers of the new pods", |totals| totals.servers.len() == 8).await?;
        let after = client.stop().await?;
        eprintln!("requests in a rolling update: {after:?}");
        ensure!(after.lost == before.lost, "lost in the rolling update: {after:?}, before: {before:?}");
        ensure!(after.sent - before.sent >= 500, "too few requests: {after:?}, before: {before:?}");
        Ok(())
    })
}
