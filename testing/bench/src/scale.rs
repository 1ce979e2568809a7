//! Measurement of how the agents' costs grow with the numbers of members, Services, importers and endpoints.
//!
//! The hub and the first member are memkubes with a delay for each write. The hub agent and the agent of the first
//! member are processes, which reach the memkubes over HTTPS. The bench itself makes the writes of all other members in
//! the hub.
//!
//! ```text
//! size (what is measured) ── scenario (which member exports and imports each Service)
//! fleet (servers, agents, the writes of a change) ── content (objects of the hub), others (what the other members write)
//! steps (the measurements of one scenario) ── arrivals (watch that records each copy), probe (requests to /healthz)
//! report (JSON, targets, tables)
//! ```

pub mod arrivals;
pub mod content;
pub mod fleet;
pub mod others;
pub mod probe;
pub mod report;
pub mod scenario;
pub mod size;
pub mod steps;

use report::Report;
use size::Size;

/// Measures all scenarios of `size`, one after the other.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let mut measured = Vec::new();
    for scenario in size.scenarios() {
        eprintln!("{scenario}");
        measured.push(steps::measure(scenario, size).await?);
    }
    Ok(Report::new(size, measured))
}
