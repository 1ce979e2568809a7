//! Faults (deliberate errors) that are derived from the source of crates, with their ids.

use super::operators::{self, Fault, Planted};
use anyhow::Context as _;
use programs::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// All faults of some crates. The number of a fault is its position, from 1.
#[derive(Debug, Default)]
pub(super) struct Derived {
    pub(super) faults: Vec<Fault>,
    /// Text of each file, with switches.
    pub(super) files: BTreeMap<String, Planted>,
}

impl Derived {
    /// Derives the faults of the crates in these folders. A fault in `rejected`, by its id, gets no switch.
    ///
    /// # Errors
    /// If a file cannot be read, or is not Rust.
    pub(super) fn of(folders: &[String], rejected: &BTreeSet<String>) -> anyhow::Result<Self> {
        let mut derived = Self::default();
        for folder in folders {
            for file in sources(folder)? {
                let text = fs::read_to_string(root().join(&file)).with_context(|| format!("cannot read {file}"))?;
                let planted = operators::plant(&file, &text, derived.faults.len() + 1, rejected)?;
                derived.faults.extend(planted.faults.iter().cloned());
                derived.files.insert(file, planted);
            }
        }
        Ok(derived)
    }

    /// Returns the ids of the faults to which places in the changed texts belong, as file and byte.
    pub(super) fn at(&self, places: &[(String, usize)]) -> BTreeSet<String> {
        let number = |(file, byte): &(String, usize)| self.files.get(file)?.at(*byte);
        places.iter().filter_map(number).filter_map(|number| Some(self.faults.get(number - 1)?.id.clone())).collect()
    }
}

/// Returns the files of a crate that are not tests, in order.
fn sources(folder: &str) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_source(&path) {
                files.push(path.strip_prefix(root())?.display().to_string());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn is_source(path: &Path) -> bool {
    let is_test = |stem: &str| stem == "tests" || stem.ends_with("_tests");
    let names = path.components().filter_map(|part| Path::new(part.as_os_str()).file_stem()?.to_str());
    path.extension().is_some_and(|extension| extension == "rs") && !names.into_iter().any(is_test)
}
