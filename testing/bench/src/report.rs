//! Report of a measurement: figures and their targets, as JSON and as tables for people.

use crate::table;
use anyhow::Context as _;
use serde::Serialize;
use std::fmt::Write as _;

/// Results of a measurement, compared with targets.
#[derive(Clone, Debug, Serialize)]
pub struct Report<S, F> {
    pub size: S,
    /// Number of processors that agents, servers, clients and the bench share; 0 if the system does not tell it.
    pub processors: usize,
    /// True if the agents are optimized builds.
    pub optimized: bool,
    #[serde(flatten)]
    pub figures: F,
    pub targets: Vec<Target>,
}

/// Measured value and its target.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// Name of the measured value, with its unit.
    pub name: String,
    /// Largest value that meets the target.
    pub at_most: f64,
    /// Measured value.
    pub value: f64,
    /// True if the measured value meets the target.
    pub met: bool,
}

impl<S: Serialize, F: Serialize> Report<S, F> {
    pub fn new(size: S, figures: F, targets: Vec<Target>) -> Self {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        Self { size, processors, optimized: !cfg!(debug_assertions), figures, targets }
    }

    /// Prints the report as JSON on standard output, and for people as tables on standard error.
    pub fn print(&self) -> anyhow::Result<()> {
        println!("{}", serde_json::to_string_pretty(self).context("figures are JSON")?);
        let mut tables = String::from("target                                                  at most       value\n");
        for Target { name, at_most, value, met } in &self.targets {
            let mark = if *met { "" } else { "  MISSED" };
            // Writing to a string cannot fail.
            let _ = writeln!(tables, "{name:<52} {at_most:>10.1} {value:>11.2}{mark}");
        }
        table::add(&mut tables, &serde_json::to_value(&self.figures)?);
        eprint!("{tables}");
        Ok(())
    }
}

/// Compares a measured value with its target.
#[must_use]
pub fn target(name: &str, at_most: f64, value: f64) -> Target {
    Target { name: name.to_owned(), at_most, value, met: value <= at_most }
}
