//! Measurement of how the agents' costs grow with the numbers of members, Services, importers and endpoints.
//!
//! The hub and the first member are memkubes with a delay for each write. The hub agent and the agent of the first
//! member are processes, which reach the memkubes over HTTPS. The bench itself makes the writes of all other members in
//! the hub.
//!
//! ```text
//! size (what is measured) ── scenario (which member exports and imports each Service)
//! fleet (servers, agents, the writes of a change) ── content (objects of the hub), others (what the other members write)
//! steps (the measurements of one scenario) ── probe (requests to /healthz)
//! targets (what the results of the largest fleet must be)
//! ```

pub mod content;
pub mod fleet;
pub mod others;
pub mod probe;
pub mod scenario;
pub mod size;
pub mod steps;
mod targets;

use crate::report;
use serde::Serialize;
use size::Size;
use steps::Measured;

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub scenarios: Vec<Measured>,
}

pub type Report = report::Report<Size, Figures>;

/// Measures all scenarios of `size`, one after the other.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let mut scenarios = Vec::new();
    for scenario in size.scenarios() {
        eprintln!("{scenario}");
        scenarios.push(steps::measure(scenario, size).await?);
    }
    let targets = if size.endpoints == targets::ENDPOINTS { targets::targets(&scenarios) } else { Vec::new() };
    Ok(Report::new(size.clone(), Figures { scenarios }, targets))
}
