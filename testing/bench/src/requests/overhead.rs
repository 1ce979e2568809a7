//! Measurement of what the way through a derived Service costs: one client sends requests to a pod's own address and to
//! the address of the import, by turns. The pod is the only one behind the import.

use super::report::{Overhead, Way};
use super::{Size, setup};
use crate::limits::REQUESTS_OVERHEAD;
use anyhow::Context as _;
use harness::user::User;
use k8s_openapi::api::core::v1::Pod;
use packets::image::result::Totals;
use packets::pair::Pair;
use packets::workload::{Client, Servers};
use tokio::time::Instant;

const SERVERS: Servers<'static> = Servers { name: "overhead", replicas: 1, pre_stop: None, probe_delay: 0 };
/// Name of the client's pod.
const CLIENT: &str = "overhead-client";
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
            let latency = steady.totals.latency.context("a client has answers")?;
            let lost = full.totals.lost + steady.totals.lost;
            results.push(Overhead { way: *way, requests_per_second: full.answers_per_second, latency, lost });
        }
    }
    setup::end(pair, SERVERS).await?;
    Ok(results)
}

/// Requests of a client.
struct Run {
    totals: Totals,
    answers_per_second: u64,
}

/// Sends requests for [`REQUESTS_OVERHEAD`] after the first answer.
async fn run(user: &User, target: &str, settings: &[&str]) -> anyhow::Result<Run> {
    let client = Client::create(user, CLIENT, target, settings).await?;
    let before = client.counts("an answer", |totals| !totals.servers.is_empty()).await?;
    let begun = Instant::now();
    tokio::time::sleep(REQUESTS_OVERHEAD).await;
    let after = client.totals().await?;
    let milliseconds = u64::try_from(begun.elapsed().as_millis())?;
    let answers = (after.sent - after.lost) - (before.sent - before.lost);
    let totals = client.stop().await?;
    user.delete::<Pod>(CLIENT).await?;
    harness::eventually::gone(&user.api::<Pod>(), CLIENT).await?;
    Ok(Run { totals, answers_per_second: answers * 1_000 / milliseconds })
}

async fn pod_address(user: &User) -> anyhow::Result<String> {
    let pods = user.api::<Pod>().list(&kube::api::ListParams::default().labels("app=overhead")).await?;
    let mut addresses = pods.items.into_iter().filter_map(|pod| pod.status?.pod_ip);
    addresses.next().context("the pod has an address")
}
