//! Measurement of rolling updates.

use super::report::Row;
use super::setup::Setup;
use super::{PreStop, Scenario, Size};
use crate::limits::REQUESTS_SETTLED;
use packets::workload::Servers;

/// Counts the requests that are lost in rolling updates of pods with this preStop hook.
pub(super) async fn measure(setup: &Setup, size: &Size, pre_stop: PreStop, times: u32) -> anyhow::Result<Vec<Row>> {
    let PreStop(seconds) = pre_stop;
    let name = format!("rollout-{}", seconds.unwrap_or_default());
    let servers = Servers { name: &name, replicas: size.pods, pre_stop: seconds, probe_delay: 0 };
    let traffic = setup.serve(servers, size.rate).await?;
    for number in 1..=times {
        eprintln!("rolling update {number} of {times}, {pre_stop:?}");
        servers.roll(&setup.exporter, number).await?;
        // Requests to the last old pods still end in this rolling update.
        tokio::time::sleep(REQUESTS_SETTLED).await;
    }
    let counts = traffic.stop().await?;
    setup.end(servers).await?;
    let row =
        |(client, counts)| Row { scenario: Scenario::Rollout, pre_stop, successor: None, client, counts, time: None };
    Ok(counts.map(row).to_vec())
}
