//! Measurement of the slice stream: what it saves, and what it costs.
//!
//! ```text
//! change (one importer): real control planes and agents, without and with a stream, each beside the baseline
//! fan_out (many importers): hub agent as a process, hub in memory, streams of the bench (subscribers) in place of member agents
//! report (JSON, targets, tables) ── size (what is measured) ── certificate (of the hub agent)
//! ```

pub mod certificate;
pub mod change;
pub mod fan_out;
pub mod report;
pub mod subscribers;

use crate::size::endpoints;
use report::Report;
use serde::Serialize;

/// How much there is of everything.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct Size {
    /// Importers of the changed slice, on servers in memory.
    #[arg(long, value_delimiter = ',', default_values_t = [5, 10, 100])]
    pub importers: Vec<u32>,
    /// Changes per second.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 20])]
    pub rates: Vec<u32>,
    /// Duration of the changes of each rate, in seconds.
    #[arg(long, default_value_t = 30)]
    pub seconds: u32,
    /// Endpoints of each slice.
    #[arg(long, default_value_t = 20, value_parser = endpoints)]
    pub endpoints: usize,
    /// Time that each write waits in an API server in memory, in milliseconds.
    #[arg(long, default_value_t = 2)]
    pub write_delay: u64,
}

impl Size {
    /// Returns the size of the smoke run, which runs every step in a short time.
    #[must_use]
    pub fn smoke() -> Self {
        Self { importers: vec![3], rates: vec![4], seconds: 2, endpoints: 3, write_delay: 2 }
    }
}

/// Measures changes for one importer on real control planes, and then for many importers on servers in memory.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let changes = change::measure(size).await?;
    let mut fan_outs = Vec::new();
    for importers in size.importers.iter().copied() {
        eprintln!("{importers} importers");
        fan_outs.push(fan_out::measure(importers, size).await?);
    }
    Ok(Report::new(size, changes, fan_outs))
}
