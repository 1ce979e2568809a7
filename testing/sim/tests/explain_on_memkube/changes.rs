//! Random changes of healthy fleets. If importers then serve other endpoints than users want, the diagnosis finds a
//! fault whose cause names the changed object or its kind. If they do not, it finds none.
//!
//! | file | contents |
//! |---|---|
//! | `changes/fleet.rs` | the healthy fleet of a seed |
//! | `changes/change.rs` | one change of an object of a user, of the agents or of the server |
//! | `changes/rights.rs` | rights that agents lack |
//! | `changes/installation.rs` | Deployments and pods of the agents |
//! | `changes/viewer.rs` | person who runs `explain` and lacks a right |
//! | `changes/endpoints.rs` | endpoints that users want, and those that importers serve |
//!
//! `FLEETNET_CHANGES=5000` plays so many changes, and `FLEETNET_CHANGE=N` plays the change of one seed.

mod change;
mod endpoints;
mod fleet;
mod installation;
mod rights;
mod viewer;

use crate::world::{LATER, service, show};
use anyhow::{Context as _, ensure};
use change::Change;
use diagnosis::Code::{self, *};
use diagnosis::explain;
use diagnosis::explain::Filter;
use diagnosis::read::Limits;
use diagnosis::report::{Explanation, Pair, Verdict};
use endpoints::{Difference, difference};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;
use viewer::Viewer;

/// Changes that the tests play.
const SAMPLE: u64 = 200;
/// Time between the change and the users' next change of endpoints.
const PAUSE: Duration = Duration::from_secs(30);

/// Faults by which only later endpoints would be missing:
///
/// - a member has no access to the hub or is silent, or its namespace in the hub ends;
/// - the namespace of the Service is missing in the hub;
/// - the hub hears another cluster with the id of a member;
/// - an object hangs in deletion;
/// - an agent lacks a right, is stopped or does not lead;
/// - a slice is missing whose family the importer does not use.
const FUTURE: [Code; 15] =
    [FN107, FN109, FN110, FN201, FN202, FN203, FN206, FN207, FN208, FN213, FN303, FN313, FN501, FN612, FN703];

/// Plays the change of a seed. Returns the result in words: `rejected` if the server does not accept the change,
/// `nothing wanted` if users' objects want no endpoints, and otherwise what the diagnosis found.
async fn play(seed: u64) -> anyhow::Result<String> {
    let mut rng = Rng::with_seed(seed);
    let mut world = fleet::start(&mut rng, seed).await?;
    let before = difference(&world).await?;
    ensure!(before.is_none(), "the fleet is not healthy before the change: {before:?}");
    let change = Change::random(&mut rng, &world).await?;
    if !change.apply(&mut world).await? {
        return Ok("rejected".to_owned());
    }
    sleep(PAUSE).await;
    if rng.bool() {
        fleet::change_endpoints(&world).await?;
    }
    sleep(LATER).await;
    let (found, viewer) = (difference(&world).await?, (rng.usize(..5) == 0).then(|| Viewer::random(&mut rng)));
    viewer.iter().for_each(|viewer| viewer.apply(&world));
    let snapshot = world.read(Limits::default()).await;
    let explanation = explain(&snapshot, &service("app"), &Filter::default());
    let of_viewer = viewer.map_or(Ok(()), |viewer| viewer.judge(&found, &explanation));
    let judged = of_viewer.and_then(|()| judge(&change, viewer.is_some(), &found, &explanation));
    judged.with_context(|| format!("seed {seed}: {change}, {viewer:?}\n{}", show(&explanation)))
}

/// Compares what the diagnosis says with the endpoints. A viewer who lacks a right may not know the cause.
fn judge(change: &Change, is_viewer: bool, found: &Difference, explanation: &Explanation) -> anyhow::Result<String> {
    let causes = || explanation.pairs.iter().filter_map(|pair| Some((pair, pair.cause.as_ref()?)));
    let is_unknown = |pair: &Pair| pair.earlier_unknown || pair.verdict == Verdict::NotKnown;
    let is_unknown = is_viewer && (!explanation.not_known.is_empty() || explanation.pairs.iter().any(is_unknown));
    if let Some(what) = &found.text {
        ensure!(explanation.verdict == Verdict::Fault || is_unknown, "no fault, although {what}");
        let codes: Vec<&str> = causes().map(|(_, cause)| cause.code.id()).collect();
        let is_named = is_unknown || causes().any(|(_, cause)| change.is_named_by(cause));
        ensure!(is_named, "no cause names the change: {what}");
        return Ok(format!("found {}", codes.join(" ")));
    }
    if found.is_nothing_wanted {
        return Ok("nothing wanted".to_owned());
    }
    // An export without endpoints is a fault, although importers correctly have none.
    let wants_none =
        |exporter: &Option<String>| exporter.as_ref().is_some_and(|it| found.without_endpoints.contains(it));
    let (mut of_future, mut unexpected) = (Vec::new(), Vec::new());
    let of_agents = causes().filter(|(pair, cause)| !wants_none(&pair.exporter) && cause.code != FN104);
    for (_, cause) in of_agents {
        // An export of a slice that hangs in deletion still has its endpoints.
        let is_going = change.hangs() && cause.code == FN314;
        let list = if is_going || FUTURE.contains(&cause.code) { &mut of_future } else { &mut unexpected };
        list.push(cause.code.id());
    }
    ensure!(unexpected.is_empty(), "{unexpected:?}, although endpoints are as users want them");
    Ok(match of_future.is_empty() {
        true if is_unknown => "not known".to_owned(),
        true => "healthy".to_owned(),
        false => format!("of the future: {}", of_future.join(" ")),
    })
}

/// Plays every fourth change, from this one: four tests run in parallel.
fn play_from(first: u64) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    if let Some(seed) = number("FLEETNET_CHANGE") {
        if seed % 4 == first {
            println!("{}", sim::paused(play(seed))?);
        }
        return Ok(());
    }
    let (mut counts, mut failures) = (BTreeMap::<String, u64>::new(), Vec::new());
    for seed in (first..number("FLEETNET_CHANGES").unwrap_or(SAMPLE)).step_by(4) {
        match sim::paused(play(seed)) {
            Ok(played) => *counts.entry(played).or_default() += 1,
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    println!("{counts:?}, {} failures", failures.len());
    ensure!(failures.is_empty(), "{} changes: {}", failures.len(), failures.join("\n"));
    Ok(())
}

#[test]
fn the_first_changes_of_healthy_fleets_are_explained() -> anyhow::Result<()> {
    play_from(0)
}

#[test]
fn the_second_changes_of_healthy_fleets_are_explained() -> anyhow::Result<()> {
    play_from(1)
}

#[test]
fn the_third_changes_of_healthy_fleets_are_explained() -> anyhow::Result<()> {
    play_from(2)
}

#[test]
fn the_fourth_changes_of_healthy_fleets_are_explained() -> anyhow::Result<()> {
    play_from(3)
}
