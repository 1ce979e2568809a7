//! Measurement of rolling updates.

use super::report::{Allowed, Row};
use super::{Connections, PreStop, Scenario, Size, setup};
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;

/// Seconds of a preStop hook with which no request on a new connection may be lost.
const ENOUGH: u32 = 5;

/// Counts the requests that are lost in rolling updates of pods with this preStop hook.
pub(super) async fn measure(
    pair: &Pair,
    size: &Size,
    connections: Connections,
    pre_stop: PreStop,
    times: u32,
) -> anyhow::Result<Vec<Row>> {
    let PreStop(seconds) = pre_stop;
    let name = format!("rollout-{}-{}", connections.as_str(), seconds.unwrap_or_default());
    let servers = Servers { name: &name, replicas: size.pods, pre_stop: seconds, probe_delay: 0 };
    let traffic = setup::serve(pair, servers, size.rate, connections).await?;
    for number in 1..=times {
        eprintln!("rolling update {number} of {times}, {connections:?} connections, {pre_stop:?}");
        servers.roll(&pair.exporter, number).await?;
        // Requests to the last old pods still end in this rolling update.
        tokio::time::sleep(SETTLED).await;
    }
    let counts = traffic.stop().await?;
    setup::end(pair, servers).await?;
    let is_enough = connections == Connections::New && seconds.is_some_and(|seconds| seconds >= ENOUGH);
    let detail = format!("{} connections", connections.as_str());
    let allowed = if is_enough { Allowed::None } else { Allowed::Baseline };
    Ok(Row::of(Scenario::Rollout, seconds, &detail, allowed, counts))
}
