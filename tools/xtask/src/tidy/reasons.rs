//! Check that docs/reference/events.md explains every reason of Events and conditions, and no others.

use super::source::Tree;
use crate::reasons::{DEFINITIONS, reasons};
use std::collections::BTreeMap;

const DOCUMENT: &str = "docs/reference/events.md";
/// Crates that have reasons of kube-controller-manager as strings in their code.
const OF_SLICES: [&str; 2] = ["endpointslice/controller", "endpointslice"];

pub(super) fn reasons_that_are_not_explained(tree: &Tree) -> Vec<String> {
    let defined = match defined(tree) {
        Ok(defined) => defined,
        Err(error) => return vec![format!("{error:#}")],
    };
    let (own, of_slices) = (rows(tree, "| reason |"), rows(tree, "| reason of the slices |"));
    let mut places = Vec::new();
    for (reason, kind) in &defined {
        match own.get(reason) {
            None => places.push(format!("{DEFINITIONS}: {reason} has no row in {DOCUMENT}")),
            Some(row) if row != kind => places.push(format!("{DOCUMENT}: {reason} is of type {kind}, not {row}")),
            Some(_) => {}
        }
    }
    let unknown = own.keys().filter(|reason| !defined.contains_key(*reason));
    places.extend(unknown.map(|reason| format!("{DOCUMENT}: {reason} is told nowhere")));
    let is_emitted = |reason: &str| {
        let word = format!("\"{reason}\"");
        OF_SLICES.iter().flat_map(|folder| tree.sources(folder)).any(|file| file.uncommented.contains(&word))
    };
    places.extend(of_slices.keys().filter(|it| !is_emitted(it)).map(|it| format!("{DOCUMENT}: {it} is told nowhere")));
    places
}

/// Returns the reasons that core defines with their types.
fn defined(tree: &Tree) -> anyhow::Result<BTreeMap<String, String>> {
    let Some(file) = tree.file(DEFINITIONS) else { return Ok(BTreeMap::new()) };
    Ok(reasons(&file.text)?.iter().map(|reason| (reason.name.to_string(), reason.kind.to_string())).collect())
}

/// Returns the content of the table with this header in docs/reference/events.md. The key is the first column, and the
/// value is the second column, which is the type.
fn rows(tree: &Tree, header: &str) -> BTreeMap<String, String> {
    let lines = tree.file(DOCUMENT).map_or("", |file| file.text.as_str()).lines();
    let table = lines.skip_while(|line| !line.starts_with(header)).skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        Some((cells.next()?.trim_matches('`').to_owned(), cells.next()?.to_owned()))
    };
    table.filter_map(row).collect()
}
