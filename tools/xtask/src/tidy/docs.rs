//! Checks of the tests and commands that the docs name.

use super::behaviour::{Tests, tests_of};
use super::source::{File, HISTORY, Tree};
use std::collections::BTreeSet;

/// Beginning of a marker: a comment before a block of commands. This marker names the test that runs the block, as
/// `file::test`.
const RUN_BY: &str = "<!-- run by ";
/// Beginning of the marker before a block of commands that no test runs. The reason follows.
const NOT_RUN: &str = "<!-- not run: ";
const END: &str = " -->";
/// Languages of code blocks whose commands people type.
const COMMANDS: [&str; 4] = ["sh", "bash", "console", "shell"];
/// Programs whose commands also occur in prose. A text in backquotes that begins with such a name and a blank is a
/// command.
const PROGRAMS: [&str; 4] = ["bench ", "cargo ", "fleetnet ", "kubectl "];
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
        for (number, line) in file.text.lines().enumerate() {
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

/// Returns blocks of commands without a marker. A marker names the test that runs the block, or the reason why no test
/// runs it.
pub(super) fn commands_that_nothing_runs(tree: &Tree) -> Vec<String> {
    let known = tests_of(tree);
    let mut places = Vec::new();
    for file in documents(tree) {
        let (mut before, mut is_open) = ("", false);
        for (number, line) in file.text.lines().enumerate() {
            // Remove the indentation of a block of commands in a list.
            let line = line.trim_start();
            if let Some(language) = line.strip_prefix("```") {
                is_open = !is_open;
                if is_open
                    && COMMANDS.contains(&language)
                    && let Some(wrong) = wrong(before, known)
                {
                    places.push(format!("{}:{}: {wrong}", file.path, number + 1));
                }
            }
            before = line;
        }
    }
    places
}

/// Returns commands in prose without a marker directly behind them. A marker names the test that runs the command, or
/// the reason why no test runs it.
pub(super) fn commands_in_prose_that_nothing_runs(tree: &Tree) -> Vec<String> {
    let known = tests_of(tree);
    let mut places = Vec::new();
    for file in documents(tree).filter(|file| file.path != HISTORY) {
        let mut is_block = false;
        for (number, line) in file.text.lines().enumerate() {
            is_block ^= line.trim_start().starts_with("```");
            let parts: Vec<&str> = if is_block { Vec::new() } else { line.split('`').collect() };
            for (at, code) in parts.iter().enumerate().skip(1).step_by(2) {
                let behind = parts.get(at + 1).copied().unwrap_or_default();
                let marker = behind.split_inclusive(END).next().unwrap_or_default();
                if let Some(wrong) = marked(marker, known).filter(|_| is_command(code)) {
                    places.push(format!("{}:{}: `{code}`: {wrong}", file.path, number + 1));
                }
            }
        }
    }
    places
}

/// True if the text is a command: it starts with a program, or with variables for one (`NAME=value cargo …`).
fn is_command(code: &str) -> bool {
    let is_variable = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_variable_name(name));
    match code.split_once(' ') {
        Some((word, rest)) if is_variable(word) => is_command(rest),
        _ => PROGRAMS.iter().any(|program| code.starts_with(program)),
    }
}

fn is_variable_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Returns the error if the line before a block of commands is not a valid marker. A marker names the test that runs
/// the commands, or the reason why no test runs them.
fn wrong(line: &str, known: &Tests) -> Option<String> {
    marked(line, known).map(|wrong| match wrong.as_str() {
        UNMARKED => format!("no line before it says `{RUN_BY}file::test{END}` or `{NOT_RUN}why{END}`"),
        _ => wrong,
    })
}

const UNMARKED: &str = "nothing right behind it says which test runs it, or why none does";

/// Returns the error if `marker` is not a valid marker. A marker names the test that runs the commands, or the reason
/// why no test runs them. The test must be one of `known`.
fn marked(marker: &str, known: &Tests) -> Option<String> {
    let text_after = |word: &str| marker.strip_prefix(word)?.strip_suffix(END);
    match (text_after(RUN_BY), text_after(NOT_RUN)) {
        (Some(test), _) if known.contains(test) => None,
        (Some(test), _) => Some(format!("{test} is no test")),
        (None, Some(why)) if !why.is_empty() => None,
        _ => Some(UNMARKED.to_owned()),
    }
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
