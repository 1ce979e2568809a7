//! Tests in the copy of the tree: which faults each of them reaches, and the outcome of a fault.

use super::scratch::Program;
use crate::limits::{FIRST_TESTS, LONGEST_FAULTY_TEST, QUICK_TEST};
use crate::stopwatch::Stopwatch;
use crate::{in_parallel, limited};
use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Environment variables of `switch.rs`: number of the fault that is on, and file for the numbers of those that are
/// reached.
const FAULT: &str = "FLEETNET_FAULT";
const REACHED: &str = "FLEETNET_FAULTS_REACHED";

/// Outcome of a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// A test fails.
    Caught,
    /// All tests that reach it pass.
    Survived,
    /// No test reaches it.
    Unreached,
}

/// Test of a program, with what its run without a fault showed.
#[derive(Debug)]
struct Test {
    program: Program,
    name: String,
    took: Duration,
    reached: Vec<usize>,
}

/// All tests of some programs, the quickest first.
#[derive(Debug)]
pub(super) struct Suites {
    tests: Vec<Test>,
    /// Positions of the tests that reach each fault, by its number.
    reaching: BTreeMap<usize, Vec<usize>>,
}

impl Suites {
    /// Runs each test alone and without a fault.
    ///
    /// # Errors
    /// If a test fails, because a test that fails without a fault detects nothing.
    pub(super) fn run(programs: Vec<Program>, folder: &Path) -> anyhow::Result<Self> {
        let mut names = Vec::new();
        for program in programs {
            names.extend(tests_of(&program)?.into_iter().map(|name| (program.clone(), name)));
        }
        let numbered: Vec<(usize, (Program, String))> = names.into_iter().enumerate().collect();
        let run = |(number, (program, name)): &(usize, (Program, String))| {
            let file = folder.join(format!("reached-{number}"));
            let test = run_alone(program, name, &file);
            drop(fs::remove_file(&file));
            test
        };
        let mut tests = Vec::new();
        in_parallel::each(&numbered, run, |_, test| {
            tests.push(test?);
            anyhow::Ok(())
        })?;
        tests.sort_by_key(|test| test.took);
        let mut reaching: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (position, test) in tests.iter().enumerate() {
            for fault in &test.reached {
                reaching.entry(*fault).or_default().push(position);
            }
        }
        Ok(Self { tests, reaching })
    }

    pub(super) fn count(&self) -> usize {
        self.tests.len()
    }

    /// Runs the tests that reach a fault while it is on, until one fails. Quick tests run together, first a few and
    /// then more. Slow tests run alone, and only if `with_slow` is true: random histories find a fault by chance, and a
    /// rule has tests of its own.
    pub(super) fn outcome(&self, fault: usize, with_slow: bool) -> anyhow::Result<Outcome> {
        let Some(reaching) = self.reaching.get(&fault) else { return Ok(Outcome::Unreached) };
        let tests: Vec<&Test> = reaching.iter().filter_map(|position| self.tests.get(*position)).collect();
        let (quick, slow) = tests.split_at(tests.partition_point(|test| test.took < QUICK_TEST));
        let alone = slow.chunks(1).filter(|_| with_slow);
        for tests in together(quick).into_iter().chain(alone) {
            let mut by_program: BTreeMap<&Path, Vec<&Test>> = BTreeMap::new();
            tests.iter().for_each(|test| by_program.entry(&test.program.executable).or_default().push(test));
            for tests in by_program.into_values() {
                if !pass(&tests, fault)? {
                    return Ok(Outcome::Caught);
                }
            }
        }
        Ok(Outcome::Survived)
    }
}

/// Divides tests into parts, each of which takes four times as long as the one before.
fn together<'a, 'b>(tests: &'b [&'a Test]) -> Vec<&'b [&'a Test]> {
    let (mut parts, mut rest, mut limit) = (Vec::new(), tests, FIRST_TESTS);
    while !rest.is_empty() {
        let mut sum = Duration::ZERO;
        let count = rest.iter().take_while(|test| {
            sum += test.took;
            sum <= limit
        });
        let (part, others) = rest.split_at(count.count().max(1));
        parts.push(part);
        (rest, limit) = (others, limit * 4);
    }
    parts
}

fn run_alone(program: &Program, name: &str, file: &Path) -> anyhow::Result<Test> {
    let mut command = command(program, &[name]);
    command.env(REACHED, file);
    let stopwatch = Stopwatch::start();
    ensure!(ends_well(command)?, "the test {name} of {} fails without any fault", program.executable.display());
    let took = stopwatch.elapsed();
    let reached = fs::read_to_string(file).unwrap_or_default();
    let reached = reached.lines().map(str::parse).collect::<Result<_, _>>().context("a number of a fault")?;
    Ok(Test { program: program.clone(), name: name.to_owned(), took, reached })
}

/// True if these tests of one program pass within the time limit while a fault is on.
fn pass(tests: &[&Test], fault: usize) -> anyhow::Result<bool> {
    let Some(first) = tests.first() else { return Ok(true) };
    let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    let mut command = command(&first.program, &names);
    // A property that fails shows that the fault is caught. Nobody reads its smallest input.
    command.env(FAULT, fault.to_string()).env("PROPTEST_MAX_SHRINK_ITERS", "0");
    ends_well(command)
}

fn command(program: &Program, tests: &[&str]) -> Command {
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.args(["--exact", "--quiet"]).args(tests);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn ends_well(mut command: Command) -> anyhow::Result<bool> {
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    Ok(limited::wait(&mut child, LONGEST_FAULTY_TEST)?.is_some_and(|status| status.success()))
}

/// Returns the paths of a program's tests.
fn tests_of(program: &Program) -> anyhow::Result<Vec<String>> {
    let output = Command::new(&program.executable).args(["--list", "--format", "terse"]).output();
    let output = output.with_context(|| format!("cannot run {}", program.executable.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{FIRST_TESTS, Program, Test, together};

    #[test]
    fn each_part_takes_four_times_as_long_as_the_one_before_and_a_long_test_is_a_part_alone() {
        let test = |took| Test { program: Program::default(), name: String::new(), took, reached: Vec::new() };
        let half = FIRST_TESTS / 2;
        let tests: Vec<Test> = [half; 12].into_iter().chain([FIRST_TESTS * 100]).map(test).collect();
        let tests: Vec<&Test> = tests.iter().collect();
        let counts: Vec<usize> = together(&tests).into_iter().map(<[&Test]>::len).collect();
        assert_eq!(counts, [2, 8, 2, 1]);
        assert_eq!(together(&[]).len(), 0);
    }
}
