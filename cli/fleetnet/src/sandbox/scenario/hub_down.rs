//! Scenario: interrupts all connections to the hub, for longer than the time after which a member without heartbeats is
//! silent. Existing imports stay, no member counts as silent, and missed changes arrive after the interruption.

use crate::args::Scenario;
use crate::limits::SET_UP;
use crate::sandbox::measure::milliseconds;
use crate::sandbox::observe::World;
use crate::sandbox::scene::Scene;
use std::time::Duration;
use tokio::time::Instant;

const DOWN: Duration = Duration::from_secs(18);
/// Number of changes made while the hub is down.
const CHANGES: usize = 4;

pub(super) async fn play(scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    let name = Scenario::HubDown.name();
    scene.step(name, "the hub is disconnected: no request reaches it, and no answer leaves it".to_owned()).await;
    let before = scene.watches.look(World::imports);
    scene.fleet.cut_hub().await?;
    let mut missed = Vec::new();
    for _ in 0..CHANGES {
        missed.push(scene.begin_change().await?.2);
    }
    let arrives = |world: &World| missed.iter().any(|address| world.arrived(address) > 0);
    let mut wrong = Vec::new();
    if scene.watches.see(DOWN, arrives).await {
        wrong.push("a change arrived while the hub was down".to_owned());
    }
    let kept = scene.watches.look(World::imports) == before;
    if kept {
        let text = format!("{CHANGES} changes were made in {DOWN:?}; none arrived, and all imports stay as they were");
        scene.step(name, text).await;
    } else {
        wrong.push("imports changed while the hub was down".to_owned());
    }
    scene.step(name, "the hub comes back".to_owned()).await;
    scene.fleet.mend_hub().await?;
    let begun = Instant::now();
    wrong.extend(scene.all_as_expected(SET_UP).await);
    if wrong.is_empty() {
        let text = format!(
            "all changes are everywhere {:.1} s later: the hub agent first waited for its Lease",
            milliseconds(begun.elapsed()) / 1000.0
        );
        scene.step(name, text).await;
        let after = scene.watches.look(World::imports);
        if scene.watches.see(DOWN, |world| world.imports() != after).await {
            wrong.push("imports changed again after the hub came back".to_owned());
        } else {
            scene.step(name, format!("no member counts as silent {DOWN:?} later")).await;
        }
    }
    scene.watches.instruct(|world| missed.iter().for_each(|address| drop(world.take_arrivals(address))));
    Ok(wrong)
}
