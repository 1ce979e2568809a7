//! Measurement of a downgrade and an upgrade of all agents, one agent after the other, while no endpoint changes.

use super::report::{Allowed, Row};
use super::{Connections, Scenario, Size, setup};
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::workload::Servers;
use std::path::Path;

/// Counts the requests that are lost while the agents of `older` replace the present ones, and in the other direction.
pub(super) async fn measure(pair: &mut Pair, size: &Size, older: &Path, times: u32) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for number in 1..=times {
        for (direction, folder) in [("downgrade", Some(older)), ("upgrade", None)] {
            eprintln!("{direction} {number} of {times}");
            let name = format!("{direction}-{number}");
            let servers = Servers { name: &name, replicas: size.pods, pre_stop: None, probe_delay: 0 };
            let traffic = setup::serve(pair, servers, size.rate, Connections::New).await?;
            for agent in &mut pair.agents {
                agent.replace_by(folder).await?;
            }
            tokio::time::sleep(SETTLED).await;
            let counts = traffic.stop().await?;
            setup::end(pair, servers).await?;
            rows.extend(Row::of(Scenario::Versions, None, direction, Allowed::None, counts));
        }
    }
    Ok(rows)
}
