//! `cargo xtask test`: every test of the project, in the order in which failures are cheapest.

use crate::controlplane::{self, Program};
use crate::stopwatch::{Stopwatch, human};
use crate::{root, tidy};
use anyhow::{Context as _, bail};
use std::process::Command;
use std::time::Duration;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Leave out the end-to-end suite, which needs a control plane.
    #[arg(long)]
    pub(crate) fast: bool,
}

/// The package of the end-to-end suite.
const END_TO_END: &str = "fleetnet-tests";

/// Runs the suites until one fails, and says what each took.
///
/// # Errors
/// The first suite that fails.
pub(crate) fn run(arguments: &TestArgs) -> anyhow::Result<()> {
    let mut times = Times::default();
    let outcome = suites(arguments, &mut times);
    times.print();
    outcome
}

fn suites(arguments: &TestArgs, times: &mut Times) -> anyhow::Result<()> {
    times.measure("tidy", tidy::run)?;
    times.measure("fast suite", || cargo(&["test", "--workspace", "--exclude", END_TO_END]))?;
    if arguments.fast {
        return Ok(());
    }
    times.measure("control plane", || controlplane::locate(Program::ApiServer).map(drop))?;
    // The suite starts the agents as processes; a test build of another package does not build them.
    times.measure("agents", || cargo(&["build", "--workspace", "--bins"]))?;
    times.measure("end-to-end suite", || cargo(&["test", "--package", END_TO_END]))
}

/// Calls the Cargo that runs us.
///
/// # Errors
/// Where it cannot be called or fails.
pub(crate) fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let told = format!("cargo {}", arguments.join(" "));
    eprintln!("$ {told}");
    let status = Command::new(cargo)
        .current_dir(root())
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run `{told}`"))?;
    if !status.success() {
        bail!("`{told}` failed ({status})");
    }
    Ok(())
}

/// What each step took, in order.
#[derive(Default)]
struct Times(Vec<(&'static str, Duration, bool)>);

impl Times {
    fn measure(&mut self, step: &'static str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let stopwatch = Stopwatch::start();
        let outcome = work();
        self.0.push((step, stopwatch.elapsed(), outcome.is_ok()));
        outcome
    }

    fn print(&self) {
        println!();
        for (step, duration, passed) in &self.0 {
            println!("{step:<18} {:>14}{}", human(*duration), if *passed { "" } else { "  FAILED" });
        }
    }
}
