//! Measurement of an exporting cluster that only falls silent: its agents are gone, and its pods answer. Two Services
//! are measured at the same time. Another cluster exports one of them too, so its clients in the importer move there.
//! The baseline is a client in the silent cluster.

use super::report::{Allowed, Row};
use super::{Connections, Scenario, Size, setup};
use futures::future::try_join_all;
use packets::interruptions::Interruption;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;
use std::time::Duration;

/// Name of the Service that two clusters export.
const SHARED: &str = "silent-shared";
/// Name of the Service that only the silent cluster exports.
const ALONE: &str = "silent-alone";

/// Lets the exporter fall silent and return, again and again.
pub(super) async fn measure(pair: &mut Pair, size: &Size, times: u32) -> anyhow::Result<Vec<Row>> {
    let servers = |name| Servers { name, replicas: size.pods, pre_stop: None, probe_delay: 0 };
    let mut traffics = Vec::new();
    for (name, clusters) in [(SHARED, 2), (ALONE, 1)] {
        let [own, mut imported] = setup::export(pair, servers(name)).await?;
        if name == SHARED {
            [_, imported] = setup::export_second(pair, servers(name)).await?;
        }
        let targets = [own, imported].map(|address| format!("http://{address}:80"));
        let users = [&pair.exporter, &pair.importer];
        for connections in &size.connections {
            let (client, sends) = (format!("{name}-{}", connections.as_str()), (size.rate, *connections));
            let traffic =
                setup::traffic(&client, users, targets.clone(), sends, [size.pods, clusters * size.pods]).await?;
            traffics.push((name, *connections, traffic));
        }
    }
    for number in 1..=times {
        eprintln!("{number} of {times}: {}", Interruption::ExporterSilent.detail());
        let outage = Duration::from_secs(size.outage);
        Interruption::ExporterSilent.happen(pair, servers(SHARED), outage, number).await?;
        tokio::time::sleep(SETTLED).await;
    }
    let counts = try_join_all(traffics.iter().map(|(.., traffic)| traffic.stop())).await?;
    let rows = traffics.iter().zip(counts).flat_map(|((name, connections, _), counts)| {
        let others = if *name == SHARED { "and another one is not" } else { "and there is no other one" };
        let silent = Interruption::ExporterSilent.detail();
        let detail = format!("{silent}, {others}, {} connections", connections.as_str());
        // A kept connection is reset if its server ends it. Nothing of fleetnet can.
        let allowed = if *connections == Connections::Kept { Allowed::Baseline } else { Allowed::None };
        Row::of(Scenario::Interruptions, None, &detail, allowed, counts)
    });
    let rows = rows.collect();
    setup::end(pair, servers(ALONE)).await?;
    setup::end(pair, servers(SHARED)).await?;
    setup::end_second(pair, servers(SHARED)).await?;
    Ok(rows)
}
