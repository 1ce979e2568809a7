//! Known differences between memkube and the real server: calls with a line `differs` in their file in `table/`. The
//! files `*.differs` contain the exact differences, so that a test fails if a difference grows.
//!
//! ```text
//! PATCH {svc}/a {"spec":{"clusterIP":null}} application/merge-patch+json
//! /body/metadata/resourceVersion
//! real "<version 2>"
//! memkube "<version 1>"
//! ```
//!
//! All fields that are not in the file are equal.

use super::compare::Mark;
use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Environment variable that makes the tests rewrite the files with the differences.
const RENEW_VARIABLE: &str = "CONFORMANCE_RENEW";
const RENEW: &str = "CONFORMANCE_RENEW=1 cargo test --workspace --test e2e conformance::memkube";
/// Maximum number of characters of a call that the file shows.
const SHOWN_CALL: usize = 160;
/// Maximum number of characters of a value of the real server in the file. Longer values may have a random order.
const SHOWN_VALUE: usize = 400;
const LONG: &str = "(long)";
const ABSENT: &str = "(absent)";
const REAL: &str = "    real    ";
const OURS: &str = "    memkube ";
const HEADER: &str =
    "# Where memkube answers otherwise than a real kube-apiserver, and all in which it does: see docs/contributors/memkube.md.
# Read what changed here before it is committed. Written by
#   CONFORMANCE_RENEW=1 cargo test --workspace --test e2e conformance::memkube
";

/// Place in a response where the servers differ, and the two servers' values as JSON.
struct Field {
    path: String,
    real: String,
    ours: String,
}

fn file(table: &str) -> PathBuf {
    programs::root().join(format!("testing/scenarios/src/conformance/{table}.differs"))
}

/// Compares the known differences with the file `<table>.differs`.
///
/// # Errors
/// If the differences are not those of the file. The error shows both and explains how to renew the file.
pub fn check(table: &str, marks: &[Mark]) -> anyhow::Result<()> {
    let now: BTreeMap<String, String> = marks.iter().map(|mark| (title(mark), shown(mark))).collect();
    if std::env::var_os(RENEW_VARIABLE).is_some() {
        return write(table, marks);
    }
    let pinned = entries(&read(table)?);
    let titles: BTreeSet<&String> = now.keys().chain(pinned.keys()).collect();
    let changed: Vec<String> = titles
        .into_iter()
        .filter(|title| now.get(*title) != pinned.get(*title))
        .map(|title| {
            let of =
                |entries: &BTreeMap<String, String>| entries.get(title).map_or("nothing\n", |text| text).to_owned();
            format!("== {title}\nin the file:\n{}now:\n{}", of(&pinned), of(&now))
        })
        .collect();
    ensure!(changed.is_empty(), "{}", failure(table, &changed));
    Ok(())
}

/// Compares memkube's part of the known differences with the file `<table>.differs`. This check needs no real server.
///
/// # Errors
/// If a value of memkube is not the value in the file, or a call is not in the file.
pub fn check_ours(table: &str, marks: &[Mark]) -> anyhow::Result<()> {
    let pinned = entries(&read(table)?);
    let mut changed = Vec::new();
    for mark in marks {
        let title = title(mark);
        match pinned.get(&title) {
            None => changed.push(format!("== {title}\nis not in the file")),
            Some(text) => {
                for Field { path, ours, .. } in fields_of(text) {
                    let now = anywhere(mark, &json(mark.ours.pointer(&path)));
                    if now != ours {
                        changed.push(format!("== {title}\n{path}\n  in the file: {ours}\n  now:         {now}"));
                    }
                }
            }
        }
    }
    ensure!(changed.is_empty(), "{}", failure(table, &changed));
    Ok(())
}

fn failure(table: &str, changed: &[String]) -> String {
    format!(
        "memkube's answers to {} steps that are marked `differs` are not those of {}. If they are meant to be so, write \
         the file again and read what changed in it:\n  {RENEW}\n{}",
        changed.len(),
        file(table).display(),
        changed.join("\n")
    )
}

/// Returns the content of the file `<table>.differs`. Without this file there are no known differences, so the content
/// is empty.
fn read(table: &str) -> anyhow::Result<String> {
    let file = file(table);
    if !file.exists() {
        return Ok(String::new());
    }
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

fn write(table: &str, marks: &[Mark]) -> anyhow::Result<()> {
    let file = file(table);
    if marks.is_empty() {
        return if file.exists() { Ok(std::fs::remove_file(&file)?) } else { Ok(()) };
    }
    let entries: Vec<String> = marks.iter().map(|mark| format!("\n== {}\n{}", title(mark), shown(mark))).collect();
    std::fs::write(&file, format!("{HEADER}{}", entries.concat()))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn title(mark: &Mark) -> String {
    format!("{}: {}, step {}, differs {}", mark.theme, mark.title, mark.step, mark.name)
}

fn shown(mark: &Mark) -> String {
    let mut fields = Vec::new();
    differing("", Some(&mark.real), Some(&mark.ours), &mut fields);
    let fields = fields.iter().map(|Field { path, real, ours }| format!("{path}\n{REAL}{real}\n{OURS}{ours}\n"));
    let call: String = mark.call.chars().take(SHOWN_CALL).collect();
    anywhere(mark, &format!("{}\n{}", call.trim_end(), fields.collect::<String>()))
}

/// Replaces the case's namespace by `{ns}`, because the namespace's name contains a number that depends on earlier
/// cases.
fn anywhere(mark: &Mark, text: &str) -> String {
    text.replace(&mark.namespace, "{ns}")
}

/// Adds the places where two values differ to `fields`. If two lists have different lengths, the list as a whole is one
/// place.
fn differing(path: &str, real: Option<&Value>, ours: Option<&Value>, fields: &mut Vec<Field>) {
    match (real, ours) {
        _ if real == ours => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            for name in names(one, other) {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                differing(&path, one.get(name), other.get(name), fields);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differing(&format!("{path}/{index}"), Some(one), Some(other), fields);
            }
        }
        _ => {
            let shown = Some(json(real)).filter(|real| real.chars().count() <= SHOWN_VALUE);
            let real = shown.unwrap_or_else(|| LONG.to_owned());
            fields.push(Field { path: path.to_owned(), real, ours: json(ours) });
        }
    }
}

fn names<'a>(one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> BTreeSet<&'a String> {
    one.keys().chain(other.keys()).collect()
}

fn json(value: Option<&Value>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), Value::to_string)
}

/// Returns the entries of the file: the text below each title.
fn entries(text: &str) -> BTreeMap<String, String> {
    let sections = text.split("\n== ").skip(1);
    let sections = sections.filter_map(|section| section.split_once('\n'));
    sections.map(|(title, rest)| (title.to_owned(), format!("{}\n", rest.trim_end_matches('\n')))).collect()
}

/// Returns the fields of one entry of the file. The entry's first line is the call.
fn fields_of(entry: &str) -> Vec<Field> {
    let lines: Vec<&str> = entry.lines().skip(1).collect();
    let triples = lines.chunks_exact(3).filter_map(|triple| {
        let (real, ours) = (triple[1].strip_prefix(REAL)?, triple[2].strip_prefix(OURS)?);
        Some(Field { path: triple[0].to_owned(), real: real.to_owned(), ours: ours.to_owned() })
    });
    triples.collect()
}
