//! Command `cargo xtask test`: runs all tests of the project. The cheapest suites run first.
//!
//! Every call of Cargo is for the whole workspace and selects targets, never packages. Features of dependencies
//! depend on the selected packages, and another selection would build kube and tokio a second time.
//!
//! Cargo builds the test programs, and this command runs the programs. So this command knows the time of each test, and
//! can name and end a test that hangs.

mod play;
mod select;
mod test_program;
mod times;

use crate::stopwatch::human;
use crate::{limited, tidy};
use anyhow::{Context as _, ensure};
use play::{Manner, Played};
use programs::cargo;
use programs::control_plane::{self, Program};
use programs::prometheus::Prometheus;
use programs::tinyproxy;
use programs::{chromium, coredns, helm, playwright};
pub(crate) use select::Selection;
use serde_json::Value;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::time::Duration;
use test_program::TestProgram;
use times::Times;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Leave out the end-to-end suite, which starts control planes and other processes and plays every crash point.
    #[arg(long)]
    fast: bool,
    #[command(flatten)]
    selection: Selection,
}

/// Packages whose integration tests make up the end-to-end suite. These tests start processes and wait for them in real
/// time.
const END_TO_END: [&str; 3] = ["scenarios", "fleetnet", "packets"];
/// Programs of other packages that also belong to the end-to-end suite.
///
/// Each of these programs simulates many whole fleets: one for every write at which an agent can crash, one for every
/// seed, or one for every random change. In the fast suite, which takes a minute, each would need a third of the time.
const LONG: [&str; 4] = ["crash_points", "explain_on_memkube", "model", "seeds"];
/// Programs of the end-to-end suite that run one after the other, while other programs run at the same time. Programs
/// that are not here are one more such row. The tests of most programs wait for a fleet, so they leave time to the
/// programs that compute.
const ROWS: [&[&str]; 2] = [&["packets", "sandbox", "verbs"], &LONG];
/// Time without a finished test after which a program of the fast suite is ended. Each test of this suite takes only
/// seconds, even on a busy machine.
const FAST_SILENCE: Duration = Duration::from_secs(180);
/// Time without a finished test after which a program of the end-to-end suite is ended. Longer than the limits inside
/// the tests.
const END_TO_END_SILENCE: Duration = Duration::from_secs(40 * 60);
/// Environment variable with the seed of random numbers in proptest. A fixed seed makes a failure reproducible on
/// another machine.
const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";
/// Time limit for running all code examples in docs, including their build.
const EXAMPLES: Duration = Duration::from_secs(20 * 60);
/// Programs of other projects that end-to-end tests use. Their builds need no test program of ours, so a run of all
/// tests starts them first, beside its own builds.
const FOREIGN: [Foreign; 7] = [
    Foreign { name: "control plane", users: None, find: || control_plane::locate(Program::ApiServer).map(drop) },
    Foreign {
        name: "Helm",
        users: Some(&["charts::", "first_day::", "observability::", "release::"]),
        find: || helm::locate().map(drop),
    },
    Foreign { name: "CoreDNS", users: Some(&["mcs::dns::"]), find: || coredns::locate().map(drop) },
    Foreign {
        name: "Prometheus",
        users: Some(&["alerts::", "observability::"]),
        find: || Prometheus::locate().map(drop),
    },
    Foreign {
        name: "Tinyproxy",
        users: Some(&["observability::", "proxies::"]),
        find: || tinyproxy::locate().map(drop),
    },
    Foreign { name: "Chromium", users: Some(BROWSER), find: || chromium::locate().map(drop) },
    Foreign { name: "Playwright", users: Some(BROWSER), find: || playwright::locate().map(drop) },
];
/// Modules with the tests of the page in a browser.
const BROWSER: &[&str] = &["browser::", "pictures::"];
/// Number of end-to-end tests that run in parallel. These tests mostly wait, for events in a fleet or for a free fleet.
const END_TO_END_THREADS: usize = 4;

/// Program of another project that end-to-end tests use.
struct Foreign {
    name: &'static str,
    /// Modules with the tests that use it, or `None` for all tests. Other tests that use it find it then, or build it
    /// themselves.
    users: Option<&'static [&'static str]>,
    /// Builds or downloads the program, unless an earlier call did.
    find: fn() -> anyhow::Result<()>,
}

/// Runs the suites until one suite fails. Prints the duration of each suite, and the slowest tests.
///
/// # Errors
/// If a suite fails.
pub(crate) fn run(arguments: &TestArgs) -> anyhow::Result<()> {
    let mut times = Times::default();
    let outcome = suites(arguments, &mut times);
    times.print();
    outcome
}

fn suites(arguments: &TestArgs, times: &mut Times) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        // A failed build is reported by the end-to-end suite, which calls the same functions again.
        if arguments.selection.has_the_rest() && !arguments.fast {
            scope.spawn(|| FOREIGN.iter().try_for_each(|foreign| (foreign.find)()));
        }
        selected_suites(arguments, times)
    })
}

fn selected_suites(arguments: &TestArgs, times: &mut Times) -> anyhow::Result<()> {
    let TestArgs { fast: only_fast, selection } = arguments;
    let Suites { units, fast, end_to_end } = Suites::of(&metadata()?)?.narrowed(selection);
    if selection.has_the_rest() {
        times.measure("tidy", tidy::run)?;
    }
    let seed = std::env::var(SEED_VARIABLE).unwrap_or_else(|_| RandomState::new().hash_one(()).to_string());
    println!("{SEED_VARIABLE}={seed} replays the properties that have no seed of their own");
    let units: &[&str] = if units { &["--lib", "--bins"] } else { &[] };
    let fast = with_targets(units, &fast);
    let fast = times.measure("build", || test_program::build(&fast))?;
    let at_once = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let manner = Manner { threads: at_once, silence: FAST_SILENCE, times: None, variables: &[(SEED_VARIABLE, &seed)] };
    let mut played = std::thread::scope(|scope| {
        let examples = selection.has_the_rest().then(|| {
            scope.spawn(|| {
                let mut times = Times::default();
                let outcome = times.measure("examples in docs", examples);
                (times, outcome)
            })
        });
        let played = suite(times, "fast suite", &halves(&fast), selection, manner);
        let Some(examples) = examples else { return played };
        let (of_examples, outcome) = examples.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        times.append(of_examples);
        played.and_then(|played| outcome.map(|()| played))
    })?;
    if !only_fast {
        played += end_to_end_suite(selection, times, &end_to_end)?;
    }
    ensure!(played > 0, "no test is selected by {}", selection.description());
    Ok(())
}

fn end_to_end_suite(selection: &Selection, times: &mut Times, names: &[String]) -> anyhow::Result<usize> {
    let tests = with_targets(&[], names);
    let programs = times.measure("end-to-end build", || test_program::build(&tests))?;
    if !programs.iter().any(|program| program.tests.iter().any(|test| selection.has(&program.name, test))) {
        return Ok(0);
    }
    for Foreign { name, users, find } in &FOREIGN {
        let is_user = |test: &String| users.is_none_or(|users| users.iter().any(|module| test.starts_with(module)));
        let has_user = |it: &TestProgram| it.tests.iter().any(|test| is_user(test) && selection.has(&it.name, test));
        if programs.iter().any(has_user) {
            times.measure(name, find)?;
        }
    }
    // Build the agents: the end-to-end tests start them as processes, and a build of the tests does not include the
    // agents.
    times.measure("agents", || cargo::run(&["build", "--workspace", "--features", cargo::FEATURES, "--bins"]))?;
    let folder = target_folder()?;
    let own_times = folder.join("end-to-end-times");
    std::fs::create_dir_all(&own_times).with_context(|| format!("cannot create {}", own_times.display()))?;
    let manner =
        Manner { threads: END_TO_END_THREADS, silence: END_TO_END_SILENCE, times: Some(&own_times), variables: &[] };
    suite(times, "end-to-end suite", &rows(&programs), selection, manner)
}

/// Divides the programs of the fast suite into two rows with about the same number of tests. While the last tests of
/// one program run, the other row has tests for the processors that are free.
fn halves(programs: &[TestProgram]) -> [Vec<&TestProgram>; 2] {
    let number = |row: &Vec<&TestProgram>| row.iter().map(|program| program.tests.len()).sum::<usize>();
    let mut ordered: Vec<&TestProgram> = programs.iter().collect();
    ordered.sort_by_key(|program| std::cmp::Reverse(program.tests.len()));
    ordered.into_iter().fold([Vec::new(), Vec::new()], |[mut one, mut other], program| {
        if number(&one) <= number(&other) {
            one.push(program);
        } else {
            other.push(program);
        }
        [one, other]
    })
}

/// Divides the programs of the end-to-end suite into rows ([`ROWS`]), in the order in which each row runs them.
fn rows(programs: &[TestProgram]) -> Vec<Vec<&TestProgram>> {
    let named =
        |names: &[&str]| names.iter().flat_map(|name| programs.iter().filter(move |it| it.name == *name)).collect();
    let is_named = |program: &&TestProgram| ROWS.iter().any(|row| row.contains(&program.name.as_str()));
    let others = programs.iter().filter(|program| !is_named(program)).collect();
    ROWS.map(named).into_iter().chain([others]).collect()
}

/// Runs the selected tests of all programs of a suite: the programs of a row one after the other, and all rows at the
/// same time. Returns the number of selected tests.
fn suite(
    times: &mut Times,
    name: &'static str,
    rows: &[Vec<&TestProgram>],
    selection: &Selection,
    manner: Manner<'_>,
) -> anyhow::Result<usize> {
    let (mut count, mut failed, mut tests_times) = (0, Vec::new(), Vec::new());
    let outcome = times.measure(name, || {
        let played = std::thread::scope(|scope| {
            let rows: Vec<_> = rows.iter().map(|row| scope.spawn(|| play_row(row, selection, manner))).collect();
            let ended = rows.into_iter().map(|row| row.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            ended.collect::<Vec<_>>()
        });
        for (program, tests, played) in played.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten() {
            count += tests;
            let full = |test: String| format!("{program}::{test}");
            failed.extend(played.failed.into_iter().map(full));
            tests_times.extend(played.times.into_iter().map(|(test, time)| (full(test), time)));
        }
        ensure!(
            failed.is_empty(),
            "{} of {count} tests of the {name} failed:\n  {}",
            failed.len(),
            failed.join("\n  ")
        );
        Ok(())
    });
    times.add_tests(tests_times);
    outcome.map(|()| count)
}

/// Runs the selected tests of some programs, one program after the other. Returns the name of each program, the number
/// of its selected tests, and their results.
fn play_row(
    programs: &[&TestProgram],
    selection: &Selection,
    manner: Manner<'_>,
) -> anyhow::Result<Vec<(String, usize, Played)>> {
    let mut results = Vec::new();
    for program in programs {
        let tests = program.tests.iter().map(String::as_str);
        let tests: Vec<&str> = tests.filter(|test| selection.has(&program.name, test)).collect();
        if !tests.is_empty() {
            results.push((program.name.clone(), tests.len(), play::play(program, &tests, manner)?));
        }
    }
    Ok(results)
}

fn examples() -> anyhow::Result<()> {
    let arguments = ["test", "--quiet", "--workspace", "--features", cargo::FEATURES, "--doc"];
    let mut child = cargo::command(&arguments).spawn().context("cannot call cargo")?;
    let status = limited::wait(&mut child, EXAMPLES)?;
    let status = status.with_context(|| format!("the examples in docs take longer than {}", human(EXAMPLES)))?;
    ensure!(status.success(), "the examples in docs failed ({status})");
    Ok(())
}

/// Test programs of each suite: names of integration tests, and whether unit tests belong to the fast suite.
#[derive(Debug, Eq, PartialEq)]
struct Suites {
    /// True if the suite includes the tests inside libraries and binaries.
    units: bool,
    fast: Vec<String>,
    end_to_end: Vec<String>,
}

impl Suites {
    fn of(metadata: &Value) -> anyhow::Result<Self> {
        let mut suites = Self { units: true, fast: Vec::new(), end_to_end: Vec::new() };
        for package in list(metadata, "packages") {
            let is_end_to_end = END_TO_END.iter().any(|name| package["name"] == *name);
            let tests = list(package, "targets").filter(|target| target["kind"][0] == "test");
            for name in tests.filter_map(|target| target["name"].as_str()) {
                let is_long = is_end_to_end || LONG.contains(&name);
                let suite = if is_long { &mut suites.end_to_end } else { &mut suites.fast };
                suite.push(name.to_owned());
            }
        }
        let twice = suites.end_to_end.iter().find(|name| suites.fast.contains(name));
        ensure!(twice.is_none(), "{END_TO_END:?} and another package both have tests named {twice:?}: rename one");
        ensure!(!suites.end_to_end.is_empty(), "{END_TO_END:?} have no tests");
        Ok(suites)
    }

    /// If the pattern of `--only` begins with the name of an integration test program, drops all other programs.
    fn narrowed(mut self, selection: &Selection) -> Self {
        let named = |suite: &[String]| suite.iter().find(|name| selection.program() == Some(name.as_str())).cloned();
        if let Some(program) = named(&self.fast).or_else(|| named(&self.end_to_end)) {
            self.units = false;
            self.fast.retain(|name| *name == program);
            self.end_to_end.retain(|name| *name == program);
        }
        self
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn with_targets<'a>(arguments: &[&'a str], tests: &'a [String]) -> Vec<&'a str> {
    let targets = tests.iter().flat_map(|name| ["--test", name.as_str()]);
    arguments.iter().copied().chain(targets).collect()
}

/// Returns Cargo's metadata of the workspace's packages.
pub(crate) fn metadata() -> anyhow::Result<Value> {
    let output =
        cargo::command(&["metadata", "--no-deps", "--format-version", "1"]).output().context("cannot call cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

/// Returns Cargo's target folder.
pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target_directory")?;
    Ok(PathBuf::from(target))
}

#[cfg(test)]
mod tests {
    use super::{Selection, Suites};
    use clap::Parser as _;
    use serde_json::{Value, json};

    fn metadata(end_to_end: &str) -> Value {
        json!({"packages": [
            {"name": "fleetnet-core", "targets": [{"name": "fleetnet_core", "kind": ["lib"]}, {"name": "rules", "kind": ["test"]}]},
            {"name": "scenarios", "targets": [{"name": end_to_end, "kind": ["test"]}, {"name": "helper", "kind": ["bin"]}]},
        ]})
    }

    #[test]
    fn a_long_program_is_in_the_end_to_end_suite() {
        let mut metadata = metadata("main_job");
        metadata["packages"][0]["targets"][1]["name"] = "crash_points".into();
        let suites = Suites::of(&metadata).expect("two suites");
        assert_eq!((suites.fast, suites.end_to_end), (vec![], vec!["crash_points".to_owned(), "main_job".to_owned()]));
    }

    #[test]
    fn every_integration_test_is_in_one_suite() {
        let suites = Suites::of(&metadata("main_job")).expect("two suites");
        let expected = Suites { units: true, fast: vec!["rules".to_owned()], end_to_end: vec!["main_job".to_owned()] };
        assert_eq!(suites, expected);
    }

    /// Command line that has only the flags of a selection, for the tests below.
    #[derive(clap::Parser)]
    struct CommandLine {
        #[command(flatten)]
        selection: Selection,
    }

    #[test]
    fn a_pattern_that_begins_with_a_program_builds_no_other() {
        let narrowed = |pattern: &str| {
            let line = CommandLine::parse_from(["test", "--only", pattern]);
            Suites::of(&metadata("main_job")).expect("two suites").narrowed(&line.selection)
        };
        let nothing = Vec::<String>::new;
        let rules = Suites { units: false, fast: vec!["rules".to_owned()], end_to_end: nothing() };
        assert_eq!(narrowed("rules::claims::"), rules);
        let main_job = Suites { units: false, fast: nothing(), end_to_end: vec!["main_job".to_owned()] };
        assert_eq!(narrowed("main_job::a"), main_job);
        for all in ["rules", "claims::a", "a_rule"] {
            assert_eq!(narrowed(all), Suites::of(&metadata("main_job")).expect("two suites"), "{all}");
        }
    }

    #[test]
    fn each_program_of_a_row_is_in_the_end_to_end_suite() {
        let suites = Suites::of(&super::metadata().expect("metadata of this workspace")).expect("suites");
        let named: Vec<&str> = super::ROWS.concat();
        let is_missing = |name: &&&str| !suites.end_to_end.iter().any(|program| program == *name);
        assert_eq!(named.iter().filter(is_missing).collect::<Vec<_>>(), [""; 0].iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_name_that_is_in_both_suites_is_rejected() {
        let error = Suites::of(&metadata("rules")).expect_err("one name for two").to_string();
        assert!(error.contains("both have tests named Some(\"rules\")"), "{error}");
    }
}
