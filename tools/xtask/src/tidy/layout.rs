//! Checks of single files: paths, length, and the declaration as a module.

use super::source::{File, Function, Tree};

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
const CORE_FUNCTION_LINES: usize = 40;
const CORE_FUNCTION_DEPTH: usize = 3;
const COMMENT_COLUMNS: usize = 120;

/// Parts of paths that exist only on one machine or at one workplace. Each text is in two pieces, so that this file
/// passes the check.
const MACHINE_PATHS: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/"), ("sha", "red/")];

/// Names of source files that Cargo knows, which need no declaration as a module.
const ROOTS: &[&str] = &["lib", "main", "mod", "build"];
/// Folders whose files Cargo treats as programs or tests, which need no declaration as a module.
const ROOT_FOLDERS: &[&str] = &["src/bin", "tests", "examples", "benches", "fuzz_targets"];

/// Folder of inputs for fuzzing, which may have any bytes at the end of a line and of a file.
const CORPUS: &str = "testing/fuzz/corpus/";

/// Files that tools generate, which are not checked.
const GENERATED: &[&str] =
    &["Cargo.lock", "tools/controlplane/go.sum", "tools/controlplane/go.mod", "tools/helm/go.sum", "tools/helm/go.mod"];

pub(super) fn modules_without_a_first_line(tree: &Tree) -> Vec<String> {
    tree.rust().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path.clone()).collect()
}

/// Returns Rust files that no other file declares as a module. The compiler ignores them, so their tests never run.
pub(super) fn orphans(tree: &Tree) -> Vec<String> {
    let is_orphan = |file: &&File| {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let name = name.trim_end_matches(".rs");
        let is_root_folder = |of: &&str| folder.strip_suffix(*of).is_some_and(|package| package.ends_with('/'));
        let is_root = ROOTS.contains(&name) || ROOT_FOLDERS.iter().any(is_root_folder);
        let declaration = format!("mod {name};");
        let parents = ROOTS.iter().map(|root| format!("{folder}/{root}.rs")).chain([format!("{folder}.rs")]);
        let mut parents = parents.filter_map(|path| tree.file(&path));
        let at_path = format!("{name}.rs\"]");
        let has_path =
            |file: &File| file.uncommented.lines().any(|line| line.contains("#[path") && line.contains(&at_path));
        !is_root && !parents.any(|parent| parent.code.contains(&declaration)) && !tree.rust().any(has_path)
    };
    tree.rust().filter(is_orphan).map(|file| file.path.clone()).collect()
}

pub(super) fn long_files(tree: &Tree) -> Vec<String> {
    let long = tree.rust().filter_map(|file| {
        let lines = file.production_lines(&file.text).count();
        (lines > FILE_LINES).then(|| format!("{}: {lines} lines", file.path))
    });
    long.collect()
}

pub(super) fn long_functions(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.rust() {
        let functions = file.functions();
        let long = functions.iter().filter(|function| function.lines > FUNCTION_LINES);
        places.extend(long.map(|it| format!("{}:{}: {} has {} lines", file.path, it.line, it.name, it.lines)));
    }
    places
}

/// Returns the functions of core that are too long or too deep for a rule that a reader checks by eye. Comments do not
/// count, so that nobody saves one.
pub(super) fn large_functions_of_core(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.sources("core") {
        let functions = file.functions();
        let is_large = |it: &&Function| it.lines_of_code > CORE_FUNCTION_LINES || it.depth > CORE_FUNCTION_DEPTH;
        let large = functions.iter().filter(|it| !it.is_for_tests).filter(is_large);
        places.extend(large.map(|it| {
            let (path, Function { name, line, lines_of_code, depth, .. }) = (&file.path, it);
            format!("{path}:{line}: {name} has {lines_of_code} lines of code and a depth of {depth}")
        }));
    }
    places
}

/// Returns comments that are wider than the limit. Lines that cannot be broken may be wide: rows of tables, addresses,
/// code, and words that are too long themselves.
pub(super) fn wide_comments(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.rust() {
        let mut is_code = false;
        for (index, (line, code)) in file.text.lines().zip(file.uncommented.lines()).enumerate() {
            let is_comment = line.trim_start().starts_with("//") && code.trim().is_empty();
            let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
            is_code = is_comment && is_code != text.starts_with("```");
            let columns = line.chars().count();
            let is_whole = is_code || text.starts_with('|') || text.contains("://");
            if is_comment && columns > COMMENT_COLUMNS && !is_whole && has_break(line, text) {
                places.push(format!("{}:{}: {columns} columns", file.path, index + 1));
            }
        }
    }
    places
}

/// True if the text, with which the line ends, has a blank at which it fits.
fn has_break(line: &str, text: &str) -> bool {
    let indentation = line.chars().count() - text.chars().count();
    text.chars().take(COMMENT_COLUMNS + 1 - indentation.min(COMMENT_COLUMNS)).any(char::is_whitespace)
}

pub(super) fn loose_ends(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in written(tree).filter(|file| !file.path.starts_with(CORPUS)) {
        for (index, line) in file.text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                places.push(format!("{}:{}", file.path, index + 1));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            places.push(format!("{}: no line end at its end", file.path));
        }
    }
    places
}

pub(super) fn machine_paths(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in written(tree) {
        for (index, line) in file.text.lines().enumerate() {
            for (first, second) in MACHINE_PATHS {
                let path = format!("{first}{second}");
                if line.match_indices(&path).any(|(at, _)| !line[..at].ends_with(goes_on)) {
                    places.push(format!("{}:{}: {path}", file.path, index + 1));
                }
            }
        }
    }
    places
}

/// True for a character that cannot be directly before a path. After such a character, the text is a part of a longer
/// name.
fn goes_on(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '}' | '>')
}

fn written(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| !GENERATED.contains(&file.path.as_str()))
}
