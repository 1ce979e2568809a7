//! Checks of the names of annotations and labels in messages and docs. An annotation with a short name does nothing, so
//! a remedy with a short name does not help.

use super::source::{File, Tree};
use std::collections::BTreeSet;

/// Definitions of the names.
const DEFINITIONS: &str = "api/src/names.rs";
/// API group in the names. It is in two parts, so that this file does not contain the name.
const GROUP: (&str, &str) = ("networking.fleet", ".azure.com/");
/// Crates with messages for users.
const CRATES: [&str; 7] = ["core", "diagnosis", "hub-agent", "member-agent", "agent", "runtime", "fleetnet"];
/// Annotations that users write. In docs, the others may have short names, because only agents write them.
const OF_USERS: [&str; 5] = ["weight", "export-headless", "exporters", "importers", "azure-load-balancer-internal"];

/// Text of users: the place and one line, or a string of several lines.
struct Text {
    place: String,
    text: String,
}

pub(super) fn short_names_of_annotations(tree: &Tree) -> Vec<String> {
    let all = defined(tree);
    let found = |texts: Vec<Text>, names: &BTreeSet<String>| {
        let short = texts.into_iter().flat_map(|Text { place, text }| {
            let names = names.iter().filter(|name| is_short(&text, name));
            names.map(|name| format!("{place}: {name}")).collect::<Vec<_>>()
        });
        short.collect::<Vec<_>>()
    };
    let of_users = all.iter().filter(|name| OF_USERS.contains(&name.as_str())).cloned().collect();
    let mut places = found(messages(tree), &all);
    places.extend(found(docs(tree), &of_users));
    places
}

pub(super) fn names_that_are_not_there(tree: &Tree) -> Vec<String> {
    let (all, group) = (defined(tree), format!("{}{}", GROUP.0, GROUP.1));
    let mut places = Vec::new();
    for Text { place, text } in messages(tree).into_iter().chain(docs(tree)) {
        for kind in ["annotation", "label"] {
            for (at, _) in text.match_indices(&group) {
                let is_named = text[..at].trim_end_matches(['`', '"', '\\', ' ']).trim_end_matches('s').ends_with(kind);
                let name: String = text[at + group.len()..].chars().take_while(|it| is_part(*it)).collect();
                let name = name.trim_end_matches(['.', '-']);
                if is_named && !all.contains(name) {
                    places.push(format!("{place}: {group}{name}"));
                }
            }
        }
    }
    places
}

/// Returns the names of the annotations and labels of our group, without the group.
fn defined(tree: &Tree) -> BTreeSet<String> {
    let group = format!("= \"{}{}", GROUP.0, GROUP.1);
    let lines = tree.file(DEFINITIONS).map_or("", |file| file.text.as_str()).lines();
    lines.filter_map(|line| line.split_once(&group)?.1.split_once('"')).map(|(name, _)| name.to_owned()).collect()
}

/// Returns the lines of code with a string. A string that goes on in the next line is one text.
fn messages(tree: &Tree) -> Vec<Text> {
    CRATES.iter().flat_map(|folder| tree.sources(folder)).flat_map(strings).collect()
}

fn strings(file: &File) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    let mut goes_on = false;
    for (number, line) in file.production_lines(&file.uncommented) {
        let part = line.trim_end_matches('\\');
        match texts.last_mut() {
            Some(last) if goes_on => last.text.push_str(part.trim_start()),
            _ => texts.push(Text { place: format!("{}:{number}", file.path), text: part.to_owned() }),
        }
        goes_on = line.ends_with('\\');
    }
    texts.retain(|it| it.text.contains('"'));
    texts
}

fn docs(tree: &Tree) -> Vec<Text> {
    let pages = tree.files().filter(|file| file.path == "README.md" || file.path.starts_with("docs/"));
    let lines = pages.filter(|file| file.path.ends_with(".md")).flat_map(|file| {
        let place = |number: usize| format!("{}:{number}", file.path);
        file.text.lines().zip(1..).map(move |(line, number)| Text { place: place(number), text: line.to_owned() })
    });
    lines.collect()
}

/// True if a text has a name of an annotation or label without its group. A name with a dash has no other meaning.
fn is_short(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(is_part) || after.starts_with(is_part) && !after.starts_with(['.', ',']) {
            return false;
        }
        let quotes = ['`', '"', '\\', ' '];
        let (before, after) = (before.trim_end_matches(quotes), after.trim_start_matches(quotes));
        let names_kind =
            |kind: &str| before.ends_with(kind) || before.ends_with(&format!("{kind}s")) || after.starts_with(kind);
        OF_USERS.contains(&name) && name.contains('-') || names_kind("annotation") || names_kind("label")
    })
}

/// True for a character of a name, or of the group before it.
fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_./".contains(character)
}
