//! Command `bench`: measures, prints JSON on standard output and a table on standard error.

use anyhow::Context as _;
use bench::environment::Environment;
use bench::report::{Report, Target};
use bench::size::{SMOKE, Size};
use bench::slices;
use bench::users::Users;
use bench::world::World;
use bench::{churn, import, requests, restart, scale, silence, soak, stream};
use clap::{Parser, Subcommand};
use serde::Serialize;

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
    if smoke && matches!(what, What::EndpointSlice(_)) {
        anyhow::bail!("--smoke is for control planes: here take --generate FOLDER --pods 10, and --milliseconds 1");
    }
    let (parts, size): (&[Part], Size) = match what {
        What::Import(size) => (&[], size),
        What::Churn(size) => (&[Part::Churn], size),
        What::Restart(size) => (&[Part::Restart], size),
        What::All(size) => (&[Part::Churn, Part::Restart], size),
        What::Scale(size) => {
            let size = if smoke { scale::size::Size::smoke() } else { size };
            let report = harness::run_within(bench::limits::SCALE, scale::measure(&size))?;
            return show(&report, &report.targets, &format!("\n{}", report.table()));
        }
        What::Stream(size) => {
            let size = if smoke { stream::Size::smoke() } else { size };
            let report = harness::run_within(bench::limits::STREAM, stream::measure(&size))?;
            return show(&report, &report.targets, &format!("\n{}", report.table()));
        }
        What::Silence(size) => {
            let size = if smoke { silence::Size::smoke() } else { size };
            let report = harness::run_within(bench::limits::DEATHS, silence::measure(&size))?;
            return show(&report, &report.targets, "");
        }
        What::Requests(size) => {
            let size = &if smoke { requests::Size::smoke() } else { size };
            return packets::run_inside(bench::limits::REQUESTS, async || {
                let report = requests::measure(size).await?;
                show(&report, &report.targets, &format!("\n{}", report.table()))
            });
        }
        What::Soak(size) => return soak(if smoke { soak::SMOKE } else { size }, smoke),
        What::EndpointSlice(options) => return slices::run(&options, print_line),
    };
    let size = if smoke { SMOKE } else { size };
    let report = harness::run(measure(parts, size))?;
    println!("{}", serde_json::to_string_pretty(&report).context("figures are JSON")?);
    eprint!("{}", report.table());
    if let Some(churn) = &report.churn {
        eprint!("\n{}", bench::table::of(churn));
    }
    Ok(())
}

/// Prints a report as JSON, and for people its targets and the other figures.
fn show(report: &impl Serialize, targets: &[Target], figures: &str) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(report).context("figures are JSON")?);
    eprint!("{}{figures}", bench::report::table(targets));
    Ok(())
}

fn soak(size: soak::Size, smoke: bool) -> anyhow::Result<()> {
    let report = harness::run_within(size.limit(), soak::run(size))?;
    show(&report, &report.targets, "")?;
    let missed: Vec<&str> = report.targets.iter().filter(|one| !one.met).map(|one| one.name.as_str()).collect();
    anyhow::ensure!(missed.is_empty() || smoke, "missed targets: {}", missed.join(", "));
    Ok(())
}

/// Optional part of the measurement. All parts run after the measurement of the import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Churn,
    Restart,
}

async fn measure(parts: &[Part], size: Size) -> anyhow::Result<Report> {
    let mut environment = Environment::take().await?;
    let users = Users::of(&environment, World::of_agents(&environment)).await?;
    let (import, baseline) = import::measure(&environment, &users, size).await?;
    let churn = if parts.contains(&Part::Churn) {
        Some(churn::measure(&environment, &users, &baseline, size).await?)
    } else {
        None
    };
    let restart = if parts.contains(&Part::Restart) {
        Some(restart::measure(&mut environment, &users, size).await?)
    } else {
        None
    };
    Ok(Report::new(size, import, churn, restart))
}

fn print_line(line: &slices::line::Line) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(line).context("figures are JSON")?);
    Ok(())
}
