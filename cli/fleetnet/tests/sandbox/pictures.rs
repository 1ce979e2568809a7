//! Pictures of the page and of the terminal in the docs. `cargo xtask pictures` makes them, and a test compares them
//! with new ones by their size and their text.

mod svg;

use super::browser::{Shown, set_other_port};
use super::terminal::recorded;
use super::{sandbox, text};
use regex::Regex;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable of `cargo xtask pictures`: the pictures are replaced, not compared.
const WRITE: &str = "FLEETNET_WRITE_PICTURES";
/// Pictures of the page. Each is in light and dark, and its text is beside it.
const PAGES: [&str; 3] = ["page-fleet", "page-service", "page-latency"];
const SCHEMES: [&str; 2] = ["light", "dark"];
/// Pictures of the terminal. Their text is in them.
const TERMINALS: [&str; 2] = ["sandbox", "explain"];
/// Largest size of a picture in bytes, so that the docs load fast.
const MOST: u64 = 150_000;
/// Size of the terminal in characters.
const TERMINAL: [u16; 2] = [112, 40];

fn docs() -> PathBuf {
    programs::root().join("docs/pictures")
}

/// Returns the pixels of a PNG, as its header has them.
fn pixels(png: &[u8]) -> [u32; 2] {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    [number(16), number(20)]
}

/// Replaces what differs between two runs: figures, times, and names with random parts.
fn masked(text: &str) -> String {
    let random = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|hub-agent_[^ ,]+";
    let (time, figure) = (r"\d{4}-\d\d-\d\dT[\d:.]+Z", r"~?\d[\d.,:]*(ms|s|m)?\b");
    let rules = [(random, "#"), (time, "#"), (figure, "#"), ("# samples?", "# samples"), (r"[ \t]+", " ")];
    rules
        .iter()
        .fold(text.to_owned(), |text, (rule, mask)| Regex::new(rule).unwrap().replace_all(&text, *mask).into_owned())
}

/// Returns the text of a picture that is the same in each run: without figures and without lines of single changes.
fn stable(text: &str) -> String {
    let tags = Regex::new("</?(svg|title|style|rect|text)[^>]*>").unwrap();
    let lines = tags.replace_all(text, "").lines().map(masked).collect::<Vec<_>>();
    lines.iter().filter(|line| !line.contains("change #")).map(|line| format!("{}\n", line.trim())).collect()
}

/// Width and height of an SVG, as its first line has them.
fn first_line(svg: &str) -> &str {
    svg.lines().next().unwrap()
}

/// Returns a picture of what the sandbox draws on a terminal.
fn picture_of_the_sandbox() -> String {
    let mut command = sandbox(&["--members", "3"]);
    command.env_remove("NO_COLOR");
    let until = "change 12:";
    let (code, written) = recorded(command, TERMINAL, Some(until));
    assert_eq!(code, Some(0));
    let frame = written.split("\u{1b}[H").find(|frame| frame.contains(until)).unwrap();
    let lines = frame.split("\u{1b}[K").map(|line| line.trim_start_matches(['\r', '\n']).to_owned());
    let mut lines: Vec<String> = lines.filter(|line| !line.contains("\u{1b}[J")).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    svg::terminal(&lines, TERMINAL[0].into(), "fleetnet sandbox in a terminal")
}

/// Returns a picture of a terminal with commands that explain a fault.
fn picture_of_explain(kubeconfigs: &[String]) -> String {
    let mut lines = Vec::new();
    for arguments in [&["status"][..], &["explain", "work/shop"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
        command.args(arguments).env("KUBECONFIG", kubeconfigs.join(":")).env_remove("NO_COLOR");
        let (_, written) = recorded(command, TERMINAL, None);
        lines.push(format!("\u{1b}[1m$ fleetnet {}\u{1b}[0m", arguments.join(" ")));
        lines.extend(written.lines().map(str::to_owned));
        lines.push(String::new());
    }
    lines.pop();
    svg::terminal(&lines, TERMINAL[0].into(), "fleetnet status and fleetnet explain in a terminal")
}

/// Returns the names of all files of the pictures.
fn names() -> Vec<String> {
    let pages = PAGES.iter().flat_map(|page| {
        SCHEMES.iter().map(move |scheme| format!("{page}-{scheme}.png")).chain([format!("{page}.txt")])
    });
    pages.chain(TERMINALS.iter().map(|name| format!("{name}.svg"))).collect()
}

/// Fails if a picture in the docs has another size or text than a new one.
fn compare(new: &Path, name: &str) {
    let remedy = "run `cargo xtask pictures`, look at docs/pictures, and commit it";
    let [new, old] = [new, &docs()].map(|folder| fs::read(folder.join(name)));
    let old = old.unwrap_or_else(|error| panic!("there is no docs/pictures/{name} ({error}): {remedy}"));
    let new = new.unwrap();
    if name.ends_with(".png") {
        assert_eq!(pixels(&old), pixels(&new), "docs/pictures/{name} has another size: {remedy}");
        return;
    }
    let [old, new] = [text(&old), text(&new)];
    if name.ends_with(".svg") {
        assert_eq!(first_line(old), first_line(new), "docs/pictures/{name} has another size: {remedy}");
    }
    let [old, new] = [old, new].map(stable);
    let first = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(old == new, "docs/pictures/{name} has another text, first {first:?}: {remedy}\n{new}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pictures_in_the_docs_show_the_page_and_the_terminal_of_today() {
    let of_the_sandbox = tokio::task::spawn_blocking(picture_of_the_sandbox);
    let mut shown = Shown::start(&["--members", "3", "--scenario", "conflict", "--changes-per-second", "20"]);
    shown.passes();
    set_other_port(shown.client("member-2").await).await;
    let new = shown.folder.path().to_owned();
    shown.script("pictures", json!({ "folder": new }));
    fs::write(new.join("sandbox.svg"), of_the_sandbox.await.unwrap()).unwrap();
    fs::write(new.join("explain.svg"), picture_of_explain(&shown.kubeconfigs())).unwrap();
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(docs()).unwrap();
        names().iter().for_each(|name| _ = fs::copy(new.join(name), docs().join(name)).unwrap());
    }
    names().iter().for_each(|name| compare(&new, name));
    shown.end();
}

#[test]
fn the_pictures_in_the_docs_are_small_and_none_is_left_over() {
    let mut files: Vec<String> = super::names(&docs());
    let mut expected = names();
    expected.sort();
    files.sort();
    assert_eq!(files, expected);
    for name in files {
        let bytes = fs::metadata(docs().join(&name)).unwrap().len();
        assert!(bytes < MOST, "docs/pictures/{name} has {bytes} bytes, and may have {MOST}");
    }
}

#[test]
fn figures_and_random_names_are_masked_and_words_are_not() {
    let text = "member-2 heard 12s ago, p50 ~4.2ms, hub-agent_vm_1a2b leads since 2026-11-30T17:48:25Z";
    assert_eq!(masked(text), "member-# heard # ago, p# #, # leads since #");
    assert_ne!(masked("fault found"), masked("healthy"));
}
