//! Measurement of rolling updates in each of which the leader of one agent is killed.

use super::imports::Imports;
use super::report::{self, Allowed, Kill, Row};
use super::{Connections, Scenario, Size, setup, traffic};
use crate::environment::Role;
use crate::limits::REQUESTS_BEFORE_KILL;
use crate::quantiles::milliseconds;
use packets::limits::SETTLED;
use packets::pair::Pair;
use packets::replicas::Successor;
use packets::workload::Servers;
use std::time::Duration;

/// Processes that follow a killed leader, each measured apart.
pub(super) const SUCCESSORS: [Successor; 2] = [Successor::SamePod, Successor::NewPod];
/// Agents in the order of [`Pair::agents`].
const AGENTS: [Role; 3] = [Role::Hub, Role::Exporter, Role::Importer];
/// Seconds of the preStop hook.
const PRE_STOP: u32 = 5;

/// Kills this number of leaders, those of the three agents in turn.
pub(super) async fn measure(
    pair: &mut Pair,
    size: &Size,
    successor: Successor,
    times: u32,
) -> anyhow::Result<(Vec<Row>, Vec<Kill>)> {
    let name = match successor {
        Successor::SamePod => "kills-same-pod",
        Successor::NewPod => "kills-new-pod",
    };
    let servers = Servers { name, replicas: size.pods, pre_stop: Some(PRE_STOP), probe_delay: 0 };
    let imports = Imports::watch(pair.fleet.servers.members[1].control_plane.admin());
    let traffic = setup::serve(pair, servers, size.rate, Connections::New).await?;
    let mut kills = Vec::new();
    for (number, (index, agent)) in (1..=times).zip(AGENTS.iter().enumerate().cycle()) {
        eprintln!("kill {number} of {times}: {agent:?}, {successor:?}");
        let before = traffic.totals().await?;
        let kill = async {
            // The rolling update has begun, and old pods end.
            tokio::time::sleep(REQUESTS_BEFORE_KILL).await;
            pair.agents[index].kill_leader(successor).await
        };
        let ((), killed) = futures::try_join!(servers.roll(&pair.exporter, number), kill)?;
        let mut pods = pair.fleet.members[0].pod_times();
        pods.retain(|pod, _| pod.starts_with(name));
        let next = imports.complete(&pods, killed).await?;
        pair.agents[index].are_ready().await?;
        tokio::time::sleep(SETTLED).await;
        let counts = traffic::counts(&before, &traffic.totals().await?);
        let next = next.and_then(|time| u64::try_from(time).ok()).map(Duration::from_micros);
        kills.push(Kill {
            agent: *agent,
            successor,
            next_import_milliseconds: next.map(milliseconds),
            lost: counts.into_iter().map(|(side, counts)| (side, counts.lost)).collect(),
        });
    }
    let counts = traffic.stop().await?;
    setup::end(pair, servers).await?;
    let rows = Row::of(Scenario::Kills, Some(PRE_STOP), report::name(successor), Allowed::None, counts);
    Ok((rows, kills))
}
