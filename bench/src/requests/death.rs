//! Measurement of the death of an exporting cluster, while another cluster exports the same Service. The baseline is a client in the other
//! cluster, which uses the Service's own address.

use super::report::{Allowed, Death, Row, Side};
use super::traffic::{self, Traffic};
use super::{Scenario, Size, setup};
use crate::limits::REQUESTS_AFTER_DEATH;
use crate::quantiles::milliseconds;
use anyhow::Context as _;
use harness::eventually::Deadline;
use harness::limits::EVENTUALLY;
use packets::clock;
use packets::image::result::Totals;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::{self, Client, Servers, cluster_ip};
use serde_json::json;
use std::time::Duration;

/// Name of the servers and of their Service in both exporting clusters.
const NAME: &str = "death";

/// Cuts the power of an exporting cluster, and gives it back, again and again.
pub(super) async fn measure(pair: &mut Pair, size: &Size, times: u32) -> anyhow::Result<(Vec<Row>, Vec<Death>)> {
    let servers = Servers { name: NAME, replicas: size.pods, pre_stop: None, probe_delay: 0 };
    let traffic = start(pair, servers, size.rate).await?;
    let mut deaths = Vec::new();
    let mut sums: [Vec<Row>; 3] = Default::default();
    for number in 1..=times {
        eprintln!("death {number} of {times}");
        let before = traffic.totals().await?;
        let cut = clock::now().as_microsecond();
        pair.cut_exporter().await?;
        let last = quiet(&traffic, cut).await?;
        let quiet = traffic.totals().await?;
        tokio::time::sleep(REQUESTS_AFTER_DEATH).await;
        let after = traffic.totals().await?;
        pair.restore_exporter().await?;
        traffic.answers_again(&after).await?;
        tokio::time::sleep(SETTLED).await;
        let returned = traffic.totals().await?;
        let time = Duration::from_micros(u64::try_from(last - cut).unwrap_or_default());
        deaths.push(Death { last_loss_milliseconds: milliseconds(time) });
        let parts = [
            ("until the last lost request", Allowed::Counted, &before, &quiet),
            ("after it", Allowed::None, &quiet, &after),
            ("when the cluster returns", Allowed::None, &after, &returned),
        ];
        for (rows, (detail, allowed, from, to)) in sums.iter_mut().zip(parts) {
            add(rows, detail, allowed, from, to);
        }
    }
    traffic.stop().await?;
    Ok((sums.concat(), deaths))
}

/// Starts servers in both exporting clusters, exports them, and starts the clients.
async fn start(pair: &Pair, servers: Servers<'_>, rate: u32) -> anyhow::Result<Traffic> {
    let (second, second_id) = pair.second_exporter()?;
    let mut own = String::new();
    for user in [&pair.exporter, &second] {
        servers.create(user).await?;
        cluster_ip(&servers.create_service(user).await?)?.clone_into(&mut own);
        user.export_standard(NAME, json!({})).await?;
    }
    let clusters = [pair.exporting(), &second_id];
    let imported = workload::imported_address(&pair.importer, NAME, &clusters).await?;
    let rate = format!("--rate={rate}");
    let client = async |user, address: &str| {
        Client::create(user, "client-of-death", &format!("http://{address}:80"), &[&rate]).await
    };
    let clients = [client(&second, &own).await?, client(&pair.importer, &imported).await?];
    let replicas = usize::try_from(servers.replicas)?;
    setup::settled(clients, [replicas, 2 * replicas]).await
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
