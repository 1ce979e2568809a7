//! Source tree as the checks read it: its text files, and the comments, strings and tests of its Rust files.

use super::depth;
use anyhow::Context as _;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Names of files and folders that the checks ignore. In a linked work tree of git, `.git` is a file. cargo-fuzz writes
/// `artifacts` and `coverage`.
const LEFT_OUT: &[&str] = &[".git", "target", "artifacts", "coverage", "node_modules"];

/// Document that may name commands, files and bugs that no longer exist, because it describes earlier versions.
pub(super) const HISTORY: &str = "CHANGELOG.md";

/// Last commit that may have any subject.
const BEFORE: &str = "b996e494";

/// Text files of the work tree, ordered by path.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// All tests of the tree, found when a check first asks for them.
    pub(super) tests: OnceCell<Tests>,
    /// Rows of docs/contributors/behaviour.md, read when a check first asks for them.
    pub(super) rows: OnceCell<Vec<Row>>,
    /// Subjects of the commits that a rule checks, one a line.
    pub(super) subjects: String,
}

pub(super) struct File {
    /// Path of the file from the root, with `/` between folders.
    pub(super) path: String,
    pub(super) text: String,
    /// For Rust files: the text with comments replaced by blanks.
    pub(super) uncommented: String,
    /// For Rust files: the text with comments, strings and characters replaced by blanks.
    pub(super) code: String,
    /// For Rust files: the ranges that are compiled for tests only.
    tests: Vec<Range<usize>>,
    /// True if the whole file is compiled for tests only.
    only_test: bool,
}

/// Function with a body, in a Rust file.
pub(super) struct Function {
    pub(super) name: String,
    /// Line of the function's `fn`, from 1.
    pub(super) line: usize,
    /// Number of the function's lines, from `fn` to its last brace.
    pub(super) lines: usize,
    /// The same without blank lines and lines of comments.
    pub(super) lines_of_code: usize,
    /// Number of blocks of control flow and closures that are nested in the function.
    pub(super) depth: usize,
    /// True if the function has the attribute `#[test]` or `#[tokio::test]`.
    pub(super) is_test: bool,
    /// True if the function is compiled for tests only.
    pub(super) is_for_tests: bool,
}

/// Rule in docs/contributors/behaviour.md: a row of a table whose last column names tests.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) line: usize,
    /// Tests of the rule, as `file::test`.
    pub(super) tests: Vec<String>,
}

/// Tests and scenarios, as `file::name`. A scenario is included only if a test runs it.
pub(super) type Tests = BTreeSet<String>;

impl Tree {
    /// Reads all text files below `root`.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        Ok(Self { subjects: subjects(root), ..Self::of(texts(root)?) })
    }

    /// Returns a tree with these paths and texts, for tests.
    pub(super) fn of(mut texts: Vec<(String, String)>) -> Self {
        texts.sort();
        let mut files: Vec<File> = texts.into_iter().map(|(path, text)| File::new(path, text)).collect();
        let test_modules: BTreeSet<String> = files.iter().flat_map(File::test_modules).collect();
        for file in &mut files {
            let below = |module: &String| file.path.starts_with(&format!("{}/", module.trim_end_matches(".rs")));
            file.only_test |= test_modules.contains(&file.path) || test_modules.iter().any(below);
        }
        Self { files, tests: OnceCell::new(), rows: OnceCell::new(), subjects: String::new() }
    }

    /// Returns all files.
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Returns the Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// Returns the Rust files of a crate's library and binaries. `folder` is the folder of the crate.
    pub(super) fn sources(&self, folder: &str) -> impl Iterator<Item = &File> {
        let prefix = format!("{folder}/src/");
        self.rust().filter(move |file| file.path.starts_with(&prefix) && !file.only_test)
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    fn new(path: String, text: String) -> Self {
        let rust = path.ends_with(".rs");
        let (uncommented, code) = if rust { (mask(&text, false), mask(&text, true)) } else { Default::default() };
        let tests = test_items(&code);
        let only_test = path.contains("/tests/") || path.contains("/benches/");
        Self { path, text, uncommented, code, tests, only_test }
    }

    /// Returns the lines of production code in `of`, each with its number from 1. Lines that are compiled for tests
    /// only are left out. `of` is `text`, `uncommented` or `code`.
    pub(super) fn production_lines<'a>(&'a self, of: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        let mut begin = 0;
        of.split('\n').enumerate().filter_map(move |(index, line)| {
            let at = begin;
            begin += line.len() + 1;
            let test = self.tests.iter().any(|range| range.contains(&at));
            (!test && !self.only_test).then_some((index + 1, line))
        })
    }

    /// For Rust files: returns the comments of each line; empty for a line without a comment.
    pub(super) fn comments(&self) -> impl Iterator<Item = String> {
        let lines = self.text.split('\n').zip(self.uncommented.split('\n'));
        // In `uncommented`, the bytes of comments are blanks. So the first byte that differs from `text` starts the
        // comment.
        let begin = |(line, code): &(&str, &str)| line.bytes().zip(code.bytes()).position(|(one, other)| one != other);
        lines.map(move |pair| begin(&pair).map_or_else(String::new, |at| pair.0[at..].to_owned()))
    }

    /// Returns the places, as `path:line: needle`, at which the production code in `of` contains `needle` as whole
    /// words. `of` is `text`, `uncommented` or `code`.
    pub(super) fn places(&self, of: &str, needle: &str) -> Vec<String> {
        let found = self.production_lines(of).filter(|(_, line)| contains_words(line, needle));
        found.map(|(number, _)| format!("{}:{number}: {needle}", self.path)).collect()
    }

    /// Returns the functions of the file that have a body, tests included.
    pub(super) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let name: String = self.code[at + 3..].chars().take_while(|letter| is_word(*letter)).collect();
            let starts = !self.code[..at].ends_with(is_word);
            if let (true, false, Some(body)) =
                (starts, name.is_empty(), item(&self.code, at).filter(|item| item.has_body))
            {
                let range = at..body.end;
                let is_code = |line: &&str| !line.trim().is_empty();
                functions.push(Function {
                    name,
                    line: self.code[..at].matches('\n').count() + 1,
                    lines: self.text[range.clone()].matches('\n').count() + 1,
                    lines_of_code: self.uncommented[range.clone()].lines().filter(is_code).count(),
                    depth: depth::of(&self.code[range]),
                    is_test: self.is_test(at),
                    is_for_tests: self.only_test || self.tests.iter().any(|range| range.contains(&at)),
                });
            }
        }
        functions
    }

    /// True if the function whose `fn` is at position `at` has a test attribute.
    fn is_test(&self, at: usize) -> bool {
        let before = &self.code[..line_begin(&self.code, at)];
        // Comments and strings are blank in `code`. So the last of these characters ends the previous item, or starts
        // the block around the function. The attributes of the function are after it.
        let attributes = before.rfind(['}', ';', '{']).map_or(before, |end| &before[end + 1..]);
        attributes.contains("#[test]") || attributes.contains("#[tokio::test")
    }

    /// Returns the files of modules that are declared for tests only.
    fn test_modules(&self) -> Vec<String> {
        let mut modules = Vec::new();
        for range in &self.tests {
            let text = &self.text[range.clone()];
            let Some(name) = text.trim_end().strip_suffix(';').and_then(|text| text.rsplit_once("mod ")) else {
                continue;
            };
            let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
            let path = text.split_once("#[path = \"").and_then(|(_, rest)| rest.split_once('"'));
            modules.push(match (path, file) {
                (Some((path, _)), _) => format!("{folder}/{path}"),
                (None, "lib.rs" | "main.rs" | "mod.rs") => format!("{folder}/{}.rs", name.1),
                (None, file) => format!("{folder}/{}/{}.rs", file.trim_end_matches(".rs"), name.1),
            });
        }
        modules
    }
}

/// Returns the subjects of the commits since [`BEFORE`], one a line. Merges are left out: git writes their subjects.
///
/// Returns an empty text if the tree is no work tree of git, or if the commit is not there, as in a shallow clone.
fn subjects(root: &Path) -> String {
    let mut git = Command::new("git");
    git.current_dir(root).args(["log", "--no-merges", "--format=%s", &format!("{BEFORE}..HEAD")]);
    let found = root.join(".git").exists().then(|| git.output().ok()).flatten();
    let found = found.filter(|output| output.status.success());
    found.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns the path and the text of each text file below `root`, ordered by path.
///
/// # Errors
/// If a file or folder cannot be read.
pub fn texts(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    collect(root, "", &mut texts)?;
    texts.sort();
    Ok(texts)
}

fn collect(folder: &Path, prefix: &str, texts: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let context = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().with_context(context)?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), texts)?;
        } else if let Ok(text) = String::from_utf8(fs::read(entry.path()).with_context(context)?) {
            texts.push((path, text));
        }
    }
    Ok(())
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// True if a line contains `needle` as whole words.
pub(super) fn contains_words(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = needle.starts_with(is_word) && line[..at].ends_with(is_word);
        let after = needle.ends_with(is_word) && line[at + needle.len()..].starts_with(is_word);
        !before && !after
    })
}

/// End of an item of Rust code.
struct Item {
    end: usize,
    /// True if the item ends with a brace, false if with a semicolon.
    has_body: bool,
}

/// Returns the end of the item that starts at `from`: its semicolon, or the brace that closes its first brace.
fn item(code: &str, from: usize) -> Option<Item> {
    let mut round: usize = 0;
    let mut braces: usize = 0;
    for (offset, letter) in code[from..].char_indices() {
        let end = from + offset + 1;
        match letter {
            '(' | '[' => round += 1,
            ')' | ']' => round = round.saturating_sub(1),
            ';' if round == 0 && braces == 0 => return Some(Item { end, has_body: false }),
            '{' => braces += 1,
            '}' if braces <= 1 => return Some(Item { end, has_body: true }),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the ranges of items under `#[cfg(test)]`, including the attribute.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        let nested = ranges.last().is_some_and(|last| last.contains(&at));
        if let (false, Some(item)) = (nested, item(code, at)) {
            ranges.push(line_begin(code, at)..item.end);
        }
    }
    ranges
}

fn line_begin(code: &str, at: usize) -> usize {
    code[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Returns the text with comments replaced by blanks. If `strings` is true, also replaces the contents of strings and
/// characters. Line ends and the positions of all other text do not change.
fn mask(text: &str, strings: bool) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, blank) = match token(rest, masked.ends_with(is_word)) {
            Token::Comment(length) => (length, true),
            Token::Text(length) => (length, strings),
            Token::Other => (first.len_utf8(), false),
        };
        let (taken, left) = rest.split_at(length);
        if blank {
            // Write as many blanks as the comment has bytes, so that later positions do not change.
            masked.extend(taken.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            masked.push_str(taken);
        }
        rest = left;
    }
    masked
}

enum Token {
    Comment(usize),
    Text(usize),
    Other,
}

/// Returns the token at the start of a Rust text. `in_word` is true if the character before belongs to a word.
fn token(text: &str, in_word: bool) -> Token {
    if text.starts_with("//") {
        return Token::Comment(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Token::Comment(block_comment(text));
    }
    if text.starts_with('"') {
        return Token::Text(quoted(text, '"'));
    }
    if let Some(rest) = text.strip_prefix('r').filter(|_| !in_word) {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        if rest[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = 1 + hashes + 1;
            return Token::Text(text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len()));
        }
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let mut letters = rest.chars();
        let (first, second) = (letters.next(), letters.next());
        // A quote that is not a character literal begins a lifetime.
        if first == Some('\\') || second == Some('\'') {
            return Token::Text(quoted(text, '\''));
        }
    }
    Token::Other
}

fn block_comment(text: &str) -> usize {
    let mut depth: usize = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}
