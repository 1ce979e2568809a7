//! Results of a bench run, compared with targets.

use crate::churn::Churn;
use crate::environment::Role;
use crate::import::Import;
use crate::restart::Restart;
use crate::size::Size;
use serde::Serialize;
use std::fmt::Write as _;

/// Results of a bench run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub size: Size,
    /// Number of processors that agents, control planes and the bench share.
    pub processors: usize,
    /// True if the agents are optimized builds.
    pub optimized: bool,
    pub import: Import,
    pub churn: Option<Churn>,
    pub restart: Option<Restart>,
    /// Results compared with their targets.
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

impl Report {
    /// Builds the report and compares the results with their targets.
    #[must_use]
    pub fn new(size: Size, import: Import, churn: Option<Churn>, restart: Option<Restart>) -> Self {
        let processors = processors();
        let targets = targets(&import, churn.as_ref(), restart.as_ref());
        Self { size, processors, optimized: !cfg!(debug_assertions), import, churn, restart, targets }
    }

    /// Returns a table of the results and their targets for people.
    #[must_use]
    pub fn table(&self) -> String {
        table(&self.targets)
    }
}

/// Returns the number of processors that agents, servers and the bench share; 0 if the system does not tell it.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// Returns a table of `targets` for people.
#[must_use]
pub fn table(targets: &[Target]) -> String {
    let mut table = String::from("target                                                  at most       value\n");
    for Target { name, at_most, value, met } in targets {
        let mark = if *met { "" } else { "  MISSED" };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{name:<52} {at_most:>10.1} {value:>11.2}{mark}");
    }
    table
}

fn targets(import: &Import, churn: Option<&Churn>, restart: Option<&Restart>) -> Vec<Target> {
    let mut targets = vec![target("first import, times the baseline", 1.5, import.ratio)];
    if let Some(churn) = churn {
        targets.push(target("change, p50, times the baseline", 1.2, churn.p50_ratio));
        targets.push(target("change, p99, times the baseline", 2.0, churn.p99_ratio));
        for role in Role::ALL {
            let name = format!("own share of a change, p99, milliseconds, {role:?}");
            let share = churn.stages.own.get(&role).map_or(f64::INFINITY, |own| own.share.p99_microseconds);
            targets.push(target(&name, 0.5, share / 1e3));
        }
    }
    let memory = churn.map_or(&import.memory, |churn| &churn.memory);
    for (role, memory) in memory {
        targets.push(target(&format!("resident memory, MiB, {role:?}"), 24.0, memory.resident_mib));
    }
    if let Some(restart) = restart {
        #[allow(clippy::cast_precision_loss, reason = "a handful of writes")]
        targets.push(target("restart, writes", 0.0, restart.writes as f64));
        let p50 = restart.fresh_change.p50_milliseconds;
        targets.push(target("restart, fresh change, p50, milliseconds", 500.0, p50));
        let longest = restart.fresh_change.longest_milliseconds;
        targets.push(target("restart, fresh change, longest, milliseconds", 500.0, longest));
    }
    targets
}

/// Compares a measured value with its target.
#[must_use]
pub fn target(name: &str, at_most: f64, value: f64) -> Target {
    Target { name: name.to_owned(), at_most, value, met: value <= at_most }
}
