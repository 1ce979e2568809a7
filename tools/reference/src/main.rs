//! Program `reference`: writes files of the repository from the code. `cargo xtask crds` and `cargo xtask reference`
//! run it.

mod alerts;
mod behaviour;
mod charts;
mod crds;
#[cfg(test)]
mod dashboards_tests;
mod pages;
mod runbook;

use clap::Parser;

/// Write files of the repository from the code.
#[derive(Parser)]
enum Command {
    /// Write the CustomResourceDefinitions to deploy/crds.
    Crds(crds::CrdsArgs),
    /// Write docs/reference (flags, metrics, names, custom resources), the runbook, the rules for Prometheus, and the
    /// pages of the charts.
    Pages,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Pages => {
            pages::run()?;
            behaviour::run(&programs::root())?;
            alerts::run(&programs::root())?;
            charts::run(&programs::root())?;
            runbook::run(&programs::root())
        }
    }
}
