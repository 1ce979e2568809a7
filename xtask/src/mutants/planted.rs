//! Command `cargo xtask planted`: proves that the simulator finds bugs.
//!
//! The bugs are faults that the source marks. They are built into a copy of the tree, as for `cargo xtask mutants`. With each of
//! them, the simulator plays the seed that found the bug before. With `--seeds`, it searches for another one if that
//! seed does not find the bug any more.

use super::scratch::Scratch;
use super::switches::VARIABLE;
use super::{Planned, build, every_folder};
use crate::limits::LONGEST_PLANTED;
use crate::stopwatch::{Stopwatch, human};
use crate::{limited, limits, test, tidy};
use anyhow::{Context as _, ensure};
use programs::root;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::available_parallelism;

/// Bug that the simulator must find.
struct Known {
    name: &'static str,
    /// Id of its fault.
    id: &'static str,
    /// Rule that it breaks.
    rule: &'static str,
    /// Kinds of faults to play, separated by commas; empty for all.
    only: &'static str,
    /// First seed that finds it.
    seed: u64,
}

const fn known(name: &'static str, id: &'static str, rule: &'static str, only: &'static str, seed: u64) -> Known {
    Known { name, id, rule, only, seed }
}

/// Bugs that the simulator must find. After a change of the simulator other seeds may find a bug: `--seeds` searches for them.
/// docs/contributors/reliability.md has the same list.
const BUGS: &[Known] = &[
    known("the deletion of a source slice is ignored (B1)", "E6.1", "settled", "", 22),
    known("a second export of a slice gets another name (B2)", "E7.1", "duplicates", "pause", 42),
    known("an export that vanished is not created again (B4)", "S13.2", "settled", "", 16),
    known("a ServiceImport that somebody deleted is not created again (B5)", "H17.1", "prompt", "", 28),
    known("the import of another MultiClusterService is deleted (B10)", "M9.1", "withdrawn", "", 43),
    known("endpoints are withdrawn before a view is complete", "A4.5", "withdrawn", "", 19),
    known("an object that a list does not have stays in the view", "V9.3", "settled", "", 12),
    known("no key is requeued when an importer appears", "D5.1", "settled", "", 4),
    known("no MultiClusterService is requeued when a value changes", "M16.1", "settled", "", 1),
    known("a derived Service is forgotten", "A3.3", "settled", "", 7),
    known("two claims of type LoadBalancer show a grant for a moment", "C14.1", "claims", "rights", 12),
    known("a granted claim is forgotten", "C2.2", "settled", "", 10),
    known("a replica that does not lead writes", "K6.1", "leaders", "", 1),
    known("a replica takes the Lease of a leader that lives", "K1.1", "leaders", "", 13),
    known("a leader that lost its Lease once is never waited for again", "K4.4", "leaders", "", 9),
    known("a right of a member is ignored", "T14.1", "rights", "rights", 88),
    known("the clock of a timer is set and the timer is not told", "A13.3", "settled", "clocks", 88),
    known("the hub agent never writes the object after its preview", "J5.1", "settled", "streams", 41),
    known("an endpoint that is not ready is exported as ready", "X5.4", "endpoints", "", 6),
    known("the finalizers of others are removed from an object", "X6.2", "foreign", "held", 2),
    known("the grace period of a derived Service does not count", "M10.1", "grace", "", 2),
    known("a slice is distributed to its exporter, again and again", "D1.2", "loops", "", 1),
    known("a slice is distributed to an exporter that does not import it", "D1.2", "distribution", "", 2),
    known("the hub agent answers a heartbeat although nothing changed", "U4.1", "silence", "", 1),
    known("a failed request is repeated without a pause", "A8.5", "requests", "", 2),
    known("a member is judged at the first look, 5 s before the limit", "O14.1", "judgements", "death", 18),
    known("no timer waits for the next heartbeat to a fleet manager", "O10.3", "memberships", "leave", 1),
    known("a member does not ask for the slices of an import of the standard API", "MI6.1", "settled", "", 3),
    known("the last endpoints of a Service without ports are withdrawn", "O20.9", "standard", "death", 105),
];

/// Last seed of a search for a bug without a known seed.
const SEEDS: u64 = 150;

/// Arguments of `cargo xtask planted`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlantedArgs {
    /// Faults to plant in place of the usual bugs: their ids, or ids of rules of docs/contributors/behaviour.md.
    ids: Vec<String>,
    /// If the recorded seed of a bug does not find it any more, search for the first seed that does, up to this seed.
    #[arg(long)]
    seeds: Option<u64>,
    /// Play only these kinds of faults, separated by commas, with the bugs that `ids` names.
    #[arg(long, requires = "ids")]
    only: Option<String>,
}

/// Bug in the copy of the tree, with the number that switches it on.
struct Bug {
    name: String,
    number: u32,
    /// Kinds of faults to play, separated by commas; empty for all.
    only: String,
    /// Seed that found the bug before.
    seed: Option<u64>,
    /// Rule that must find the bug; `None` for any.
    rule: Option<&'static str>,
}

/// Plants each bug, and prints how many seeds the simulator takes to find it.
///
/// # Errors
/// If the simulator does not find a bug, or finds something without a bug.
pub(crate) fn run(args: &PlantedArgs) -> anyhow::Result<()> {
    let whole = Stopwatch::start();
    let all = tidy::planned_faults()?;
    let bugs = bugs(&all, args)?;
    let target = test::target_folder()?;
    let scratch = Scratch::new(root(), &target.join("mutants"), target.clone());
    // The packages of `cargo xtask mutants`, so that both commands build them once.
    let folders = every_folder(&all);
    let (_, alone) = build(&scratch, &all, &folders)?;
    let (bugs, without_switch): (Vec<Bug>, Vec<Bug>) = bugs.into_iter().partition(|bug| !alone.contains(&bug.number));
    for bug in &without_switch {
        println!("needs a build of its own: {}", bug.name);
    }
    ensure!(without_switch.is_empty() || !args.ids.is_empty(), "choose other faults for these bugs");
    let program = scratch.program(&folders, "simulator", "simulator")?;
    let (next, (sender, outcomes)) = (AtomicUsize::new(0), mpsc::sync_channel(limits::OUTCOMES));
    let mut missed = Vec::new();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        for sender in vec![sender; available_parallelism().map_or(1, usize::from)] {
            let (next, bugs, program) = (&next, &bugs, &program);
            scope.spawn(move || {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let stopwatch = Stopwatch::start();
                    if sender.send((bug, find(program, bug, args.seeds), stopwatch)).is_err() {
                        return;
                    }
                }
            });
        }
        for (bug, outcome, stopwatch) in outcomes {
            match outcome? {
                Some((seed, finding)) => {
                    println!("seed {seed:<5} {:>8}  {}: {finding:.120}", human(stopwatch.elapsed()), bug.name);
                }
                None => {
                    println!("NOT FOUND  {:>8}  {}", human(stopwatch.elapsed()), bug.name);
                    missed.push(bug.name.as_str());
                }
            }
        }
        Ok(())
    })?;
    let remedy = "`cargo xtask planted --seeds 300` searches for seeds that do";
    ensure!(missed.is_empty(), "the seeds do not find: {}; {remedy}", missed.join(", "));
    println!("the simulator finds all {} bugs, in {}", bugs.len(), human(whole.elapsed()));
    Ok(())
}

fn bugs(all: &[Planned], PlantedArgs { ids, only, .. }: &PlantedArgs) -> anyhow::Result<Vec<Bug>> {
    let numbers: BTreeMap<&str, u32> = all.iter().map(|one| one.fault.id.as_str()).zip(1..).collect();
    if !ids.is_empty() {
        let chosen = all.iter().filter(|one| ids.iter().any(|id| one.fault.is_named_by(id)));
        let bug = |one: &Planned| Bug {
            name: format!("{} {}", one.fault.id, one.fault.change()),
            number: numbers[one.fault.id.as_str()],
            only: only.clone().unwrap_or_default(),
            seed: None,
            rule: None,
        };
        return Ok(chosen.map(bug).collect());
    }
    let bug = |Known { name, id, rule, only, seed }: &Known| {
        let number = *numbers.get(id).with_context(|| format!("no mark has the id {id}"))?;
        let (name, only) = (format!("{name}, {id}"), (*only).to_owned());
        Ok(Bug { name, number, only, seed: Some(*seed), rule: Some(*rule) })
    };
    BUGS.iter().map(bug).collect()
}

/// Plays the seed that found the bug before, if there is one, and seeds up to `search` until one has a finding. Returns the seed, and the finding.
///
/// # Errors
/// If the seed also has a finding without the bug.
fn find(program: &Path, bug: &Bug, search: Option<u64>) -> anyhow::Result<Option<(u64, String)>> {
    let mut found = match bug.seed {
        Some(seed) => search_in(program, bug, seed..=seed)?,
        None => search_in(program, bug, 1..=search.unwrap_or(SEEDS))?,
    };
    if let (None, Some(_), Some(last)) = (&found, bug.seed, search) {
        found = search_in(program, bug, 1..=last)?;
    }
    if let Some((seed, _)) = &found
        && let Some((_, finding)) = play(program, bug, false, *seed, 1)?
    {
        anyhow::bail!("seed {seed}, which finds {}, also has a finding without this bug: {finding}", bug.name);
    }
    Ok(found)
}

/// Plays seeds with the bug until one breaks the rule of the bug. Returns the seed, and the finding.
fn search_in(program: &Path, bug: &Bug, seeds: RangeInclusive<u64>) -> anyhow::Result<Option<(u64, String)>> {
    let (mut first, last) = seeds.into_inner();
    while first <= last {
        let Some((seed, finding)) = play(program, bug, true, first, last + 1 - first)? else { return Ok(None) };
        if bug.rule.is_none_or(|rule| finding.strip_prefix(rule).is_some_and(|rest| rest.starts_with(':'))) {
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
        command.env(VARIABLE, bug.number.to_string());
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

#[cfg(test)]
mod tests {
    use super::{BUGS, Known};

    #[test]
    fn the_table_in_the_docs_has_these_bugs() {
        let page = programs::root().join("docs/contributors/reliability.md");
        let docs = std::fs::read_to_string(page).expect("the page about reliability");
        let rows: Vec<&str> = docs.lines().filter(|line| line.starts_with("| ")).collect();
        for Known { name, id, rule, only, seed } in BUGS {
            let only = if only.is_empty() { String::new() } else { format!(", with `--only {only}`") };
            let end = format!(" | {id} | {rule} | {seed}{only} |");
            let is_row = |row: &&str| row.starts_with(&format!("| {name}")) && row.ends_with(&end);
            assert!(rows.iter().any(is_row), "no row for {name}{end}");
        }
    }
}
