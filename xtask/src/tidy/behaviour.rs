//! Checks that docs/contributors/behaviour.md and the marks of faults (deliberate errors) agree with the source tree.

use super::source::{self, File, Tree};
use crate::mutants::Planned;
use crate::mutants::mark::{self, Fault};
use anyhow::Context as _;
use std::collections::{BTreeMap, BTreeSet};

const DOCUMENT: &str = "docs/contributors/behaviour.md";

/// Rule in docs/contributors/behaviour.md: a row of a table whose last column names tests.
pub(super) struct Row {
    id: String,
    line: usize,
    /// Tests of the rule, as `file::test`.
    tests: Vec<String>,
}

/// Tests and scenarios, as `file::name`. The value is the folders of the packages that have a test of this name. A scenario is
/// included only if a test runs it.
pub(super) type Tests = BTreeMap<String, BTreeSet<String>>;

/// Folder of the scenarios: functions that tests run on a fleet.
const SCENARIOS: &str = "tests/src/scenarios/";
/// Files with tests that run scenarios, and the file with the macros for such tests.
const RUNNERS: [&str; 3] = ["tests/src/scenarios.rs", "tests/tests/", "sim/tests/"];

pub(super) fn rules_without_tests(tree: &Tree) -> Vec<String> {
    let known = tests_of(tree);
    let mut places = Vec::new();
    let mut ids = BTreeSet::new();
    for row in rows_of(tree) {
        let place = |what: &str| format!("{DOCUMENT}:{}: {} {what}", row.line, row.id);
        if !ids.insert(row.id.clone()) {
            places.push(place("is there twice"));
        }
        if row.tests.is_empty() {
            places.push(place("names no test"));
        }
        let unknown = row.tests.iter().filter(|test| !known.contains_key(*test));
        places.extend(unknown.map(|test| place(&format!("names {test}, which is no test"))));
    }
    places
}

pub(super) fn rules_of_core_without_faults(tree: &Tree) -> Vec<String> {
    let (known, faults) = (tests_of(tree), faults(tree).unwrap_or_default());
    let faulty: BTreeSet<&str> = faults.iter().map(Fault::rule).collect();
    let of_core = |row: &Row| row.tests.iter().any(|test| known.get(test).is_some_and(|it| it.contains("core")));
    let without = rows_of(tree).iter().filter(|row| of_core(row) && !faulty.contains(row.id.as_str()));
    without.map(|row| format!("{DOCUMENT}:{}: {}", row.line, row.id)).collect()
}

pub(super) fn faults_that_cannot_be_planted(tree: &Tree) -> Vec<String> {
    let faults = match faults(tree) {
        Ok(faults) => faults,
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut ids = BTreeSet::new();
    let mut places = Vec::new();
    for fault in faults {
        let place = format!("{}:{}: {}", fault.file, fault.line, fault.id);
        if !ids.insert(fault.id.clone()) {
            places.push(format!("{place}: another mark has this id"));
        }
        let applied = tree.file(&fault.file).map_or(Ok(String::new()), |file| fault.applied(&file.text));
        places.extend(applied.err().map(|error| format!("{place}: {error}")));
        places.extend(tests_of_fault(tree, &fault).err().map(|error| format!("{place}: {error}")));
    }
    places
}

/// Returns all faults (deliberate errors) that comments in the source describe, each with its tests.
///
/// # Errors
/// If such a comment is malformed, or its fault has no test. The error is about the first such comment.
pub(super) fn planned_faults(tree: &Tree) -> anyhow::Result<Vec<Planned>> {
    let planned = faults(tree)?.into_iter().map(|fault| {
        let tests = tests_of_fault(tree, &fault).with_context(|| format!("{}:{}", fault.file, fault.line))?;
        Ok(Planned { fault, tests })
    });
    planned.collect()
}

fn faults(tree: &Tree) -> anyhow::Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for file in tree.rust().filter(|file| !file.path.starts_with("xtask/")) {
        faults.extend(mark::faults_of(&file.path, &file.text)?);
    }
    Ok(faults)
}

/// Returns the tests that must detect a fault (a deliberate error), as (folder of the package, `file::test`).
///
/// If the comment that describes the fault names a test, returns this test. Otherwise returns the tests of the fault's rule
/// that are in the fault's package.
fn tests_of_fault(tree: &Tree, fault: &Fault) -> anyhow::Result<Vec<(String, String)>> {
    let known = tests_of(tree);
    if let Some(test) = &fault.test {
        let folders = known.get(test).with_context(|| format!("{test} is no test"))?;
        let own = folders.get(fault.folder()).or_else(|| folders.first());
        return Ok(own.map(|folder| (folder.clone(), test.clone())).into_iter().collect());
    }
    let row = rows_of(tree).iter().find(|row| row.id == fault.rule());
    let row = row.with_context(|| format!("{DOCUMENT} has no rule {}; name a test in the mark", fault.rule()))?;
    let is_own = |test: &&String| known.get(*test).is_some_and(|folders| folders.contains(fault.folder()));
    let tests: Vec<_> = row.tests.iter().filter(is_own).map(|test| (fault.folder().to_owned(), test.clone())).collect();
    anyhow::ensure!(!tests.is_empty(), "rule {} has no test in {}; name one in the mark", row.id, fault.folder());
    Ok(tests)
}

/// Returns all tests, and all scenarios that a test runs.
pub(super) fn tests_of(tree: &Tree) -> &Tests {
    tree.tests.get_or_init(|| collect(tree))
}

fn collect(tree: &Tree) -> Tests {
    let mut tests = Tests::new();
    let is_runner = |file: &&File| RUNNERS.iter().any(|runner| file.path.starts_with(runner));
    let runners: Vec<&File> = tree.rust().filter(is_runner).collect();
    let is_run = |name: &str| runners.iter().any(|runner| source::contains_words(&runner.code, name));
    for file in tree.rust() {
        let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        let folder = file.path.split('/').next().unwrap_or_default();
        let has_scenes = file.path.starts_with(SCENARIOS);
        for function in file.functions() {
            if function.is_test || has_scenes && is_run(&function.name) {
                tests.entry(format!("{stem}::{}", function.name)).or_default().insert(folder.to_owned());
            }
        }
    }
    tests
}

fn rows_of(tree: &Tree) -> &[Row] {
    tree.rows.get_or_init(|| rows(tree))
}

/// Returns the rows of all tables in docs/contributors/behaviour.md whose last column names tests.
fn rows(tree: &Tree) -> Vec<Row> {
    let Some(document) = tree.file(DOCUMENT) else { return Vec::new() };
    let mut rows = Vec::new();
    let mut of_rules = false;
    for (index, line) in document.text.lines().enumerate() {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            of_rules &= line.starts_with('|');
            continue;
        };
        let last = cells.rsplit(" | ").next().unwrap_or_default();
        if last == "test" {
            of_rules = true;
        } else if of_rules {
            let id = cells.split(" | ").next().unwrap_or_default().to_owned();
            rows.push(Row { id, line: index + 1, tests: tests(last) });
        }
    }
    rows
}

/// Returns the names of tests between backquotes in a cell.
fn tests(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).filter(|code| code.contains("::")).map(str::to_owned).collect()
}
