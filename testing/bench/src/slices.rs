//! Measurement of the EndpointSlice library alone: the cost of a reconcile and of an event, for scenarios in files.
//!
//! ```text
//!  generate ─► files ─► scenario ─┬─► full        (plan over everything, written) ─┬─► outcome (slices) ─► line (JSON)
//!                                 ├─► incremental (one pod's event, on a state)   ─┤
//!                                 └─► selected    (which Services select a pod)   ─┘
//!                                          meter (processor time, allocations), memory (writes, metrics)
//! ```
//!
//! A simulated API server in memory executes the writes. A measurement includes the conversion of pods to backends,
//! tracking of writes, and metrics, because the reconciler of `k8s.io/endpointslice` includes them too. It excludes
//! reading files.

pub mod full;
pub mod generate;
pub mod incremental;
pub mod memory;
pub mod meter;
pub mod outcome;
pub mod scenario;
pub mod scenario_result;
pub mod selected;

use crate::slices::meter::Meter;
use crate::slices::scenario::Scenario;
use crate::slices::scenario_result::ScenarioResult;
use anyhow::Context as _;
use regex::Regex;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The folder of scenario files, `*.json`.
    #[arg(long, value_name = "FOLDER", required_unless_present = "generate")]
    folder: Option<PathBuf>,
    /// Only scenarios whose name this pattern matches.
    #[arg(long, value_name = "PATTERN", default_value = "")]
    only: Regex,
    /// Processor time to spend on each scenario and way to plan.
    #[arg(long, default_value_t = 1000)]
    milliseconds: u64,
    /// Writes scenario files to this folder and measures nothing.
    #[arg(long, value_name = "FOLDER", conflicts_with = "folder")]
    generate: Option<PathBuf>,
    /// The numbers of pods to generate scenarios of.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1000, 5000])]
    pods: Vec<usize>,
}

/// Runs the measurements that `options` asks for, and passes each result to `print`.
///
/// # Errors
/// If a file cannot be read or written, or a scenario is malformed.
pub fn run(options: &Options, mut print: impl FnMut(&ScenarioResult) -> anyhow::Result<()>) -> anyhow::Result<()> {
    if let Some(folder) = &options.generate {
        return generate::write(folder, &options.pods);
    }
    let folder = options.folder.as_deref().context("clap wants a folder where nothing is generated")?;
    let meter = Meter::new(Duration::from_millis(options.milliseconds));
    for file in scenario::files(folder, &options.only)? {
        let scenario = Scenario::read(&file)?;
        let measured = measure(&scenario, meter);
        for line in measured.with_context(|| format!("scenario {}", file.display()))? {
            print(&line)?;
        }
    }
    Ok(())
}

fn measure(scenario: &Scenario, meter: Meter) -> anyhow::Result<Vec<ScenarioResult>> {
    if !scenario.services.is_empty() {
        return Ok(vec![selected::measure(scenario, meter)?]);
    }
    let mut lines = vec![full::measure(scenario, meter)?];
    lines.extend(incremental::measure(scenario, meter)?);
    Ok(lines)
}
