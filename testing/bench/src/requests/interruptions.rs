//! Measurement of interruptions: what happens to requests while the fleet's agents, API servers or users do something
//! else than a rolling update.

use super::report::{Allowed, Row};
use super::{Connections, PreStop, Scenario, Size, setup};
use packets::interruptions::{Interruption, PRE_STOP};
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;
use std::time::Duration;

/// Counts the requests that are lost while this happens some times to pods with this preStop hook.
pub(super) async fn measure(
    interruption: Interruption,
    pair: &mut Pair,
    size: &Size,
    pre_stop: PreStop,
    times: u32,
) -> anyhow::Result<Vec<Row>> {
    let PreStop(seconds) = pre_stop;
    let name = format!("interrupted-{}-{}", interruption as u8, seconds.unwrap_or_default());
    let servers = Servers { name: &name, replicas: size.pods, pre_stop: seconds, probe_delay: 0 };
    let traffic = if interruption.changes_address() {
        setup::serve_by_name(pair, servers, size.rate).await?
    } else {
        setup::serve(pair, servers, size.rate, Connections::New).await?
    };
    for number in 1..=times {
        eprintln!("{number} of {times}: {}", interruption.detail());
        interruption.happen(pair, servers, Duration::from_secs(size.outage), number).await?;
        for agent in &pair.agents {
            agent.are_ready().await?;
        }
        tokio::time::sleep(SETTLED).await;
    }
    let counts = traffic.stop().await?;
    setup::end(pair, servers).await?;
    let is_enough = seconds.is_some_and(|seconds| seconds >= PRE_STOP);
    let allowed = if is_enough && !interruption.loses() { Allowed::None } else { Allowed::Counted };
    Ok(Row::of(Scenario::Interruptions, seconds, interruption.detail(), allowed, counts))
}
