//! Program `reference`: writes files of the repository from the code. `cargo xtask crds` and `cargo xtask reference`
//! run it.

mod alerts;
mod behaviour;
mod charts;
mod crds;
mod dashboards;
mod pages;
mod runbook;

use clap::Parser;

/// Write files of the repository from the code.
#[derive(Parser)]
enum Command {
    /// Write the CustomResourceDefinitions to deploy/crds.
    Crds(crds::CrdsArgs),
    /// Write docs/reference (flags, metrics, names, custom resources), the runbook, the dashboards, the rules for
    /// Prometheus, and the pages of the charts.
    Pages,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Pages => {
            pages::run()?;
            behaviour::run(&programs::root())?;
            dashboards::run()?;
            alerts::run(&programs::root())?;
            charts::run(&programs::root())?;
            runbook::run(&programs::root())
        }
    }
}
