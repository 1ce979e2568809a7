//! Measurement of the death of an exporting cluster, while another cluster exports the same Service. The baseline is a
//! client in the other cluster, which uses the Service's own address.

use super::report::{Allowed, Death, Row, Side};
use super::traffic::{self, Traffic};
use super::{Connections, Scenario, Size, setup};
use crate::limits::REQUESTS_AFTER_DEATH;
use crate::quantiles::milliseconds;
use anyhow::Context as _;
use futures::future::try_join_all;
use harness::eventually::Deadline;
use harness::limits::EVENTUALLY;
use packets::clock;
use packets::image::result::Totals;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;
use std::time::Duration;

/// Name of the servers and of their Service in both exporting clusters.
const NAME: &str = "death";

/// Parts of a death, in each of which requests are counted.
const PARTS: [(&str, Allowed); 3] = [
    ("until the last lost request", Allowed::Counted),
    ("after it", Allowed::None),
    ("when the cluster returns", Allowed::None),
];

/// Cuts the power of an exporting cluster, and gives it back, again and again.
pub(super) async fn measure(pair: &mut Pair, size: &Size, times: u32) -> anyhow::Result<(Vec<Row>, Vec<Death>)> {
    let servers = Servers { name: NAME, replicas: size.pods, pre_stop: None, probe_delay: 0 };
    setup::export(pair, servers).await?;
    let [own, imported] = setup::export_second(pair, servers).await?;
    let targets = [own, imported].map(|address| format!("http://{address}:80"));
    let mut deaths = Vec::new();
    let mut sums: Vec<[Vec<Row>; 3]> = size.connections.iter().map(|_| Default::default()).collect();
    for number in 1..=times {
        eprintln!("death {number} of {times}");
        // Kept connections of clients that have seen a death lead to the other cluster only.
        let traffics = start(pair, size, &targets, number).await?;
        let (counts, died) = die(pair, &traffics).await?;
        deaths.extend(died);
        for (sums, ((connections, _), times)) in sums.iter_mut().zip(traffics.iter().zip(counts)) {
            for ((rows, (part, allowed)), times) in sums.iter_mut().zip(PARTS).zip(times.windows(2)) {
                let detail = format!("{} connections, {part}", connections.as_str());
                add(rows, &detail, allowed, &times[0], &times[1]);
            }
        }
        try_join_all(traffics.iter().map(|(_, traffic)| traffic.stop())).await?;
    }
    setup::end(pair, servers).await?;
    setup::end_second(pair, servers).await?;
    Ok((sums.into_iter().flatten().flatten().collect(), deaths))
}

/// Starts clients with connections of each kind in the second exporter and in the importer.
async fn start(
    pair: &Pair,
    size: &Size,
    targets: &[String; 2],
    number: u32,
) -> anyhow::Result<Vec<(Connections, Traffic)>> {
    let (second, _) = pair.second_exporter()?;
    let mut traffics = Vec::new();
    for connections in &size.connections {
        let name = format!("{NAME}-{}-{number}", connections.as_str());
        let users = [&second, &pair.importer];
        let sends = (size.rate, *connections);
        let traffic = setup::traffic(&name, users, targets.clone(), sends, [size.pods, 2 * size.pods]).await?;
        traffics.push((*connections, traffic));
    }
    Ok(traffics)
}

/// Cuts the power of the exporter, and gives it back. Returns the counts of the clients at the beginning and at the end
/// of each part.
async fn die(
    pair: &mut Pair,
    traffics: &[(Connections, Traffic)],
) -> anyhow::Result<(Vec<[Vec<Totals>; 4]>, Vec<Death>)> {
    let totals = async || try_join_all(traffics.iter().map(|(_, traffic)| traffic.totals())).await;
    let before = totals().await?;
    let cut = clock::now().as_microsecond();
    pair.cut_exporter().await?;
    let lasts = try_join_all(traffics.iter().map(|(_, traffic)| quiet(traffic, cut))).await?;
    let quiet = totals().await?;
    tokio::time::sleep(REQUESTS_AFTER_DEATH).await;
    let after = totals().await?;
    pair.restore_exporter().await?;
    pair.exporter_is_used(NAME, true).await?;
    for ((connections, traffic), after) in traffics.iter().zip(&after) {
        // Only a new connection leads to another server than before.
        if *connections == Connections::New {
            traffic.answers_again(after).await?;
        }
    }
    tokio::time::sleep(SETTLED).await;
    let returned = totals().await?;
    let deaths = traffics.iter().zip(lasts).map(|((connections, _), last)| {
        let time = Duration::from_micros(u64::try_from(last - cut).unwrap_or_default());
        Death { connections: *connections, last_loss_milliseconds: milliseconds(time) }
    });
    let counts = before.into_iter().zip(quiet).zip(after.into_iter().zip(returned));
    let counts = counts.map(|((before, quiet), (after, returned))| [before, quiet, after, returned]);
    Ok((counts.collect(), deaths.collect()))
}

/// Waits until the importer's client has lost nothing for [`REQUESTS_AFTER_DEATH`]. Returns the time of the last loss.
async fn quiet(traffic: &Traffic, cut: i64) -> anyhow::Result<i64> {
    let deadline = Deadline::after(2 * EVENTUALLY);
    let quiet = i64::try_from(REQUESTS_AFTER_DEATH.as_micros())?;
    loop {
        let totals = traffic.totals().await?;
        let last = totals[Side::Importer.index()].last_loss.unwrap_or(cut).max(cut);
        if clock::now().as_microsecond() - last > quiet {
            return Ok(last);
        }
        deadline.check().context("the importer still loses requests to a dead cluster")?;
        tokio::time::sleep(SETTLED).await;
    }
}

/// Adds the counts between two points in time to the rows of a part.
fn add(rows: &mut Vec<Row>, detail: &str, allowed: Allowed, from: &[Totals], to: &[Totals]) {
    let counts = traffic::counts(from, to);
    if rows.is_empty() {
        rows.extend(Row::of(Scenario::Death, None, detail, allowed, counts));
    } else {
        for (row, (_, counts)) in rows.iter_mut().zip(counts) {
            row.counts += counts;
        }
    }
}
