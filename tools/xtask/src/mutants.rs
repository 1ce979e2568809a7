//! Command `cargo xtask mutants`: derives faults (deliberate errors) from the source, and reports those that the tests
//! do not catch.
//!
//! Operators change the syntax tree in many small ways ([`operators`]). All faults are built at once into a copy of
//! this tree below the target directory, each with a switch, so the tests are compiled once. First each test runs
//! without a fault, and records which faults it reaches. Then each fault is switched on for the tests that reach it,
//! until one of them fails.
//!
//! A fault that the compiler rejects is none. A fault that no test can see, because the program does the same with it,
//! stands with a reason in the list of [`equivalent`].

mod bugs;
mod derived;
mod equivalent;
mod operators;
pub(crate) mod planted;
mod scratch;
mod since;
mod suites;
#[cfg(test)]
mod switch;

use crate::stopwatch::{Stopwatch, human};
use crate::{in_parallel, test};
use anyhow::{Context as _, ensure};
use derived::Derived;
use operators::Fault;
use programs::root;
use scratch::{NotBuilt, Program, Scratch};
use since::Changed;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use suites::{Outcome, Suites};

/// Functions that are added to each crate with faults.
const SWITCH: &str = include_str!("mutants/switch.rs");
/// At least so many of a hundred faults that are not equivalent must be caught.
const CAUGHT_PERCENT: usize = 97;
/// At most so many of a hundred faults may be in the list of equivalent ones.
const EQUIVALENT_PERCENT: usize = 2;
/// File with the ids of the faults that no test caught in the last run.
const SURVIVORS: &str = "survivors";

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct MutantsArgs {
    /// Folders of the crates whose faults to plant, and whose tests must catch them.
    #[arg(default_value = "core")]
    folders: Vec<String>,
    /// Plant only the faults of functions that changed since this commit. Each of them must be caught.
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// Plant only the faults whose file, function or change contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Run these crates' tests too, for faults that the crates' own tests do not catch.
    #[arg(long, value_name = "FOLDER")]
    also: Vec<String>,
    /// Plant only the faults that no test caught in the last run.
    #[arg(long)]
    again: bool,
    /// Run slow tests too, such as random histories, with the faults that quick tests do not catch.
    #[arg(long)]
    slow: bool,
    /// Print the faults, and plant none.
    #[arg(long)]
    list: bool,
}

/// Plants the chosen faults, and runs the tests that reach them.
///
/// # Errors
/// If a test fails without a fault, or not enough faults are caught.
pub(crate) fn run(args: &MutantsArgs) -> anyhow::Result<()> {
    let whole = Stopwatch::start();
    let target = test::target_folder()?;
    let folder = target.join("mutants");
    let derived = Derived::of(&args.folders, &BTreeSet::new())?;
    let equivalent = equivalent::faults()?;
    let unknown = equivalent::unknown(&equivalent, &args.folders, &derived.faults);
    ensure!(unknown.is_empty(), "{} lists faults that are not there: {}", equivalent::LIST, unknown.join(", "));
    let listed = derived.faults.iter().filter(|fault| equivalent.contains_key(&fault.id)).count();
    let most = derived.faults.len() * EQUIVALENT_PERCENT / 100;
    ensure!(
        listed <= most,
        "{} lists {listed} of {} faults, and at most {most} may be there",
        equivalent::LIST,
        derived.faults.len()
    );
    let changed = args.since.as_deref().map(Changed::since).transpose()?;
    let last = survivors_of_last_run(&folder)?;
    let is_chosen = |fault: &Fault| {
        (!args.again || last.contains(&fault.id))
            && changed.as_ref().is_none_or(|changed| changed.touches(&fault.file, &fault.function_lines))
            && args.only.as_ref().is_none_or(|only| fault.id.contains(only.as_str()))
    };
    let chosen: Vec<(usize, &Fault)> = (1..).zip(&derived.faults).filter(|(_, fault)| is_chosen(fault)).collect();
    if args.list || chosen.is_empty() {
        chosen.iter().for_each(|(_, fault)| println!("{}", fault.id));
        println!("{} of {} faults are chosen", chosen.len(), derived.faults.len());
        return Ok(());
    }
    let scratch = Scratch::new(root(), &folder, target);
    let (programs, rejected) = build(&scratch, args)?;
    let stopwatch = Stopwatch::start();
    let suites = Suites::run(programs, &folder)?;
    println!("{} tests pass without a fault, in {}", suites.count(), human(stopwatch.elapsed()));
    let (left_out, planted): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|(_, fault)| rejected.contains(&fault.id) || equivalent.contains_key(&fault.id));
    let mut report = Report {
        equivalent: left_out.iter().filter(|(_, it)| equivalent.contains_key(&it.id)).count(),
        ..Report::default()
    };
    report.rejected = left_out.len() - report.equivalent;
    in_parallel::each(
        &planted,
        |(number, _)| suites.outcome(*number, args.slow),
        |(_, fault), outcome| {
            report.add(fault, outcome?);
            anyhow::Ok(())
        },
    )?;
    fs::write(folder.join(SURVIVORS), report.survivors.join("\n")).context("cannot write the survivors")?;
    report.end(args.since.is_some() || args.only.is_some() || args.again, whole)
}

/// Returns the ids of the faults that no test caught in the last run.
fn survivors_of_last_run(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    match fs::read_to_string(folder.join(SURVIVORS)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error).context("cannot read the survivors of the last run"),
    }
}

/// Outcomes of the planted faults so far.
#[derive(Default)]
struct Report {
    caught: usize,
    survivors: Vec<String>,
    equivalent: usize,
    rejected: usize,
}

impl Report {
    fn add(&mut self, fault: &Fault, outcome: Outcome) {
        let words = match outcome {
            Outcome::Caught => {
                self.caught += 1;
                return;
            }
            Outcome::Survived => "survived",
            Outcome::Unreached => "unreached",
        };
        println!("{words:<9} {:>4}  {}", fault.line, fault.id);
        self.survivors.push(fault.id.clone());
    }

    /// Prints the outcomes.
    ///
    /// # Errors
    /// If not enough faults are caught.
    fn end(&self, must_catch_all: bool, whole: Stopwatch) -> anyhow::Result<()> {
        let Self { caught, survivors, equivalent, rejected } = self;
        let (survived, planted) = (survivors.len(), caught + survivors.len());
        println!(
            "{caught} of {planted} faults caught, {survived} not; {equivalent} are equivalent, and the compiler rejects {rejected}; in {}",
            human(whole.elapsed())
        );
        let least = if must_catch_all { 100 } else { CAUGHT_PERCENT };
        ensure!(
            caught * 100 >= planted * least,
            "tests must catch {least} of 100 faults; write tests for those that are listed above, or list a fault that changes \
             nothing in {}",
            equivalent::LIST
        );
        Ok(())
    }
}

/// Builds the tests of the chosen crates with all their faults. Returns the programs, and the faults that the compiler
/// rejects.
fn build(scratch: &Scratch, args: &MutantsArgs) -> anyhow::Result<(Vec<Program>, BTreeSet<String>)> {
    let stopwatch = Stopwatch::start();
    let known = scratch.path("rejected");
    let text = fs::read_to_string(&known).unwrap_or_default();
    let mut rejected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let folders: BTreeSet<&str> = args.folders.iter().chain(&args.also).map(String::as_str).collect();
    loop {
        let derived = Derived::of(&args.folders, &rejected)?;
        scratch.write(&with_switches(&args.folders, &derived)?)?;
        match scratch.programs(&folders) {
            Ok(programs) => {
                println!("built the tests with {} faults, in {}", derived.faults.len(), human(stopwatch.elapsed()));
                return Ok((programs, rejected));
            }
            Err(NotBuilt::Failed(error)) => return Err(error),
            Err(NotBuilt::Rejected { places, words }) => {
                let before = rejected.len();
                rejected.extend(derived.at(&places));
                ensure!(rejected.len() > before, "the tests do not compile:\n{words}");
                let text: Vec<&str> = rejected.iter().map(String::as_str).collect();
                fs::write(&known, text.join("\n")).with_context(|| format!("cannot write {}", known.display()))?;
            }
        }
    }
}

/// Returns the text of each file with its switches. The root of each crate has the functions of the switches too.
fn with_switches(folders: &[String], derived: &Derived) -> anyhow::Result<BTreeMap<String, String>> {
    let texts = derived.files.iter().map(|(file, planted)| (file.clone(), planted.text.clone()));
    let mut texts = texts.collect();
    with_functions(folders, &mut texts)?;
    Ok(texts)
}

/// Adds the functions of the switches to the roots of the crates in these folders. The other files of the crates may be
/// in `texts`.
fn with_functions<'a>(
    folders: impl IntoIterator<Item = &'a String>,
    texts: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for folder in folders {
        let file = format!("{folder}/src/lib.rs");
        if !texts.contains_key(&file) {
            let text = fs::read_to_string(root().join(&file)).with_context(|| format!("cannot read {file}"))?;
            texts.insert(file.clone(), text);
        }
        // At the end, because the compiler tells the places of errors by their bytes.
        let functions = SWITCH.replace("//!", "//");
        texts.entry(file).and_modify(|text| text.push_str(&format!("\npub(crate) mod planted {{\n{functions}}}\n")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{SWITCH, switch};

    #[test]
    fn without_a_fault_the_functions_of_the_switches_change_nothing() {
        assert!(!switch::is_on(1) && !switch::is_bug("no-grace"));
        assert!(switch::less(1, &1, &2) && !switch::less(1, &2, &2));
        assert!(switch::less_or_equal(1, &2, &2) && !switch::less_or_equal(1, &3, &2));
        assert!(switch::more(1, &2, &1) && !switch::more(1, &2, &2));
        assert!(switch::more_or_equal(1, &2, &2) && !switch::more_or_equal(1, &1, &2));
        assert_eq!((switch::smaller(1, 1, 2), switch::larger(1, 1, 2)), (1, 2));
        syn::parse_file(SWITCH).expect("Rust");
    }
}
