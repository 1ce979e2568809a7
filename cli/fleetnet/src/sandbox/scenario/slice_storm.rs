//! Scenario: changes many slices many times at once. The last state of each slice arrives, and outdated states are
//! skipped.

use crate::args::Scenario;
use crate::limits::SET_UP;
use crate::sandbox::measure::milliseconds;
use crate::sandbox::observe::address;
use crate::sandbox::scene::Scene;
use tokio::time::Instant;

const SERVICE: &str = "storm";
/// Number of slices that the scenario exports.
const SLICES: u16 = 40;
/// Number of times that each slice is changed.
const ROUNDS: u16 = 10;
/// Lowest number of an endpoint that this scenario creates. The address of an endpoint contains its number.
const FIRST: u16 = 10_000;

pub(super) async fn play(scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    let name = Scenario::SliceStorm.name();
    let origin = 0;
    scene.create_service(origin, SERVICE, 80).await?;
    for slice in 0..SLICES {
        scene.create_slice(origin, SERVICE, &slice_name(slice), vec![address(origin, FIRST + slice)]).await?;
    }
    scene.export(origin, SERVICE).await?;
    for member in 0..scene.members() {
        scene.import(member, SERVICE).await?;
    }
    let mut wrong = scene.all_as_expected(SET_UP).await;
    let changes = u64::from(SLICES * ROUNDS);
    scene.step(name, format!("{SLICES} slices are exported; each changes {ROUNDS} times, as fast as possible")).await;

    let before = scene.fleet.ledger().await?;
    let begun = Instant::now();
    for round in 1..=ROUNDS {
        for slice in 0..SLICES {
            let changed = address(origin, FIRST + round * SLICES + slice);
            scene.set_endpoints(origin, SERVICE, &slice_name(slice), vec![changed]).await?;
        }
    }
    let made = begun.elapsed();
    wrong.extend(scene.all_as_expected(SET_UP).await);
    let took = begun.elapsed();
    let cost = scene.cost_since(&before).await?.sums().total;
    let most = changes * (1 + 2 * u64::try_from(scene.members())?);
    if cost > most {
        wrong.push(format!("{changes} changes cost {cost} writes, and one by one they would have cost {most}"));
    }
    if wrong.is_empty() {
        let (made, took) = (milliseconds(made), milliseconds(took));
        let text = format!(
            "{changes} changes in {made:.0} ms are all everywhere after {took:.0} ms, for {cost} writes of {most} one by one"
        );
        scene.step(name, text).await;
    }
    Ok(wrong)
}

fn slice_name(slice: u16) -> String {
    format!("{SERVICE}-{slice}")
}
