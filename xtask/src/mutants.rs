//! Command `cargo xtask mutants`: plants faults (deliberate errors) in the source, and reports those that the tests do not
//! detect.
//!
//! Faults are planted in a copy of this tree below the target directory. The tree itself never changes. The copy is compiled once
//! with all faults, and an environment variable switches one fault on while its tests run ([`switches`]). A few faults cannot
//! have a switch, and are compiled one by one. A fault survives if none of its tests fails. A fault that does not compile is an
//! error.

mod choice;
mod journal;
pub(crate) mod mark;
pub(crate) mod planted;
mod scratch;
mod switches;

use crate::stopwatch::{Stopwatch, human};
use crate::{limits, test, tidy};
use anyhow::{Context as _, bail, ensure};
pub(crate) use choice::Choice;
use journal::Journal;
use mark::Fault;
use programs::root;
use scratch::{NotBuilt, Outcome, Scratch, Suites};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::available_parallelism;
use switches::Switched;

/// Fault (a deliberate error) to plant in the source, with its tests as (folder of the package, `file::test`).
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) fault: Fault,
    pub(crate) tests: Vec<(String, String)>,
}

/// Plants the chosen faults (deliberate errors), and runs the tests that must detect them.
///
/// # Errors
/// If a test fails without a fault, a fault cannot be planted, or a fault survives.
pub(crate) fn run(choice: &Choice) -> anyhow::Result<()> {
    let whole = Stopwatch::start();
    let all = tidy::planned_faults()?;
    let numbers: BTreeMap<String, u32> = all.iter().map(|one| one.fault.id.clone()).zip(1..).collect();
    let planned = choice.of(all.clone())?;
    if planned.is_empty() {
        println!("no fault is chosen");
        return Ok(());
    }
    let target = test::target_folder()?;
    let folder = target.join("mutants");
    let scratch = Scratch::new(root(), &folder, target);
    let folders = if choice.is_for_all() { every_folder(&all) } else { folders(&planned) };
    let (suites, alone) = build(&scratch, &all, &folders)?;
    unchanged(&suites, &planned)?;
    println!("{} of {} faults need a build of their own", alone.len(), all.len());
    let mut journal = Journal::open(&folder, &scratch.digest()?, choice.resume)?;
    let due: Vec<&Planned> = planned.iter().filter(|one| !journal.has_seen(&one.fault.id)).collect();
    // The time of the build does not count, so a slow machine plants faults too.
    let planting = Stopwatch::start();
    let is_late = || choice.within.is_some_and(|within| planting.elapsed() >= within);
    let mut report = Report { seen: planned.len() - due.len(), ..Report::default() };
    let (on_their_own, together): (Vec<&Planned>, Vec<&Planned>) =
        due.into_iter().partition(|one| alone.contains(&numbers[&one.fault.id]));

    // A fault with a switch (an environment variable that turns the fault on) needs no build. So all processors test such
    // faults in parallel.
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = mpsc::sync_channel(limits::OUTCOMES);
    let plant_some = |sender: mpsc::SyncSender<_>| {
        while !is_late()
            && let Some(one) = together.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let stopwatch = Stopwatch::start();
            let outcome = suites.outcome(numbers[&one.fault.id], &one.tests);
            if sender.send((*one, outcome, stopwatch)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| -> anyhow::Result<()> {
        for sender in vec![sender; available_parallelism().map_or(1, usize::from)] {
            scope.spawn(|| plant_some(sender));
        }
        for (one, outcome, stopwatch) in outcomes {
            report.add(one, outcome?, stopwatch, &mut journal)?;
        }
        Ok(())
    })?;
    for one in on_their_own {
        if !is_late() {
            let stopwatch = Stopwatch::start();
            report.add(one, scratch.plant(&one.fault, &one.tests, &suites)?, stopwatch, &mut journal)?;
        }
    }
    report.end(&planned, &journal, whole)
}

/// Returns the folders of the packages whose tests must detect these faults.
fn folders(planned: &[Planned]) -> BTreeSet<&str> {
    planned.iter().flat_map(|one| &one.tests).map(|(folder, _)| folder.as_str()).collect()
}

/// Returns the folders of all packages that `cargo xtask mutants` and `cargo xtask planted` build.
fn every_folder(all: &[Planned]) -> BTreeSet<&str> {
    folders(all).into_iter().chain(["simulator"]).collect()
}

/// Outcomes of the planted faults so far.
#[derive(Default)]
struct Report<'a> {
    seen: usize,
    survivors: Vec<&'a Fault>,
    broken: Vec<(&'a Fault, String)>,
}

impl<'a> Report<'a> {
    fn add(
        &mut self,
        one: &'a Planned,
        outcome: Outcome,
        stopwatch: Stopwatch,
        journal: &mut Journal,
    ) -> anyhow::Result<()> {
        let fault = &one.fault;
        println!("{:<9} {:<6} {:>8}  {}", outcome.word(), fault.id, human(stopwatch.elapsed()), fault.change());
        match outcome {
            Outcome::Seen => {
                journal.add(&fault.id)?;
                self.seen += 1;
            }
            Outcome::Survived => self.survivors.push(fault),
            Outcome::Broken(why) => self.broken.push((fault, why)),
        }
        Ok(())
    }

    /// Prints the outcomes.
    ///
    /// # Errors
    /// If a fault survived or does not compile.
    fn end(&self, planned: &[Planned], journal: &Journal, whole: Stopwatch) -> anyhow::Result<()> {
        let Self { seen, survivors, broken } = self;
        println!();
        for fault in survivors {
            println!("{} survived at {}:{}: no test fails with {}", fault.id, fault.file, fault.line, fault.change());
        }
        for (fault, why) in broken {
            println!("{} at {}:{} does not compile:\n{why}", fault.id, fault.file, fault.line);
        }
        let (ended, count) = (seen + survivors.len() + broken.len(), planned.len());
        if ended < count {
            let is_left = |one: &&Planned| {
                let fault = &one.fault;
                !journal.has_seen(&fault.id)
                    && !survivors.contains(&fault)
                    && broken.iter().all(|(broken, _)| *broken != fault)
            };
            let left: Vec<&str> = planned.iter().filter(is_left).map(|one| one.fault.id.as_str()).collect();
            println!("{} faults were not planted, for lack of time: {}", left.len(), left.join(" "));
        }
        println!("{seen} of {count} faults seen by their tests, in {}", human(whole.elapsed()));
        if !survivors.is_empty() || !broken.is_empty() {
            bail!("{} faults survived and {} do not compile; they are listed above", survivors.len(), broken.len());
        }
        Ok(())
    }
}

/// Builds the tests of the packages in these folders with the faults of the whole tree, so that a later run that plants other
/// faults builds nothing. Returns the faults that cannot have a switch: faults outside of functions, and faults that the compiler
/// rejects in a switch.
fn build(scratch: &Scratch, all: &[Planned], folders: &BTreeSet<&str>) -> anyhow::Result<(Suites, BTreeSet<u32>)> {
    let stopwatch = Stopwatch::start();
    // An edit during the build must not make these numbers those of another tree.
    let digest = scratch.digest()?;
    let mut alone = scratch.known_alone(&digest);
    loop {
        let switched = with_switches(all, &mut alone)?;
        let mut texts: BTreeMap<String, String> =
            switched.iter().map(|(file, switched)| (file.clone(), switched.text.clone())).collect();
        // Allow warnings, because faulty code may cause some. The attribute is added to the first line, so that no line number
        // changes.
        for folder in all.iter().map(|one| one.fault.folder()).collect::<BTreeSet<_>>() {
            let file = format!("{folder}/src/lib.rs");
            let text = match texts.remove(&file) {
                Some(text) => text,
                None => fs::read_to_string(root().join(&file)).with_context(|| format!("cannot read {file}"))?,
            };
            texts.insert(file, format!("#![allow(warnings)] {text}{}", switches::FUNCTION));
        }
        scratch.write(&texts)?;
        match scratch.suites(folders) {
            Ok(suites) => {
                scratch.note_alone(&digest, &alone)?;
                println!("built the tests of {folders:?} with {} faults, in {}", all.len(), human(stopwatch.elapsed()));
                return Ok((suites, alone));
            }
            Err(NotBuilt::Failed(error)) => return Err(error),
            Err(NotBuilt::Rejected { places, words }) => {
                let before = alone.len();
                for (file, line) in places {
                    alone.extend(switched.get(&file).into_iter().flat_map(|switched| switched.at_fault(line)));
                }
                ensure!(alone.len() > before, "the tests do not compile:\n{words}");
            }
        }
    }
}

/// Returns the text of each file that has faults, with a switch for each fault that is not in `alone`. A switch is code that
/// turns the fault on if an environment variable names the fault. Adds to `alone` the faults that cannot have a switch.
fn with_switches(all: &[Planned], alone: &mut BTreeSet<u32>) -> anyhow::Result<BTreeMap<String, Switched>> {
    let mut by_file: BTreeMap<&str, Vec<(u32, &Fault)>> = BTreeMap::new();
    for (number, one) in (1..).zip(all) {
        let faults = by_file.entry(&one.fault.file).or_default();
        if !alone.contains(&number) {
            faults.push((number, &one.fault));
        }
    }
    let mut switched = BTreeMap::new();
    for (file, faults) in by_file {
        let text = fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        let with = Switched::new(&text, &faults).with_context(|| format!("cannot plant the faults of {file}"))?;
        alone.extend(&with.left);
        switched.insert(file.to_owned(), with);
    }
    Ok(switched)
}

/// Runs the tests without a fault, because a test that fails without a fault detects nothing.
fn unchanged(suites: &Suites, planned: &[Planned]) -> anyhow::Result<()> {
    let stopwatch = Stopwatch::start();
    let tests = planned.iter().flat_map(|planned| &planned.tests);
    let tests: BTreeSet<(&str, &str)> = tests.map(|(folder, test)| (folder.as_str(), test.as_str())).collect();
    let failed = suites.run_all(&tests)?;
    ensure!(failed.is_empty(), "these tests fail without any fault: {}", failed.join(", "));
    println!("{} tests pass without a fault, in {}", tests.len(), human(stopwatch.elapsed()));
    Ok(())
}
