//! Checks that a reader can open what docs and comments cite: files of this repository, and bugs of the table in
//! docs/contributors/behaviour.md.

use super::source::{File, HISTORY, Tree, contains_words};
use std::collections::BTreeSet;

/// Document with the table of the Go agents' bugs, whose rows begin with an id such as B1 or B1b.
const BUGS: &str = "docs/contributors/behaviour.md";
/// Endings of paths that are always checked.
const OURS: [&str; 2] = [".rs", ".md"];
/// Endings of paths that are checked if they begin with a folder of the root. Other paths with these endings mostly
/// name files of a user or of another project.
const OTHERS: [&str; 6] = [".yaml", ".toml", ".json", ".go", ".sh", ".txt"];
/// Phrases that cite documents outside of the repository.
const ELSEWHERE: [&str; 2] = ["the spec", "the design"];
/// Words that may follow the first phrase of [`ELSEWHERE`]. With such a word, the phrase means a field of a Kubernetes
/// object, and is allowed.
const FIELD: [&str; 3] = [" of ", " field", "'s "];

/// Returns relative links of documents to files or headings that do not exist.
pub(super) fn broken_links(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in file.text.lines().enumerate() {
            let broken = targets(line).filter(|target| !is_url(target) && !opens(tree, file, target));
            places.extend(broken.map(|target| format!("{}:{}: {target}", file.path, number + 1)));
        }
    }
    places
}

/// Returns the targets of links, as in `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

fn is_url(target: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

fn opens(tree: &Tree, from: &File, target: &str) -> bool {
    let (path, heading) = target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let Some(path) = joined(&from.path, path) else { return false };
    let Some(file) = tree.file(&path) else {
        let folder = format!("{path}/");
        return heading.is_none() && tree.files.iter().any(|file| file.path.starts_with(&folder));
    };
    heading.is_none_or(|heading| headings(&file.text).contains(heading))
}

/// Returns the path, from the root, of the file that a link in `document` names. `None` if the link leaves the
/// repository. An empty link means the document itself.
fn joined(document: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(document.to_owned());
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the anchors of the headings, in the form that GitHub uses.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |title: &str| {
        let letters = title.to_lowercase();
        let kept = letters.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    titles.map(anchor).collect()
}

/// Returns paths in docs and comments that name no file and no folder of the tree. A path may leave out its first
/// folders.
pub(super) fn missing_paths(tree: &Tree) -> Vec<String> {
    let known = TreePaths::of(tree);
    let mut places = Vec::new();
    for file in tree.files.iter().filter(|file| file.path != HISTORY) {
        for (number, line) in prose(file) {
            places.extend(
                paths(&line).filter(|path| known.lacks(path)).map(|path| format!("{}:{number}: {path}", file.path)),
            );
        }
    }
    places
}

/// Files and folders of the tree.
struct TreePaths<'a> {
    /// Paths of all files and folders. Each path is also included without its first folder, without its first two
    /// folders, and so on.
    paths: BTreeSet<&'a str>,
    /// Folders directly below the root.
    roots: BTreeSet<&'a str>,
}

impl<'a> TreePaths<'a> {
    fn of(tree: &'a Tree) -> Self {
        let (mut paths, mut roots) = (BTreeSet::new(), BTreeSet::new());
        for file in &tree.files {
            if let Some((root, _)) = file.path.split_once('/') {
                roots.insert(root);
            }
            let ends = file.path.match_indices('/').map(|(at, _)| at).chain([file.path.len()]);
            for path in ends.map(|end| &file.path[..end]) {
                paths.insert(path);
                paths.extend(path.match_indices('/').map(|(at, _)| &path[at + 1..]));
            }
        }
        Self { paths, roots }
    }

    /// True if the text must be a path of the tree, but the tree has no such path.
    fn lacks(&self, path: &str) -> bool {
        let is_below_root = path.split_once('/').is_some_and(|(root, _)| self.roots.contains(root));
        let has_ending =
            |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending) && path.len() > ending.len());
        let is_checked = has_ending(&OURS) || is_below_root && (path.ends_with('/') || has_ending(&OTHERS));
        is_checked && !self.paths.contains(path.trim_end_matches('/'))
    }
}

/// Returns the words of a line that may be paths. A word beside a placeholder, such as `<name>.rs` or `*.md`, is not a
/// path.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let is_placeholder = |letter: char| matches!(letter, '<' | '>' | '*' | '{' | '}' | '$' | '…' | ':' | '@' | '~');
    line.split(move |letter: char| !is_part(letter)).filter(|word| !word.is_empty()).filter_map(move |word| {
        let at = word.as_ptr() as usize - line.as_ptr() as usize;
        let is_whole =
            !line[..at].ends_with(is_placeholder) && !line[at + word.len()..].starts_with(['<', '*', '{', '$', '…']);
        let word = word.trim_end_matches(['.', '-']).trim_start_matches("./");
        let word = std::iter::successors(Some(word), |word| word.strip_prefix("../")).last().unwrap_or(word);
        is_whole.then_some(word)
    })
}

/// Returns phrases in docs and comments that cite a document outside of the repository.
pub(super) fn citations_of_other_documents(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in &tree.files {
        for (number, line) in prose(file) {
            let lower = line.to_lowercase();
            let cited = ELSEWHERE.iter().filter(|phrase| contains_words(&lower, phrase) && !is_field(&lower, phrase));
            places.extend(cited.map(|phrase| format!("{}:{number}: {phrase}", file.path)));
            let folder = lower.split([' ', '`', '(', '"']).find(|word| word.starts_with(concat!("sp", "ec/")));
            places.extend(folder.map(|word| format!("{}:{number}: {word}", file.path)));
        }
    }
    places
}

fn is_field(line: &str, phrase: &str) -> bool {
    let mut behind = line.match_indices(phrase).map(|(at, _)| &line[at + phrase.len()..]);
    behind.all(|behind| FIELD.iter().any(|words| behind.starts_with(words)))
}

/// Returns ids of bugs in docs and comments that have no row in the table of docs/contributors/behaviour.md.
pub(super) fn unknown_bugs(tree: &Tree) -> Vec<String> {
    let table = tree.file(BUGS).map_or("", |file| file.text.as_str()).lines();
    let known: BTreeSet<&str> =
        table.filter_map(|line| line.strip_prefix("| ")?.split_once(" |").map(|(id, _)| id)).collect();
    let mut places = Vec::new();
    for file in &tree.files {
        for (number, line) in prose(file) {
            let words = line.split(|letter: char| !letter.is_alphanumeric());
            let unknown = words.filter(|word| is_bug(word) && !known.contains(word));
            places.extend(unknown.map(|id| format!("{}:{number}: {id}", file.path)));
        }
    }
    places
}

/// True for ids such as B1, B22 and B1b.
fn is_bug(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('B') else { return false };
    let number = rest.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    (1..=2).contains(&number.len())
        && rest.len() - number.len() <= 1
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the lines that people read, each with its number: all lines of a document, and the comments of other files,
/// without URLs.
fn prose(file: &File) -> Vec<(usize, String)> {
    let comment = |line: &str| line.split_once('#').map(|(_, comment)| comment.to_owned());
    let lines: Vec<(usize, String)> = match file.path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md") => file.text.lines().map(str::to_owned).enumerate().collect(),
        Some("rs") => file.comments().enumerate().collect(),
        Some("toml" | "yaml" | "sh") => {
            let comments = file.text.lines().map(comment).enumerate();
            comments.filter_map(|(index, line)| Some((index, line?))).collect()
        }
        _ => Vec::new(),
    };
    let shown = |(index, line): (usize, String)| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.contains("://")).collect();
        (index + 1, words.join(" "))
    };
    lines.into_iter().map(shown).collect()
}
