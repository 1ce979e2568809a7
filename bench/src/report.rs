//! All figures of a run, and what they were to be.

use crate::churn::Churn;
use crate::ground::Role;
use crate::import::Import;
use crate::restart::Restart;
use crate::size::Size;
use serde::Serialize;
use std::fmt::Write as _;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured.
    pub size: Size,
    /// Processors that there are for agents, control planes and the bench together.
    pub processors: usize,
    /// The agents were built for speed.
    pub optimized: bool,
    /// A first import.
    pub import: Import,
    /// Changes.
    pub churn: Option<Churn>,
    /// Restarts.
    pub restart: Option<Restart>,
    /// Figures against targets.
    pub targets: Vec<Target>,
}

/// A figure and what it was to be at most.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// What it is, with its unit.
    pub name: String,
    /// What it is to be at most.
    pub at_most: f64,
    /// What it is.
    pub value: f64,
    /// Whether that is so.
    pub met: bool,
}

impl Report {
    /// Puts a run together.
    #[must_use]
    pub fn new(size: Size, import: Import, churn: Option<Churn>, restart: Option<Restart>) -> Self {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let targets = targets(&import, churn.as_ref(), restart.as_ref());
        Self { size, processors, optimized: !cfg!(debug_assertions), import, churn, restart, targets }
    }

    /// The targets as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        table(&self.targets)
    }
}

/// `targets` as a table for people.
#[must_use]
pub fn table(targets: &[Target]) -> String {
    let mut table = String::from("target                                                  at most       value\n");
    for Target { name, at_most, value, met } in targets {
        let verdict = if *met { "" } else { "  MISSED" };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{name:<52} {at_most:>10.1} {value:>11.2}{verdict}");
    }
    table
}

fn targets(import: &Import, churn: Option<&Churn>, restart: Option<&Restart>) -> Vec<Target> {
    let mut targets = vec![target("first import, times the floor", 1.5, import.ratio)];
    if let Some(churn) = churn {
        targets.push(target("change, p50, times the floor", 1.2, churn.p50_ratio));
        targets.push(target("change, p99, times the floor", 2.0, churn.p99_ratio));
        for role in Role::ALL {
            let name = format!("own share of a change, p99, milliseconds, {role:?}");
            let share = churn.stages.own.get(&role).map_or(f64::INFINITY, |own| own.share.p99_microseconds);
            targets.push(target(&name, 0.5, share / 1e3));
        }
    }
    let memory = churn.map_or(&import.memory, |churn| &churn.memory);
    for (role, memory) in memory {
        targets.push(target(&format!("resident memory, MiB, {role:?}"), 20.0, memory.resident_mib));
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

/// A figure against what it is to be at most.
#[must_use]
pub fn target(name: &str, at_most: f64, value: f64) -> Target {
    Target { name: name.to_owned(), at_most, value, met: value <= at_most }
}
