//! Requests under cluster selection: failover, failback and weights.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use harness::user::User;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use packets::image::result::Totals;
use packets::interruptions::PRE_STOP;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::{self, Client, Servers};
use packets::{Settings, clock};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const FLAGS: &[(&str, &str)] = &[("--cluster-selection", "true"), ("--failback-after", "3s")];
/// Settings of a client that must lose nothing, and opens a connection for each request.
const STEADY: [&str; 2] = ["--rate=200", "--timeout=10000"];
const APP: Servers<'static> = Servers { name: "app", replicas: 4, pre_stop: Some(PRE_STOP), probe_delay: 0 };

/// Fleet with an importer and two exporters.
struct Chosen {
    pair: Pair,
    far: User,
    far_id: String,
    /// Address of the import.
    target: String,
}

/// Starts the fleet, and exports the servers of both exporters.
async fn start() -> anyhow::Result<Chosen> {
    let settings = Settings { nodes: vec![1; 3], member_flags: FLAGS, ..Settings::default() };
    let pair = Pair::start("selection", settings).await?;
    let (far, far_id) = pair.second_exporter()?;
    for user in [&pair.exporter, &far] {
        APP.create(user).await?;
        APP.create_service(user).await?;
        user.export_mcs(APP.name, json!({})).await?;
    }
    let address = workload::imported_address(&pair.importer, APP.name, &[pair.exporting(), &far_id]).await?;
    Ok(Chosen { pair, far, far_id, target: format!("http://{address}:80") })
}

/// Returns the names of the pods of a user's servers.
async fn pods(user: &User) -> anyhow::Result<BTreeSet<String>> {
    let of_servers = ListParams::default().labels(&format!("app={}", APP.name));
    let pods = user.api::<Pod>().list(&of_servers).await?;
    let live = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(live.map(ResourceExt::name_any).collect())
}

/// Waits until 200 requests in a row are answered only by these pods.
async fn only(client: &Client, pods: &BTreeSet<String>, what: &str) -> anyhow::Result<Totals> {
    let mut before = client.counts("its first answer", |totals| totals.sent > totals.lost).await?;
    loop {
        let after = client.counts(what, |totals| totals.sent >= before.sent + 200).await?;
        let more = |(name, server): (&String, &packets::image::result::Server)| {
            server.answers > before.servers.get(name).map_or(0, |before| before.answers) && !pods.contains(name)
        };
        if !after.servers.iter().any(more) {
            return Ok(after);
        }
        before = after;
    }
}

/// Returns the answers of these pods.
fn answers<'a>(totals: &Totals, pods: impl IntoIterator<Item = &'a String>) -> u64 {
    pods.into_iter().filter_map(|name| totals.servers.get(name)).map(|server| server.answers).sum()
}

#[test]
fn a_failover_loses_no_request_a_failback_floods_no_pod_and_weights_split_requests() -> anyhow::Result<()> {
    packets::inside(async || {
        let chosen = start().await?;
        failover_and_failback(&chosen).await.context("selectors")?;
        weights(&chosen).await.context("weights")
    })
}

/// Sets the selectors of both exports, or removes them.
async fn select(Chosen { pair, far, .. }: &Chosen, selectors: Option<Value>) -> anyhow::Result<()> {
    for user in [&pair.exporter, far] {
        let selectors = selectors.as_ref().map(ToString::to_string);
        let annotations = json!({"networking.fleet.azure.com/cluster-selectors": selectors});
        user.merge::<ServiceExport>(APP.name, json!({"metadata": {"annotations": annotations}})).await?;
    }
    Ok(())
}

/// Prefers the near cluster, takes its pods away, and gives them back.
async fn failover_and_failback(chosen: &Chosen) -> anyhow::Result<()> {
    let Chosen { pair, far, target, .. } = chosen;
    let near = &pair.exporter;
    let prefers = json!({"matchLabels": {"cluster.clusterset.k8s.io": pair.exporting()}});
    select(chosen, Some(json!([{"propertySelector": prefers}]))).await?;
    let client = Client::create(&pair.importer, "client", target, &STEADY).await?;
    only(&client, &pods(near).await?, "answers of the near cluster").await?;
    tokio::time::sleep(SETTLED).await;
    let begin = clock::now().as_microsecond();

    Servers { replicas: 0, ..APP }.scale(near).await?;
    let after = only(&client, &pods(far).await?, "answers of the far cluster").await?;
    ensure!(after.last_loss < Some(begin), "a failover lost requests after {begin}: {after:?}");

    Servers { replicas: 1, ..APP }.scale(near).await?;
    let first = pods(near).await?;
    let joined = client.counts("the first pod that returns", |totals| answers(totals, &first) > 0).await?;
    let later = client.counts("400 requests", |totals| totals.sent >= joined.sent + 400).await?;
    let (share, sent) = (answers(&later, &first) - answers(&joined, &first), later.sent - joined.sent);
    // Its fair share is that of one of four pods.
    ensure!(share * 4 * 2 <= sent * 3, "the first pod that returns gets {share} of {sent} requests");
    println!("the first pod that returns gets {share} of {sent} requests");

    APP.scale(near).await?;
    let after = only(&client, &pods(near).await?, "answers of the near cluster again").await?;
    ensure!(after.last_loss < Some(begin), "a failback lost requests after {begin}: {after:?}");
    select(chosen, None).await?;
    client.stop().await.map(drop)
}

/// Gives the clusters weights, and counts the answers of their pods.
async fn weights(Chosen { pair, far, far_id, target }: &Chosen) -> anyhow::Result<()> {
    let many = Servers { replicas: 10, ..APP };
    futures::try_join!(many.scale(&pair.exporter), many.scale(far))?;
    let [near_pods, far_pods] = [pods(&pair.exporter).await?, pods(far).await?];
    for (weights, requests) in [([80, 20], 3_000), ([0, 1], 300)] {
        let wanted = json!({ pair.exporting(): weights[0], far_id.as_str(): weights[1] });
        let annotations = json!({"networking.fleet.azure.com/weights": wanted.to_string()});
        pair.importer.merge::<ServiceImport>(APP.name, json!({"metadata": {"annotations": annotations}})).await?;
        tokio::time::sleep(SETTLED).await;
        let name = format!("split-{}", weights[0]);
        let client = Client::create(&pair.importer, &name, target, &["--rate=300", "--timeout=10000"]).await?;
        client.counts(&format!("{requests} requests"), |totals| totals.sent >= requests).await?;
        let totals = client.stop().await?;
        let [near, far] = [answers(&totals, &near_pods), answers(&totals, &far_pods)];
        let (reached, wanted) = (1000 * near / (near + far), 1000 * weights[0] / (weights[0] + weights[1]));
        println!("wanted {weights:?}: {near} and {far} of {} requests", totals.sent);
        ensure!(reached.abs_diff(wanted) <= 30, "wanted {weights:?}: {near} and {far}");
    }
    Ok(())
}
