//! Command `cargo xtask planted`: proves that the simulator finds bugs.
//!
//! The bugs are patches with switches ([`super::bugs`]). They are built into a copy of the tree, all at once. With each
//! of them, the simulator plays the seed that found the bug before. With `--seeds`, it searches for another one if that
//! seed does not find the bug any more.

use super::bugs::{self, Bug};
use super::scratch::Scratch;
use super::with_functions;
use crate::limits::LONGEST_PLANTED;
use crate::stopwatch::{Stopwatch, human};
use crate::{in_parallel, limited, test};
use anyhow::{Context as _, ensure};
use programs::root;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};

/// Environment variable of `switch.rs` with the name of the bug that is on.
const VARIABLE: &str = "FLEETNET_BUG";

/// Arguments of `cargo xtask planted`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlantedArgs {
    /// Names of the bugs to plant: files in testing/bugs without their ending. All, if none is named.
    names: Vec<String>,
    /// If the recorded seed of a bug does not find it any more, search for the first seed that does, up to this seed.
    #[arg(long)]
    seeds: Option<u64>,
}

/// Plants each bug, and prints how many seeds the simulator takes to find it.
///
/// # Errors
/// If the simulator does not find a bug, or finds something without a bug.
pub(crate) fn run(args: &PlantedArgs) -> anyhow::Result<()> {
    let whole = Stopwatch::start();
    let bugs = bugs::all()?;
    if let Some(unknown) = args.names.iter().find(|name| bugs.iter().all(|bug| bug.name != **name)) {
        anyhow::bail!("{}/{unknown}.patch does not exist", bugs::FOLDER);
    }
    let target = test::target_folder()?;
    let folder = target.join("mutants");
    let scratch = Scratch::new(root(), &folder, target);
    let mut texts = bugs::patched(&bugs, &folder.join("patched"))?;
    let folder_of = |file: &String| file.split_once("/src/").map(|(folder, _)| folder.to_owned());
    let folders: BTreeSet<String> = texts.keys().filter_map(folder_of).collect();
    with_functions(&folders, &mut texts)?;
    scratch.write(&texts)?;
    let program = scratch.program("testing/simulator", "simulator")?;
    println!("built the simulator with {} bugs, in {}", bugs.len(), human(whole.elapsed()));
    let is_chosen = |bug: &Bug| args.names.is_empty() || args.names.contains(&bug.name);
    let chosen = bugs.iter().filter(|bug| is_chosen(bug));
    let searches: Vec<(&Bug, &str, u64)> =
        chosen.flat_map(|bug| bug.finds.iter().map(move |(rule, seed)| (bug, rule.as_str(), *seed))).collect();
    let mut missed = Vec::new();
    let search = |(bug, rule, seed): &(&Bug, &str, u64)| {
        let stopwatch = Stopwatch::start();
        (find(&program, bug, rule, *seed, args.seeds), stopwatch.elapsed())
    };
    in_parallel::each(&searches, search, |(bug, rule, _), (outcome, took)| {
        match outcome? {
            Some((seed, finding)) => println!("seed {seed:<5} {:>8}  {}: {finding:.120}", human(took), bug.name),
            None => {
                println!("NOT FOUND  {:>8}  {}: {rule}", human(took), bug.name);
                missed.push(bug.name.as_str());
            }
        }
        anyhow::Ok(())
    })?;
    let remedy = "`cargo xtask planted --seeds 300` searches for seeds that do";
    ensure!(missed.is_empty(), "the seeds do not find: {}; {remedy}", missed.join(", "));
    println!("the simulator finds all {} bugs, in {}", searches.len(), human(whole.elapsed()));
    Ok(())
}

/// Plays the seed that found the bug before, and then seeds up to `search` until one finds it. Returns the seed, and
/// the finding.
///
/// # Errors
/// If the seed also has a finding without the bug.
fn find(
    program: &Path,
    bug: &Bug,
    rule: &str,
    seed: u64,
    search: Option<u64>,
) -> anyhow::Result<Option<(u64, String)>> {
    let mut found = search_in(program, bug, rule, seed..=seed)?;
    if let (None, Some(last)) = (&found, search) {
        found = search_in(program, bug, rule, 1..=last)?;
    }
    if let Some((seed, _)) = &found
        && let Some((_, finding)) = play(program, bug, false, *seed, 1)?
    {
        anyhow::bail!("seed {seed}, which finds {}, also has a finding without this bug: {finding}", bug.name);
    }
    Ok(found)
}

/// Plays seeds with the bug until one breaks the rule. Returns the seed, and the finding.
fn search_in(
    program: &Path,
    bug: &Bug,
    rule: &str,
    seeds: RangeInclusive<u64>,
) -> anyhow::Result<Option<(u64, String)>> {
    let (mut first, last) = seeds.into_inner();
    while first <= last {
        let Some((seed, finding)) = play(program, bug, true, first, last + 1 - first)? else { return Ok(None) };
        if finding.strip_prefix(rule).is_some_and(|rest| rest.starts_with(':')) {
            return Ok(Some((seed, finding)));
        }
        first = seed + 1;
    }
    Ok(None)
}

/// Plays seeds until one has a finding, with or without the bug. Returns the seed, and the finding.
fn play(program: &Path, bug: &Bug, is_planted: bool, first: u64, seeds: u64) -> anyhow::Result<Option<(u64, String)>> {
    let mut command = Command::new(program);
    command.args(["--stride", "1", "--first", &first.to_string(), "--seeds", &seeds.to_string()]);
    if !bug.only.is_empty() {
        command.args(["--only", &bug.only]);
    }
    if is_planted {
        command.env(VARIABLE, &bug.name);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut output = child.stdout.take().context("the output of the simulator")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    ensure!(limited::wait(&mut child, LONGEST_PLANTED)?.is_some(), "the simulator does not end with {}", bug.name);
    let text = reader.join().map_err(|_| anyhow::anyhow!("the output of the simulator"))??;
    let report: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("it printed {text:.200}"))?;
    if let Some(failure) = report["failures"][0].as_str() {
        anyhow::bail!("with {}: {failure}", bug.name);
    }
    let Some(finding) = report["findings"][0].as_str() else { return Ok(None) };
    let (seed, what) = finding.strip_prefix("seed ").and_then(|text| text.split_once(": ")).context("a seed")?;
    Ok(Some((seed.parse()?, what.lines().next().unwrap_or_default().to_owned())))
}
