//! Measurement of what the way through a derived Service costs: one client sends requests to a pod's own address and to the address of
//! the import, by turns. The pod is the only one behind the import.

use super::report::{Overhead, Way};
use super::{Size, setup};
use crate::limits::OVERHEAD_SECONDS;
use anyhow::Context as _;
use harness::user::User;
use k8s_openapi::api::core::v1::Pod;
use packets::image::result::Totals;
use packets::pair::Pair;
use packets::workload::{Client, Servers};

const SERVERS: Servers<'static> = Servers { name: "overhead", replicas: 1, pre_stop: None, probe_delay: 0 };
/// Settings of a client that sends as much as the pod answers, over kept connections.
const FULL: [&str; 2] = ["--workers=8", "--connections=8"];

/// Measures both ways by turns.
pub(super) async fn measure(pair: &Pair, size: &Size, times: u32) -> anyhow::Result<Vec<Overhead>> {
    let [_, imported] = setup::export(pair, SERVERS).await?;
    let pod = pod_address(&pair.exporter).await?;
    let targets = [(Way::Pod, format!("http://{pod}:8080")), (Way::Import, format!("http://{imported}:80"))];
    let rate = format!("--rate={}", size.rate);
    let mut results = Vec::new();
    for number in 1..=times {
        eprintln!("overhead {number} of {times}");
        // The way that comes first changes: caches and other programs favour neither.
        let turns: Vec<_> = if number % 2 == 0 { targets.iter().rev().collect() } else { targets.iter().collect() };
        for (way, target) in turns {
            let full = run(&pair.importer, target, &FULL).await?;
            let steady = run(&pair.importer, target, &[&rate]).await?;
            let latency = steady.latency.context("a client has answers")?;
            let requests_per_second = (full.sent - full.lost) / OVERHEAD_SECONDS.as_secs();
            let lost = full.lost + steady.lost;
            results.push(Overhead { way: *way, requests_per_second, latency, lost });
        }
    }
    setup::end(pair, SERVERS).await?;
    Ok(results)
}

/// Sends requests for [`OVERHEAD_SECONDS`].
async fn run(user: &User, target: &str, settings: &[&str]) -> anyhow::Result<Totals> {
    let client = Client::create(user, "overhead-client", target, settings).await?;
    client.counts("an answer", |totals| !totals.servers.is_empty()).await?;
    tokio::time::sleep(OVERHEAD_SECONDS).await;
    let totals = client.stop().await?;
    user.delete::<Pod>("overhead-client").await?;
    harness::eventually::gone(&user.api::<Pod>(), "overhead-client").await?;
    Ok(totals)
}

async fn pod_address(user: &User) -> anyhow::Result<String> {
    let pods = user.api::<Pod>().list(&kube::api::ListParams::default().labels("app=overhead")).await?;
    let mut addresses = pods.items.into_iter().filter_map(|pod| pod.status?.pod_ip);
    addresses.next().context("the pod has an address")
}
