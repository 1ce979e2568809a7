//! Command `cargo xtask mutants`: plants faults, and reports those that the tests do not detect.
//!
//! Each fault is planted alone, in a copy of this tree below the target directory. The tree itself never changes. A fault
//! survives if none of its tests fails. A fault that does not compile is an error.

mod choice;
mod journal;
pub(crate) mod mark;
mod scratch;

use crate::stopwatch::{Stopwatch, human};
use crate::{root, test, tidy};
use anyhow::{bail, ensure};
pub(crate) use choice::Choice;
use journal::Journal;
use mark::Fault;
use scratch::{Outcome, Scratch, Suites};
use std::collections::BTreeSet;

/// Fault to plant, with its tests as (folder of the package, `file::test`).
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) fault: Fault,
    pub(crate) tests: Vec<(String, String)>,
}

/// Plants the chosen faults.
///
/// # Errors
/// If a test fails without a fault, a fault cannot be planted, or one survives.
pub(crate) fn run(choice: &Choice) -> anyhow::Result<()> {
    let whole = Stopwatch::start();
    let planned = choice.of(tidy::planned_faults()?)?;
    if planned.is_empty() {
        println!("no fault is chosen");
        return Ok(());
    }
    let folder = test::target_folder()?.join("mutants");
    let scratch = Scratch::copy(&root(), &folder)?;
    let mut journal = Journal::open(&folder, &scratch.digest()?, choice.resume)?;
    let suites = unchanged(&scratch, &planned)?;
    let (mut survivors, mut broken, mut seen, mut left) = (Vec::new(), Vec::new(), 0, Vec::new());
    for Planned { fault, tests } in &planned {
        if journal.has_seen(&fault.id) {
            seen += 1;
            continue;
        }
        if choice.within.is_some_and(|within| whole.elapsed() >= within) {
            left.push(fault.id.as_str());
            continue;
        }
        let stopwatch = Stopwatch::start();
        let outcome = scratch.plant(fault, tests, &suites)?;
        println!("{:<9} {:<6} {:>8}  {}", outcome.word(), fault.id, human(stopwatch.elapsed()), fault.change());
        match outcome {
            Outcome::Seen => {
                journal.add(&fault.id)?;
                seen += 1;
            }
            Outcome::Survived => survivors.push(fault),
            Outcome::Broken(why) => broken.push((fault, why)),
        }
    }
    println!();
    for fault in &survivors {
        println!("{} survived at {}:{}: no test fails with {}", fault.id, fault.file, fault.line, fault.change());
    }
    for (fault, why) in &broken {
        println!("{} at {}:{} does not compile:\n{why}", fault.id, fault.file, fault.line);
    }
    if !left.is_empty() {
        println!("{} faults were not planted, for lack of time: {}", left.len(), left.join(" "));
    }
    println!("{seen} of {} faults seen by their tests, in {}", planned.len(), human(whole.elapsed()));
    if !survivors.is_empty() || !broken.is_empty() {
        bail!("{} faults survived and {} do not compile; they are listed above", survivors.len(), broken.len());
    }
    Ok(())
}

/// Runs the faults' tests on the unchanged copy, because a test that fails without a fault detects nothing.
fn unchanged(scratch: &Scratch, planned: &[Planned]) -> anyhow::Result<Suites> {
    let stopwatch = Stopwatch::start();
    let tests = planned.iter().flat_map(|planned| &planned.tests);
    let tests: BTreeSet<(&str, &str)> = tests.map(|(folder, test)| (folder.as_str(), test.as_str())).collect();
    let folders: BTreeSet<&str> = tests.iter().map(|(folder, _)| *folder).collect();
    let suites = scratch.suites(&folders)?;
    let failed = suites.run_all(&tests)?;
    ensure!(failed.is_empty(), "these tests fail without any fault: {}", failed.join(", "));
    println!("{} tests pass without a fault, in {}", tests.len(), human(stopwatch.elapsed()));
    Ok(suites)
}
