//! Command `bench`: measures, prints JSON on standard output and a table on standard error.

use anyhow::Context as _;
use bench::all::{self, Part};
use bench::size::{SMOKE, Size};
use bench::{limits, requests, scale, silence, slices, soak, stream};
use clap::{Parser, Subcommand};

/// Measures the agents on real control planes, against the same writes made by hand, and the EndpointSlice library
/// alone.
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

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// All Services exported and imported at once; writes, and memory after it.
    Import(Size),
    /// Changes at a steady rate, with the stages of a change and the agents' own share.
    Churn(Size),
    /// The agents started again.
    Restart(Size),
    /// All of these.
    All(Size),
    /// How costs grow with members, Services and importers, on servers in memory.
    Scale(scale::size::Size),
    /// Changes with and without slice streams, for one importer on real control planes and for many on servers in
    /// memory.
    Stream(stream::Size),
    /// A member that dies and returns: how long others use its endpoints, on servers in memory.
    Silence(silence::Size),
    /// Requests to an imported Service, beside requests in the exporting cluster: lost ones, and delays of changes.
    /// Needs root.
    Requests(requests::Size),
    /// Hours of changes with random faults: what arrives at the end, and what the agents need meanwhile.
    Soak(soak::Size),
    /// The EndpointSlice library on a folder of scenarios; a line of JSON for each.
    #[command(name = "endpointslice")]
    EndpointSlice(slices::Options),
}

fn main() -> anyhow::Result<()> {
    let Arguments { what, smoke } = Arguments::parse();
    match what {
        What::Import(size) => harness::run(all::measure(&[], if smoke { SMOKE } else { size }))?.print(),
        What::Churn(size) => harness::run(all::measure(&[Part::Churn], if smoke { SMOKE } else { size }))?.print(),
        What::Restart(size) => harness::run(all::measure(&[Part::Restart], if smoke { SMOKE } else { size }))?.print(),
        What::All(size) => {
            let size = if smoke { SMOKE } else { size };
            harness::run(all::measure(&[Part::Churn, Part::Restart], size))?.print()
        }
        What::Scale(size) => {
            let size = if smoke { scale::size::Size::smoke() } else { size };
            harness::run_within(limits::SCALE, scale::measure(&size))?.print()
        }
        What::Stream(size) => {
            let size = if smoke { stream::Size::smoke() } else { size };
            harness::run_within(limits::STREAM, stream::measure(&size))?.print()
        }
        What::Silence(size) => {
            let size = if smoke { silence::Size::smoke() } else { size };
            harness::run_within(limits::DEATHS, silence::measure(&size))?.print()
        }
        What::Requests(size) => {
            let size = &if smoke { requests::Size::smoke() } else { size };
            packets::run_inside(limits::REQUESTS, async || requests::measure(size).await?.print())
        }
        What::Soak(size) => soak(if smoke { soak::SMOKE } else { size }, smoke),
        What::EndpointSlice(_) if smoke => {
            anyhow::bail!("--smoke is for control planes: here take --generate FOLDER --pods 10, and --milliseconds 1")
        }
        What::EndpointSlice(options) => slices::run(&options, print_line),
    }
}

fn soak(size: soak::Size, smoke: bool) -> anyhow::Result<()> {
    let report = harness::run_within(size.limit(), soak::run(size))?;
    report.print()?;
    let missed: Vec<&str> = report.targets.iter().filter(|one| !one.met).map(|one| one.name.as_str()).collect();
    anyhow::ensure!(missed.is_empty() || smoke, "missed targets: {}", missed.join(", "));
    Ok(())
}

fn print_line(line: &slices::scenario_result::ScenarioResult) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(line).context("figures are JSON")?);
    Ok(())
}
