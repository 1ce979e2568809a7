//! `cargo xtask test`: every test of the project, in the order in which failures are cheapest.
//!
//! Every call of Cargo is for the whole workspace and chooses targets, never packages: the features of dependencies depend
//! on the packages that are chosen, and another choice would build kube and tokio a second time.

use crate::controlplane::{self, Program};
use crate::stopwatch::{Stopwatch, human};
use crate::{root, tidy};
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Leave out the end-to-end suite, which starts control planes and other processes.
    #[arg(long)]
    pub(crate) fast: bool,
}

/// The packages whose integration tests are the end-to-end suite: they start processes and wait for them in real time.
const END_TO_END: [&str; 2] = ["fleetnet-tests", "fleetnet"];

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
    let Suites { fast, end_to_end } = Suites::of(&metadata()?)?;
    times.measure("tidy", tidy::run)?;
    let fast = with_targets(&["test", "--workspace", "--lib", "--bins"], &fast);
    times.measure("build", || cargo(&[&fast[..], &["--no-run", "--quiet"]].concat()))?;
    times.measure("fast suite", || cargo(&fast))?;
    times.measure("examples in docs", || cargo(&["test", "--quiet", "--workspace", "--doc"]))?;
    if arguments.fast {
        return Ok(());
    }
    times.measure("control plane", || controlplane::locate(Program::ApiServer).map(drop))?;
    // The suite starts the agents as processes; a build of its tests does not build them.
    times.measure("agents", || cargo(&["build", "--workspace", "--bins"]))?;
    times.measure("end-to-end suite", || cargo(&with_targets(&["test", "--workspace"], &end_to_end)))
}

/// The names of the integration tests.
#[derive(Debug, Eq, PartialEq)]
struct Suites {
    fast: Vec<String>,
    end_to_end: Vec<String>,
}

impl Suites {
    fn of(metadata: &Value) -> anyhow::Result<Self> {
        let mut suites = Self { fast: Vec::new(), end_to_end: Vec::new() };
        for package in list(metadata, "packages") {
            let is_end_to_end = END_TO_END.iter().any(|name| package["name"] == *name);
            let suite = if is_end_to_end { &mut suites.end_to_end } else { &mut suites.fast };
            let tests = list(package, "targets").filter(|target| target["kind"][0] == "test");
            suite.extend(tests.filter_map(|target| target["name"].as_str().map(str::to_owned)));
        }
        let twice = suites.end_to_end.iter().find(|name| suites.fast.contains(name));
        ensure!(twice.is_none(), "{END_TO_END:?} and another package both have tests named {twice:?}: rename one");
        ensure!(!suites.end_to_end.is_empty(), "{END_TO_END:?} have no tests");
        Ok(suites)
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn with_targets<'a>(arguments: &[&'a str], tests: &'a [String]) -> Vec<&'a str> {
    let targets = tests.iter().flat_map(|name| ["--test", name.as_str()]);
    arguments.iter().copied().chain(targets).collect()
}

/// What Cargo knows of our packages.
///
/// # Errors
/// Where it cannot be asked.
pub(crate) fn metadata() -> anyhow::Result<Value> {
    let output = command(&["metadata", "--no-deps", "--format-version", "1"]).output().context("cannot call cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

/// Calls the Cargo that runs us.
///
/// # Errors
/// Where it cannot be called or fails.
pub(crate) fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let told = format!("cargo {}", arguments.join(" "));
    eprintln!("$ {told}");
    let status = command(arguments).status().with_context(|| format!("cannot run `{told}`"))?;
    if !status.success() {
        bail!("`{told}` failed ({status})");
    }
    Ok(())
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
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

#[cfg(test)]
mod tests {
    use super::Suites;
    use serde_json::{Value, json};

    fn metadata(end_to_end: &str) -> Value {
        json!({"packages": [
            {"name": "fleetnet-core", "targets": [{"name": "fleetnet_core", "kind": ["lib"]}, {"name": "rules", "kind": ["test"]}]},
            {"name": "fleetnet-tests", "targets": [{"name": end_to_end, "kind": ["test"]}, {"name": "helper", "kind": ["bin"]}]},
        ]})
    }

    #[test]
    fn every_integration_test_is_in_one_suite() {
        let suites = Suites::of(&metadata("main_job")).expect("two suites");
        assert_eq!(suites, Suites { fast: vec!["rules".to_owned()], end_to_end: vec!["main_job".to_owned()] });
    }

    #[test]
    fn a_name_that_is_in_both_suites_is_refused() {
        let error = Suites::of(&metadata("rules")).expect_err("one name for two").to_string();
        assert!(error.contains("both have tests named Some(\"rules\")"), "{error}");
    }
}
