//! Checks of the tests and commands that the docs name.

use super::behaviour::tests_of;
use super::source::{File, Tree};
use programs::docs::{Runner, blocks};
use std::collections::BTreeSet;

/// Page with the steps to add something.
const STEPS: &str = "CONTRIBUTING.md";
/// Languages of code blocks whose commands people type.
const COMMANDS: [&str; 4] = ["sh", "bash", "console", "shell"];
const SILENT: &str = "its info string says neither `run=file::test` nor `not-run=\"why\"`";
/// Minimum number of underscores after `::` in the name of a test in the docs. Names of tests are sentences, so a name
/// with fewer underscores is the name of something else.
const SENTENCE: usize = 3;

/// Returns names in the docs that should be tests but do not exist: in a column of tests, or as `file::test` anywhere.
pub(super) fn tests_that_are_not_there(tree: &Tree) -> Vec<String> {
    let known = tests_of(tree);
    let bare: BTreeSet<&str> = known.iter().filter_map(|test| Some(test.split_once("::")?.1)).collect();
    let mut places = Vec::new();
    for file in documents(tree) {
        let mut of_tests = false;
        // An info string names its test without backquotes.
        for (number, line) in file.text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("```")) {
            let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
            let last = cells.and_then(|cells| cells.rsplit(" | ").next()).unwrap_or_default();
            of_tests = line.starts_with('|') && (of_tests || last == "test");
            let in_column = if of_tests { quoted(last) } else { Vec::new() };
            let is_sentence = |code: &&str| code.split_once("::").is_some_and(|(_, name)| sentence(name));
            let anywhere = quoted(line).into_iter().filter(is_sentence);
            let named: BTreeSet<&str> = in_column.into_iter().filter(|code| is_name(code)).chain(anywhere).collect();
            let unknown = named.into_iter().filter(|test| !known.contains(*test) && !bare.contains(test));
            places.extend(unknown.map(|test| format!("{}:{}: {test}", file.path, number + 1)));
        }
    }
    places
}

/// Returns blocks of commands whose info string names neither a test that runs the block nor the reason why no test
/// does. A block in another language needs neither, but what its info string says must be right too.
pub(super) fn commands_that_nothing_runs(tree: &Tree) -> Vec<String> {
    let known = tests_of(tree);
    let mut places = Vec::new();
    for file in documents(tree) {
        for block in blocks(&file.text) {
            let wrong = match block.runner {
                Runner::Test(test) => (!known.contains(test)).then(|| format!("{test} is no test")),
                Runner::NotRun(reason) => reason.trim().is_empty().then(|| SILENT.to_owned()),
                Runner::Other("") if !COMMANDS.contains(&block.language) => None,
                Runner::Other(_) => Some(SILENT.to_owned()),
            };
            places.extend(wrong.map(|wrong| format!("{}:{}: {wrong}", file.path, block.line)));
        }
    }
    places
}

/// Returns the steps of CONTRIBUTING.md whose file does not contain what the step says. Such a step begins with
/// ``1. `FILE` (`TEXT`)``.
pub(super) fn steps_that_are_not_there(tree: &Tree) -> Vec<String> {
    let (mut places, mut steps) = (Vec::new(), 0);
    for (number, line) in tree.file(STEPS).into_iter().flat_map(|page| page.text.lines().enumerate()) {
        let Some((_, step)) = line.split_once(". `") else { continue };
        let Some((path, Some((text, _)))) = step.split_once("` (`").map(|(path, rest)| (path, rest.split_once("`)")))
        else {
            continue;
        };
        steps += 1;
        if tree.file(path).is_none_or(|file| !file.text.contains(text)) {
            places.push(format!("{STEPS}:{}: {path} has no {text}", number + 1));
        }
    }
    if steps == 0 && tree.file(STEPS).is_some() {
        places.push(format!("{STEPS}: no step names a file and its text"));
    }
    places
}

fn documents(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.path.ends_with(".md"))
}

/// Returns the texts between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_name(code: &str) -> bool {
    let name = code.rsplit("::").next().unwrap_or_default();
    name.contains('_') && code.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':'))
}

fn sentence(name: &str) -> bool {
    name.matches('_').count() >= SENTENCE && is_name(name)
}
