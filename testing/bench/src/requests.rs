//! Measurement of requests to an imported Service, on the fleet with real traffic of `testing/packets/`. Two clients
//! send the same requests: one in the exporting cluster itself, which is the baseline, and one in the importing
//! cluster.
//!
//! ```text
//! setup (fleet, two replicas of each agent) ── traffic (servers, clients, counts)
//! changes (one pod more, one pod less), rollouts, kills (of agents, during rollouts) ── imports (addresses in the importer, with times)
//! interruptions (frozen leaders, outages, restarts, changes by users), versions (agents of another version)
//! silence (of an exporting cluster whose pods answer), death (of an exporting cluster)
//! outside (node port, load balancer), overhead (of the way through a derived Service)
//! size (scenarios, connections, numbers), report (figures, targets)
//! ```

pub mod changes;
pub mod death;
pub mod imports;
pub mod interruptions;
pub mod kills;
pub mod outside;
pub mod overhead;
pub mod report;
pub mod rollouts;
pub mod setup;
pub mod silence;
mod size;
pub mod traffic;
pub mod versions;

pub use size::{Connections, PreStop, Scenario, Size};

use anyhow::Context as _;
use packets::interruptions::{Interruption, PRE_STOP};
use packets::pair::Pair;
use report::Figures;

/// Results of the measurement.
pub type Report = crate::report::Report<Size, Figures>;

/// preStop hooks in rolling updates and in interruptions if `--pre-stop` is not given.
const PRE_STOPS: [PreStop; 3] = [PreStop(Some(5)), PreStop(Some(2)), PreStop(None)];
const PRE_STOPS_OF_INTERRUPTIONS: [PreStop; 1] = [PreStop(Some(PRE_STOP))];

/// Measures the scenarios of `size` in one fleet, one after the other.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let has = |scenario| size.has(scenario);
    let mut pair = Pair::start("requests", size.settings()).await?;
    let mut figures = Figures::default();
    let [changes, rollouts, kills, others] = size.numbers();
    if has(Scenario::Ready) || has(Scenario::Deleted) {
        figures.rows.extend(changes::measure(&pair, size, changes).await?);
    }
    if has(Scenario::Rollout) {
        for connections in &size.connections {
            for pre_stop in size.pre_stop.as_deref().unwrap_or(&PRE_STOPS) {
                figures.rows.extend(rollouts::measure(&pair, size, *connections, *pre_stop, rollouts).await?);
            }
        }
    }
    if has(Scenario::Outside) {
        figures.rows.extend(outside::measure(&pair, size, others).await?);
    }
    if has(Scenario::Overhead) {
        figures.overheads = overhead::measure(&pair, size, others).await?;
    }
    if has(Scenario::Kills) {
        for successor in kills::SUCCESSORS {
            let (rows, killed) = kills::measure(&mut pair, size, successor, kills).await?;
            figures.rows.extend(rows);
            figures.kills.extend(killed);
        }
    }
    interrupt(&mut pair, size, others, &mut figures).await?;
    let targets = figures.targets();
    Ok(Report::new(size.clone(), figures, targets))
}

/// Measures the scenarios in which agents or clusters fail or change.
async fn interrupt(pair: &mut Pair, size: &Size, times: u32, figures: &mut Figures) -> anyhow::Result<()> {
    if size.has(Scenario::Interruptions) {
        for interruption in &size.interruption {
            if *interruption == Interruption::ExporterSilent {
                figures.rows.extend(silence::measure(pair, size, times).await?);
                continue;
            }
            for pre_stop in size.pre_stop.as_deref().unwrap_or(&PRE_STOPS_OF_INTERRUPTIONS) {
                figures.rows.extend(interruptions::measure(*interruption, pair, size, *pre_stop, times).await?);
            }
        }
    }
    if size.has(Scenario::Versions) {
        let older = size.older_agents.as_deref().context("the scenario versions needs --older-agents")?;
        figures.rows.extend(versions::measure(pair, size, older, times).await?);
    }
    if size.has(Scenario::Death) {
        let (rows, deaths) = death::measure(pair, size, times).await?;
        figures.rows.extend(rows);
        figures.deaths = deaths;
    }
    Ok(())
}
