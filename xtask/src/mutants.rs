//! `cargo xtask mutants`: whether each rule's test fails when the rule is taken out.
//!
//! Faults are planted one at a time in a copy of this tree, below the target directory; the tree itself is never touched.
//! Of each fault only the test that it names is run. A fault that its test does not see has survived.

pub(crate) mod list;
mod scratch;

use crate::stopwatch::{Stopwatch, human};
use crate::{root, test};
use anyhow::{Context as _, bail, ensure};
use list::Mutant;
use scratch::{Outcome, Scratch, Suites};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct MutantsArgs {
    /// Faults to plant: their ids, or those of rules of docs/behaviour.md. All, where none is named.
    ids: Vec<String>,
}

/// Plants them.
///
/// # Errors
/// Where a test fails without a fault, a fault cannot be planted, or one survives.
pub(crate) fn run(arguments: &MutantsArgs) -> anyhow::Result<()> {
    let whole = Stopwatch::start();
    let text =
        std::fs::read_to_string(root().join(list::PATH)).with_context(|| format!("cannot read {}", list::PATH))?;
    let mutants = chosen(list::parse(&text)?, &arguments.ids)?;
    let scratch = Scratch::copy(&root(), &folder()?)?;
    let suites = unchanged(&scratch, &mutants)?;
    let mut survivors = Vec::new();
    let mut broken = Vec::new();
    for mutant in &mutants {
        let stopwatch = Stopwatch::start();
        let outcome = scratch.plant(mutant, &suites)?;
        println!("{:<9} {:<6} {:>8}  {}", outcome.word(), mutant.id, human(stopwatch.elapsed()), mutant.fault);
        match outcome {
            Outcome::Killed => {}
            Outcome::Survived => survivors.push(mutant),
            Outcome::Broken(why) => broken.push((mutant, why)),
        }
    }
    println!();
    for mutant in &survivors {
        println!("{} survived: {} sees nothing of it ({}: {})", mutant.id, mutant.test, mutant.file, mutant.fault);
    }
    for (mutant, why) in &broken {
        println!("{} is no fault, since it does not compile:\n{why}", mutant.id);
    }
    let (count, left) = (mutants.len(), survivors.len() + broken.len());
    println!("{count} faults planted, {} seen by their tests, in {}", count - left, human(whole.elapsed()));
    if left > 0 {
        bail!("{} survived and {} do not compile; they are listed above", survivors.len(), broken.len());
    }
    Ok(())
}

/// The mutants that the ids name.
fn chosen(mutants: Vec<Mutant>, ids: &[String]) -> anyhow::Result<Vec<Mutant>> {
    if let Some(unknown) = ids.iter().find(|id| mutants.iter().all(|mutant| !mutant.is_named_by(id))) {
        bail!("no fault in {} has the id or takes out the rule {unknown}", list::PATH);
    }
    let wanted = |mutant: &Mutant| ids.is_empty() || ids.iter().any(|id| mutant.is_named_by(id));
    Ok(mutants.into_iter().filter(wanted).collect())
}

/// Where faults are planted: beside what Cargo builds.
fn folder() -> anyhow::Result<PathBuf> {
    Ok(test::target_folder()?.join("mutants"))
}

/// Runs the named tests on the copy as it is: a test that fails anyway sees nothing.
fn unchanged(scratch: &Scratch, mutants: &[Mutant]) -> anyhow::Result<Suites> {
    let stopwatch = Stopwatch::start();
    let folders: BTreeSet<&str> = mutants.iter().map(Mutant::folder).collect();
    let suites = scratch.suites(&folders)?;
    let tests: BTreeSet<(&str, &str)> = mutants.iter().map(|mutant| (mutant.folder(), mutant.test.as_str())).collect();
    let failed = suites.run_all(&tests)?;
    ensure!(failed.is_empty(), "these tests fail without any fault: {}", failed.join(", "));
    println!("{} tests pass as they are, in {}", tests.len(), human(stopwatch.elapsed()));
    Ok(suites)
}
