//! Program `reference`: writes files of the repository from the code. `cargo xtask crds` and `cargo xtask reference` run it.

mod crds;
mod dashboards;
mod pages;

use clap::Parser;

/// Write files of the repository from the code.
#[derive(Parser)]
enum Command {
    /// Write the CustomResourceDefinitions to deploy/crds.
    Crds(crds::CrdsArgs),
    /// Write the reference of flags, metrics, names and custom resources to docs/reference, and the dashboards.
    Pages,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Pages => {
            pages::run()?;
            dashboards::run()
        }
    }
}
