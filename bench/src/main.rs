//! `bench`: measures and prints JSON; a table for people goes to standard error.

use anyhow::Context as _;
use bench::ground::Ground;
use bench::report::Report;
use bench::size::{SMOKE, Size};
use bench::users::Users;
use bench::world::World;
use bench::{churn, import, restart};
use clap::{Parser, Subcommand};

/// Measures the agents on real control planes, against the same writes made by hand.
///
/// Builds of `dev` are for --smoke: take figures with `cargo run --release -p bench -- all`.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Tiny, to see that everything works; the figures say nothing.
    #[arg(long, global = true)]
    smoke: bool,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum What {
    /// All Services exported and imported at once; writes, and memory after it.
    Import(Size),
    /// Changes at a steady rate, with the stages of a change and the agents' own share.
    Churn(Size),
    /// The agents started again.
    Restart(Size),
    /// All of it.
    All(Size),
}

fn main() -> anyhow::Result<()> {
    let Arguments { what, smoke } = Arguments::parse();
    let report = fleetnet_tests::run(measure(what, smoke))?;
    println!("{}", serde_json::to_string_pretty(&report).context("figures are JSON")?);
    eprint!("{}", report.table());
    if let Some(churn) = &report.churn {
        eprint!("\n{}", bench::table::of(churn));
    }
    Ok(())
}

async fn measure(what: What, smoke: bool) -> anyhow::Result<Report> {
    let (churns, restarts, size) = match what {
        What::Import(size) => (false, false, size),
        What::Churn(size) => (true, false, size),
        What::Restart(size) => (false, true, size),
        What::All(size) => (true, true, size),
    };
    let size = if smoke { SMOKE } else { size };
    let mut ground = Ground::take().await?;
    let users = Users::of(&ground, World::of_agents(&ground)).await?;
    let (import, floor) = import::measure(&ground, &users, size).await?;
    let churn = if churns { Some(churn::measure(&ground, &users, &floor, size).await?) } else { None };
    let restart = if restarts { Some(restart::measure(&mut ground, &users, size).await?) } else { None };
    Ok(Report::new(size, import, churn, restart))
}
