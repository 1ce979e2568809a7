//! Commands of `cargo xtask`, each in its own module.
//!
//! The crate has a library because the end-to-end tests find the programs of their control planes through [`controlplane`].

pub mod cargo;
pub mod controlplane;
mod crds;
mod limited;
mod limits;
mod mutants;
#[cfg(test)]
mod package;
mod reasons;
mod reference;
mod stopwatch;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the control plane for tests and `fleetnet sandbox --real`, once, and print where it is.
    Controlplane,
    /// Write the CustomResourceDefinitions to deploy/crds.
    Crds(crds::CrdsArgs),
    /// Plant the faults that the source marks, each alone in a copy of this tree, and print those that no test sees.
    Mutants(mutants::Choice),
    /// Write the reference of flags, metrics, names and custom resources to docs/reference.
    Reference,
    /// Run every test: tidy, the fast suite and the end-to-end suite, with the time that each took and the slowest tests.
    Test(test::TestArgs),
    /// Check the rules of the house that the compiler does not know.
    Tidy,
}

/// Runs the command that the arguments of this process name.
pub fn run() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Controlplane => controlplane::run(),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Reference => reference::run(),
        Command::Test(arguments) => test::run(&arguments),
        Command::Tidy => tidy::run(),
    }
}

/// Returns the root of the work tree in which this program was compiled.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace").to_path_buf()
}
