//! List of derived faults that change nothing that a test could see, each with its reason.

use super::operators::Fault;
use anyhow::Context as _;
use programs::root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The list, from the root of the tree.
pub(super) const LIST: &str = "testing/equivalent-faults.yaml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    fault: String,
    reason: String,
}

/// Returns the reason of each fault in the list, by its id.
///
/// # Errors
/// If the list cannot be read, or an entry has no reason or occurs twice.
pub(super) fn faults() -> anyhow::Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    parse(&text)
}

fn parse(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let entries: Vec<Entry> = serde_saphyr::from_str(text).with_context(|| format!("cannot parse {LIST}"))?;
    let mut faults = BTreeMap::new();
    for Entry { fault, reason } in entries {
        anyhow::ensure!(!reason.trim().is_empty(), "{LIST}: {fault} has no reason");
        let before = faults.insert(fault.clone(), reason);
        anyhow::ensure!(before.is_none(), "{LIST}: {fault} is there twice");
    }
    Ok(faults)
}

/// Returns the faults of the list that are no faults of these crates, although their file is in one of them.
pub(super) fn unknown<'a>(list: &'a BTreeMap<String, String>, folders: &[String], faults: &[Fault]) -> Vec<&'a str> {
    let known: BTreeSet<&str> = faults.iter().map(|fault| fault.id.as_str()).collect();
    let is_here = |id: &str| {
        folders.iter().any(|folder| id.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    list.keys().map(String::as_str).filter(|id| is_here(id) && !known.contains(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_fault_of_the_list_has_a_reason_and_occurs_once() {
        let entry = "- fault: 'core/src/a.rs f never: a'\n  reason: the caller checks it\n";
        assert_eq!(parse(entry).expect("a list").len(), 1);
        assert!(parse(&entry.repeat(2)).is_err());
        assert!(parse("- fault: a\n  reason: ''\n").is_err());
    }
}
