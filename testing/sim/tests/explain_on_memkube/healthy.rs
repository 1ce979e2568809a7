//! Healthy fleets: the diagnosis reports no code.

use crate::world::{World, codes, service, show};
use anyhow::{Context as _, ensure};
use diagnosis::check::{Stage, check};
use diagnosis::explain::Filter;
use diagnosis::report::{ServiceState, Verdict};
use diagnosis::services::Rows;
use diagnosis::{explain, services, status};
use harness::user::Consume;
use sim::Options;
use std::time::Duration;
use tokio::time::sleep;

/// Number of healthy fleets.
const FLEETS: u64 = 100;
/// Time in which exports and imports of a fleet settle.
const SETTLED: Duration = Duration::from_secs(20);

/// Plays a fleet with 2 to 5 members, and 1 to 3 Services with different exporters and importers.
async fn play(seed: u64) -> anyhow::Result<()> {
    let members = 2 + usize::try_from(seed % 4)?;
    let names = ["app", "db", "web"];
    let number = 1 + usize::try_from(seed / 4 % 3)?;
    let mut world = World::new(Options { seed, ..Options::members(members) }).await?;
    world.fleet.start_agents().await?;
    for (index, name) in names.iter().take(number).enumerate() {
        let first = (usize::try_from(seed)? + index) % members;
        let exporters: Vec<usize> =
            if seed.is_multiple_of(3) { vec![first, (first + 1) % members] } else { vec![first] };
        for exporter in &exporters {
            let user = world.user(*exporter);
            user.create_service(name).await?;
            for slice in 0..=seed % 2 {
                let address = format!("10.{}.{index}.{}", exporter + 1, slice + 1);
                user.create_slice(name, &format!("{name}-{slice}"), &[&address]).await?;
            }
            user.export(name).await?;
        }
        for importer in 0..members {
            if importer != first {
                world.user(importer).import(name, name, Consume::ClusterIp).await?;
            }
        }
    }
    sleep(SETTLED).await;
    let snapshot = world.snapshot().await?;
    for name in names.iter().take(number) {
        let explanation = explain(&snapshot, &service(name), &Filter::default());
        let is_healthy = codes(&explanation).is_empty() && explanation.verdict == Verdict::Healthy;
        ensure!(is_healthy, "{name}: {}", show(&explanation));
    }
    ensure!(status(&snapshot).verdict == Verdict::Healthy, "{:#?}", status(&snapshot));
    let rows = services(&snapshot, &Rows::default());
    let is_ready = rows.services.iter().all(|row| row.state == ServiceState::Ready);
    ensure!(rows.verdict == Verdict::Healthy && is_ready, "{rows:#?}");
    let check = check(&snapshot, Stage::Installed);
    ensure!(check.verdict == Verdict::Healthy, "{check:#?}");
    Ok(())
}

/// Plays every fourth fleet, from this one: four tests run in parallel.
fn play_from(first: u64) -> anyhow::Result<()> {
    for seed in (first..FLEETS).step_by(4) {
        sim::paused(play(seed)).with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

#[test]
fn healthy_fleets_of_two_members_give_no_code() -> anyhow::Result<()> {
    play_from(0)
}

#[test]
fn healthy_fleets_of_three_members_give_no_code() -> anyhow::Result<()> {
    play_from(1)
}

#[test]
fn healthy_fleets_of_four_members_give_no_code() -> anyhow::Result<()> {
    play_from(2)
}

#[test]
fn healthy_fleets_of_five_members_give_no_code() -> anyhow::Result<()> {
    play_from(3)
}
