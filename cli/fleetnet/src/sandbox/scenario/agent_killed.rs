//! Scenario: kills a member's agent. The other agents continue, and existing imports stay. A new agent waits until the
//! Leases expire, and then exports and imports the missed changes.

use crate::args::Scenario;
use crate::limits::{ARRIVAL, SET_UP};
use crate::sandbox::measure::milliseconds;
use crate::sandbox::observe::World;
use crate::sandbox::scene::Scene;
use tokio::time::Instant;

/// Number of changes made while the agent is down.
const CHANGES: usize = 4;

pub(super) async fn play(scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    let name = Scenario::AgentKilled.name();
    let victim = scene.members() - 1;
    let (others, cluster) = (scene.importers() - 1, scene.name(victim));
    let slices = |world: &World| {
        let of_victim = |((of, _), _): &((String, String), _)| of == cluster;
        world.imports().into_iter().filter(of_victim).collect::<Vec<_>>()
    };
    let before = scene.watches.look(slices);
    scene.fleet.kill_agent(victim).await;
    let (mut missed, mut wrong) = (Vec::new(), Vec::new());
    for change in 0..CHANGES {
        let (_, _, address) = scene.begin_change_in(change % victim).await?;
        if !scene.watches.see(ARRIVAL, |world| world.arrived(&address) >= others).await {
            wrong.push(format!("{address} does not arrive in other clusters while {cluster} has no agent"));
        }
        missed.push(address);
    }
    if scene.watches.look(slices) != before {
        wrong.push(format!("what {cluster} imports changed while it had no agent"));
    }
    scene
        .step(name, format!("{CHANGES} changes arrived everywhere else; the imports of {cluster} stay as they were"))
        .await;
    scene.step(name, "a new agent starts, and waits until the Leases of the killed agent expire".to_owned()).await;
    let ledger = scene.fleet.ledger().await?;
    scene.fleet.restart_agent(victim).await?;
    let begun = Instant::now();
    wrong.extend(scene.all_as_expected(SET_UP).await);
    let cost = scene.cost_since(&ledger).await?.sums().total;
    if wrong.is_empty() {
        let took = milliseconds(begun.elapsed()) / 1000.0;
        scene.step(name, format!("{cluster} has caught up {took:.1} s later, with {cost} writes")).await;
    }
    scene.watches.instruct(|world| missed.iter().for_each(|address| drop(world.take_arrivals(address))));
    Ok(wrong)
}
