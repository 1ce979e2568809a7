//! Checks that docs/contributors/behaviour.md agrees with the source tree.

use super::source::{self, File, Row, Tests, Tree};
use std::collections::BTreeSet;

const DOCUMENT: &str = "docs/contributors/behaviour.md";

/// Folder of the scenarios: functions that tests run on a fleet.
const SCENARIOS: &str = "testing/scenarios/src/";
/// Beginnings of the paths in [`SCENARIOS`] whose files have no scenarios.
const NO_SCENARIOS: [&str; 3] = ["conformance", "environment", "snapshot.rs"];
/// Files of the scenarios that run on both backends.
const SHARED: [&str; 7] = ["main_job", "announced", "carried", "conflicts", "deletion", "trust", "definitions"];
/// Scenario that needs the CRDs of earlier versions, which only memkube gets.
const OF_EARLIER_VERSIONS: &str = "go_form_fields_of_a_rich_service_arrive";
/// Folders of the tests that run scenarios, one for each backend.
const RUNNERS: [&str; 2] = ["testing/scenarios/tests/", "testing/sim/tests/"];

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
        let unknown = row.tests.iter().filter(|test| !known.contains(*test));
        places.extend(unknown.map(|test| place(&format!("names {test}, which is no test"))));
    }
    places
}

/// Returns the scenarios that the tests of a backend leave out. A scenario has a sentence as its name.
pub(super) fn scenarios_on_one_backend(tree: &Tree) -> Vec<String> {
    let files = tree.rust().filter(|file| SHARED.iter().any(|name| file.path == format!("{SCENARIOS}{name}.rs")));
    let scenarios = files.flat_map(|file| file.functions().into_iter().map(move |function| (file, function.name)));
    let mut places = Vec::new();
    let is_shared = |name: &str| name.matches('_').count() > 3 && name != OF_EARLIER_VERSIONS;
    for (file, name) in scenarios.filter(|(_, name)| is_shared(name)) {
        for runner in RUNNERS {
            let mut tests = tree.rust().filter(|file| file.path.starts_with(runner));
            if !tests.any(|test| source::contains_words(&test.code, &name)) {
                places.push(format!("{}: no test below {runner} runs {name}", file.path));
            }
        }
    }
    places
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
        let in_scenarios = file.path.strip_prefix(SCENARIOS);
        let has_scenes = in_scenarios.is_some_and(|path| !NO_SCENARIOS.iter().any(|other| path.starts_with(other)));
        for function in file.functions() {
            if function.is_test || has_scenes && is_run(&function.name) {
                tests.insert(format!("{stem}::{}", function.name));
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
