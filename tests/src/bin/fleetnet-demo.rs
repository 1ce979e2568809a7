//! `cargo xtask demo`: a hub and two members on real control planes, with the agents as processes of their own. It exports a
//! Service, imports it, changes its endpoints, and prints what it shows and how long each change took. It ends with 0 only
//! if everything arrived.

use anyhow::{Context as _, bail, ensure};
use chrono::Local;
use clap::Parser;
use fleetnet_tests::agent::Agent;
use fleetnet_tests::fleet::{FLEET_SYSTEM, Fleet};
use fleetnet_tests::limits::EVENTUALLY;
use fleetnet_tests::process::Ended;
use fleetnet_tests::user::{Consume, User, addresses_of};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use std::time::Duration;
use tokio::time::Instant;

/// Shows a Service going from one cluster to another.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many changes of endpoints to make and to time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=250))]
    changes: u32,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    fleetnet_tests::run(show(arguments.changes))
}

async fn show(changes: u32) -> anyhow::Result<()> {
    say("starting three control planes: a hub and two members");
    let fleet = Fleet::take(2).await?;
    let namespace = fleet.namespace("work").await?;
    say("starting the agents: hub-agent, and a member-agent for each member");
    let hub_agent = fleet.hub_agent()?.start_ready().await?;
    let exporting = fleet.member_agent(&fleet.members[0])?.start_ready().await?;
    let importing = fleet.member_agent(&fleet.members[1])?.start_ready().await?;
    let users = [0, 1].map(|member| User::of(fleet.members[member].control_plane, &namespace));

    export_and_import(&fleet, &namespace, &users).await?;
    let mark = fleet.mark().await?;
    let took = change_endpoints(&fleet, &namespace, &users, changes).await?;
    let ledger = fleet.objects_since(&mark).await?;
    say(&format!("{changes} changes took p50 {}, p99 {}", told(percentile(&took, 50)), told(percentile(&took, 99))));
    say(&format!("and cost these writes of the agents:\n{ledger}"));
    show_histogram(&importing).await?;

    withdraw(&users).await?;
    for agent in [hub_agent, exporting, importing] {
        let ended = agent.terminate().await?;
        ensure!(ended == Ended::Exited(0), "an agent did not stop as asked: {ended:?}\n{}", agent.log().tail());
    }
    say("everything arrived");
    Ok(())
}

async fn export_and_import(fleet: &Fleet, namespace: &str, users: &[User; 2]) -> anyhow::Result<()> {
    let [exporter, importer] = users;
    let [from, to] = [0, 1].map(|member| fleet.members[member].cluster_id.as_str());
    exporter.create_service("app").await?;
    exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
    exporter.export("app").await?;
    let begun = Instant::now(); // the first object of a new kind costs the server 2 s; that is not the agents'
    exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    say(&format!(
        "ServiceExport {namespace}/app in {from}: valid and without conflict after {}",
        told(begun.elapsed())
    ));
    let begun = Instant::now();
    importer.import("app", "app", Consume::LoadBalancer).await?;
    importer.sees("app", &["10.1.0.1"]).await?;
    importer.sees_import("app", "True").await?;
    say(&format!(
        "MultiClusterService {namespace}/app in {to}: Service {FLEET_SYSTEM}/{namespace}-app with 10.1.0.1 after {}",
        told(begun.elapsed())
    ));
    Ok(())
}

/// Changes the endpoints one at a time and waits for each in the importer.
async fn change_endpoints(
    fleet: &Fleet,
    namespace: &str,
    users: &[User; 2],
    changes: u32,
) -> anyhow::Result<Vec<Duration>> {
    let importer: Api<EndpointSlice> = Api::namespaced(fleet.members[1].control_plane.admin(), FLEET_SYSTEM);
    let selection =
        WatchParams::default().labels(&format!("kubernetes.io/service-name={namespace}-app")).initial_events();
    let mut imported = importer.watch(&selection, "").await?.boxed();
    let mut took = Vec::new();
    for change in 1..=changes {
        let address = format!("10.2.0.{change}");
        let begun = Instant::now();
        users[0].set_endpoints("app-1", &["10.1.0.1", &address]).await?;
        let arrived = async {
            while let Some(event) = imported.try_next().await? {
                if let WatchEvent::Added(slice) | WatchEvent::Modified(slice) = event
                    && addresses_of(&slice).any(|seen| seen == address)
                {
                    return Ok(());
                }
            }
            bail!("the watch of the imported slices ended")
        };
        tokio::time::timeout(EVENTUALLY, arrived).await.with_context(|| format!("{address} did not arrive"))??;
        took.push(begun.elapsed());
        say(&format!("change {change}: {address} in {} after {}", fleet.members[1].cluster_id, told(begun.elapsed())));
    }
    Ok(took)
}

async fn show_histogram(importing: &Agent) -> anyhow::Result<()> {
    let (_, metrics) = importing.get("/metrics").await?;
    let series = "fleet_networking_endpointslice_export_import_duration_milliseconds";
    let shown: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with(series) && (line.contains("_count") || line.contains("_sum")))
        .collect();
    ensure!(!shown.is_empty(), "the importing agent has no series {series}");
    say(&format!("the importing agent's histogram says:\n  {}", shown.join("\n  ")));
    Ok(())
}

async fn withdraw(users: &[User; 2]) -> anyhow::Result<()> {
    let begun = Instant::now();
    users[0].delete::<EndpointSlice>("app-1").await?;
    users[1].sees_no_slice("app").await?;
    say(&format!("the slice was deleted, and withdrawn from the importer after {}", told(begun.elapsed())));
    Ok(())
}

fn percentile(took: &[Duration], percent: usize) -> Duration {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * percent).div_ceil(100) - 1] // nearest rank
}

fn told(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

fn say(line: &str) {
    println!("{} {line}", Local::now().format("%H:%M:%S%.3f"));
}
