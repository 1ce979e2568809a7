//! Requests arrive: in a cluster, and in another cluster of the fleet.

use anyhow::ensure;
use fleetnet_api::crd::multicluster::ServiceExport;
use harness::user::{Consume, User};
use packets::image::result::Totals;
use packets::interruptions::{Interruption, PRE_STOP};
use packets::limits::SETTLED;
use packets::node::ProxyMode;
use packets::pair::Pair;
use packets::replicas::Successor;
use packets::workload::{self, Client, Servers, cluster_ip};
use packets::{Fleet, Settings};
use std::time::Duration;

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
    let mut pair = Pair::start("interrupted").await?;
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
    packets::inside(async || nothing_is_lost(&[Interruption::Ports, Interruption::BothApis], &[]).await)
}
