//! Commands of `cargo xtask`, each in its own module.
//!
//! The crate has a library because the program `reference` also reads [`reasons`] and [`texts`]. This crate does not
//! depend on the agents, so `cargo xtask` compiles in seconds.

mod image;
mod in_parallel;
mod limited;
mod limits;
mod mutants;
#[cfg(test)]
mod package;
pub mod reasons;
mod release;
mod stopwatch;
mod test;
mod tidy;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use programs::{cargo, chromium, collector, control_plane, coredns, helm, prometheus};
use std::ffi::OsString;
use std::path::PathBuf;
pub use tidy::texts;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Download Chromium for the tests of the page unless it is installed, once, and print where it is.
    Chromium,
    /// Build the control plane for tests and `fleetnet sandbox --real`, once, and print where it is.
    Controlplane,
    /// Build an OpenTelemetry Collector for the test of traces, once, and print where it is.
    Collector,
    /// Build CoreDNS for the tests of the standard API, once, and print where it is.
    Coredns,
    /// Write the CustomResourceDefinitions to deploy/crds and to the chart fleetnet-crds.
    Crds {
        /// Arguments of the program `reference`: `--go-form DIR` for the definitions without fleetnet's additions.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build Helm for the tests of the charts, once, and print where it is.
    Helm,
    /// Download Prometheus for the tests of alerts and dashboards, once, and print where its programs are.
    Prometheus,
    /// Build static executables, and write a container image of each as an OCI layout, with a list of its crates
    /// (SPDX).
    Image(image::ImageArgs),
    /// Write the pictures of the page and of the terminal in docs/pictures.
    Pictures,
    /// Prepare a release, and list what the repository lacks for it.
    Release(release::ReleaseArgs),
    /// Plant faults that are derived from the source in a copy of this tree, and print those that no test catches.
    Mutants(mutants::MutantsArgs),
    /// Plant known bugs in a copy of this tree, and print which seed of the simulator finds each.
    Planted(mutants::planted::PlantedArgs),
    /// Write the reference of flags, metrics, names and custom resources to docs/reference.
    Reference,
    /// Play whole simulated fleets from seeds, with random users and faults, and check them at each change.
    #[command(disable_help_flag = true)]
    Sim {
        /// Arguments of the program `simulator`: `--seed S`, `--seeds N`, `--minutes M`, `--shrink S`; `--help` lists
        /// all.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run every test: tidy, the fast suite and the end-to-end suite, with the time that each took and the slowest
    /// tests.
    Test(test::TestArgs),
    /// Check the rules of the house that the compiler does not know.
    Tidy,
}

/// Runs the command that the arguments of this process name.
pub fn run() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Chromium => print(chromium::locate),
        Command::Controlplane => control_plane::run(),
        Command::Collector => print(collector::build),
        Command::Coredns => print(coredns::locate),
        Command::Crds { arguments } => reference("crds", &arguments),
        Command::Helm => print(helm::locate),
        Command::Prometheus => prometheus::run(),
        Command::Image(arguments) => image::run(&arguments),
        Command::Pictures => pictures(),
        Command::Release(arguments) => release::run(&arguments),
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Planted(arguments) => mutants::planted::run(&arguments),
        Command::Reference => reference("pages", &[]),
        Command::Sim { arguments } => simulator(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Tidy => tidy::run(),
    }
}

/// Prints the path of a program.
fn print(find: fn() -> anyhow::Result<PathBuf>) -> anyhow::Result<()> {
    println!("{}", find()?.display());
    Ok(())
}

/// Runs the program `simulator`, which depends on both agents.
fn simulator(arguments: &[OsString]) -> anyhow::Result<()> {
    let mut call = cargo::command(&["run", "--quiet", "--bin", "simulator", "--"]);
    let status = call.args(arguments).status().context("cannot call cargo")?;
    ensure!(status.success(), "a seed has a finding; it is listed above ({status})");
    Ok(())
}

/// Runs the test that compares the pictures in the docs, so that it writes them.
fn pictures() -> anyhow::Result<()> {
    let test = "pictures::the_pictures_in_the_docs_show_the_page_and_the_terminal_of_today";
    let mut call = cargo::command(&["test", "--quiet", "--workspace", "--features", cargo::FEATURES]);
    let status = call.args(["--test", "sandbox", "--", "--exact", test]).env("FLEETNET_WRITE_PICTURES", "1").status();
    let status = status.context("cannot call cargo")?;
    ensure!(status.success(), "the pictures could not be made ({status})");
    Ok(())
}

/// Runs a command of the program `reference`, which depends on both agents. No package is selected, so that Cargo
/// builds the dependencies with the features of the whole workspace.
fn reference(command: &str, arguments: &[OsString]) -> anyhow::Result<()> {
    let mut call = cargo::command(&["run", "--quiet", "--bin", "reference", "--", command]);
    let status = call.args(arguments).status().context("cannot call cargo")?;
    ensure!(status.success(), "`reference {command}` failed ({status})");
    Ok(())
}
