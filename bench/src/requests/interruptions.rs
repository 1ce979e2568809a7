//! Measurement of interruptions: what happens to requests while the fleet's agents, API servers or users do something else than a rolling
//! update.

use super::report::{Allowed, Row};
use super::{Connections, Scenario, Size, setup};
use packets::interruptions::{Interruption, PRE_STOP};
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;
use std::time::Duration;

/// Counts the requests that are lost while this happens some times.
pub(super) async fn measure(
    interruption: Interruption,
    pair: &mut Pair,
    size: &Size,
    times: u32,
) -> anyhow::Result<Vec<Row>> {
    let name = format!("interrupted-{}", interruption as u8);
    let servers = Servers { name: &name, replicas: size.pods, pre_stop: Some(PRE_STOP), probe_delay: 0 };
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
    let allowed = if interruption.loses() { Allowed::Counted } else { Allowed::None };
    Ok(Row::of(Scenario::Interruptions, servers.pre_stop, interruption.detail(), allowed, counts))
}
