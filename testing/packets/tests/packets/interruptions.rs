//! Requests while agents, servers, users and clusters interrupt the work of the fleet.

use anyhow::{Context as _, ensure};
use packets::image::result::Totals;
use packets::interruptions::{Interruption, PRE_STOP};
use packets::limits::SETTLED;
use packets::node::ProxyMode;
use packets::pair::Pair;
use packets::replicas::Successor;
use packets::workload::{self, Client, Servers};
use packets::{Settings, clock};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// Settings of clients that must lose nothing. A pod that is gone never answers, and a pod of a busy machine may be
/// slow.
const STEADY: [&str; 2] = ["--rate=100", "--timeout=10000"];
/// Time for which a server does not answer, and a leader is frozen or cut off: longer than a Lease.
const OUTAGE: Duration = Duration::from_secs(4);
/// Servers of which an interruption may change the address.
const FEW: Servers<'static> = Servers { name: "renamed", replicas: 2, pre_stop: None, probe_delay: 0 };

/// Lets these interruptions and kills happen in a fleet, and checks after each that a client in the importer has lost
/// nothing.
async fn nothing_is_lost(
    pair: &mut Pair,
    interruptions: &[Interruption],
    successors: &[Successor],
) -> anyhow::Result<()> {
    let app = Servers { name: "app", replicas: 3, pre_stop: Some(PRE_STOP), probe_delay: 0 };
    app.create(&pair.exporter).await?;
    app.create_service(&pair.exporter).await?;
    let address = pair.export("app").await?;
    let client = Client::create(&pair.importer, "client", &format!("http://{address}:80"), &STEADY).await?;
    client.counts("answers of all pods", |totals| totals.servers.len() == 3).await?;
    // Until now, kube-proxy did not know all servers. A request of that time may still be on its way, and be lost
    // later.
    tokio::time::sleep(SETTLED).await;
    let begin = clock::now().as_microsecond();
    let mut before = client.totals().await?;
    let mut version = 0;
    let began = Instant::now();
    for interruption in interruptions {
        version += 1;
        interruption.happen(pair, app, OUTAGE, version).await?;
        before = lost_nothing(&client, &before, begin, interruption.detail()).await?;
        println!("after {:?}: {}", began.elapsed(), interruption.detail());
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
        before = lost_nothing(&client, &before, begin, &format!("leaders were killed: {successor:?}")).await?;
    }
    let after = client.stop().await?;
    ensure!(after.last_loss < Some(begin), "lost requests at the end: {after:?}, before: {before:?}");
    Ok(())
}

/// Checks that a client has sent requests, and lost none since `begin`, in microseconds. Returns its counts.
async fn lost_nothing(client: &Client, before: &Totals, begin: i64, what: &str) -> anyhow::Result<Totals> {
    tokio::time::sleep(SETTLED).await;
    let after = client.totals().await?;
    ensure!(after.sent >= before.sent + 300, "{what}: too few requests: {after:?}, before: {before:?}");
    ensure!(after.last_loss < Some(begin), "{what}: lost requests after {begin}: {after:?}, before: {before:?}");
    Ok(after)
}

#[test]
fn no_request_is_lost_while_leaders_servers_agents_and_users_interrupt_the_fleet() -> anyhow::Result<()> {
    packets::inside(async || {
        let each = [
            Interruption::LeadersFrozen,
            Interruption::LeadersCutOff,
            Interruption::HubDown,
            Interruption::ServersDown,
            Interruption::AgentsRestarted,
            Interruption::TokensReplaced,
            Interruption::Scaled,
            Interruption::Ports,
            Interruption::BothApis,
            Interruption::ConflictWon,
        ];
        let mut pair = Pair::start("interrupted", Settings { gates: true, ..Settings::default() }).await?;
        nothing_is_lost(&mut pair, &each, &[Successor::SamePod, Successor::NewPod]).await?;
        name_is_kept(&mut pair).await.context("requests by name")
    })
}

#[test]
fn no_request_is_lost_with_kube_proxy_in_iptables_mode() -> anyhow::Result<()> {
    packets::inside_with(&["iptables", "ip6tables"], async || {
        let settings = Settings { proxy_mode: ProxyMode::Iptables, ..Settings::default() };
        let mut pair = Pair::start("iptables", settings).await?;
        // A rolling update, in which the other replica takes over from each agent.
        nothing_is_lost(&mut pair, &[Interruption::Scaled], &[Successor::NewPod]).await
    })
}

/// Lets the address of an import change, and waits each time until requests to its name arrive again.
async fn name_is_kept(pair: &mut Pair) -> anyhow::Result<()> {
    FEW.create(&pair.exporter).await?;
    FEW.create_service(&pair.exporter).await?;
    pair.export(FEW.name).await?;
    let target = format!("http://{}.{}.svc.clusterset.local:8080", FEW.name, pair.namespace());
    let client = Client::create(&pair.importer, FEW.name, &target, &["--rate=50"]).await?;
    client.counts("answers of both pods", |totals| totals.servers.len() == 2).await?;
    for interruption in [Interruption::ConflictLost, Interruption::Headless] {
        interruption.happen(pair, FEW, OUTAGE, 1).await?;
        let before = client.totals().await?;
        let again =
            |totals: &Totals| totals.servers.iter().all(|(name, server)| server.answers > before.servers[name].answers);
        client.counts(&format!("answers again after this: {}", interruption.detail()), again).await?;
    }
    Ok(())
}

#[test]
fn a_silent_cluster_loses_no_request_and_a_dead_one_gets_none_after_the_soft_limit() -> anyhow::Result<()> {
    packets::inside(async || {
        let settings = Settings { nodes: vec![1; 3], silence_soft: "30s", ..Settings::default() };
        let mut pair = Pair::start("death", settings).await?;
        let (second, second_id) = pair.second_exporter()?;
        for user in [&pair.exporter, &second] {
            FEW.create(user).await?;
            FEW.create_service(user).await?;
            user.export_mcs(FEW.name, json!({})).await?;
        }
        let clusters = [pair.exporting(), &second_id];
        let address = workload::imported_address(&pair.importer, FEW.name, &clusters).await?;
        let target = format!("http://{address}:80");
        silence_loses_nothing(&mut pair, &target).await.context("a silent cluster")?;
        let client = Client::create(&pair.importer, "client", &target, &["--rate=50"]).await?;
        let before = client.counts("answers of all pods", |totals| totals.servers.len() == 4).await?;
        pair.cut_exporter().await?;
        let dying = client.counts("lost requests", |totals| totals.lost > before.lost).await?;
        pair.exporter_is_used(FEW.name, false).await?;
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

/// Lets one of two exporting clusters fall silent and return, and checks that new and kept connections lose nothing.
async fn silence_loses_nothing(pair: &mut Pair, target: &str) -> anyhow::Result<()> {
    let mut clients = Vec::new();
    for (name, connections) in [("new", "--connections=0"), ("kept", "--connections=8")] {
        let settings = [&STEADY[..], &[connections]].concat();
        clients.push(Client::create(&pair.importer, name, target, &settings).await?);
    }
    for client in &clients {
        client.counts("answers", |totals| totals.sent > totals.lost).await?;
    }
    // Until now, kube-proxy did not know all servers, and requests could be lost.
    tokio::time::sleep(SETTLED).await;
    let begin = clock::now().as_microsecond();
    Interruption::ExporterSilent.happen(pair, FEW, OUTAGE, 1).await?;
    for client in &clients {
        let after = client.stop().await?;
        ensure!(after.last_loss < Some(begin) && after.sent > 1000, "lost by {client:?} after {begin}: {after:?}");
    }
    Ok(())
}
