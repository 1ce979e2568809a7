//! Faults (deliberate errors) that are derived from the source of crates, with their ids.

use super::operators::{self, Fault, Planted};
use crate::tidy::texts;
use programs::root;
use std::collections::{BTreeMap, BTreeSet};
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
    /// If the tree cannot be read, or a file is not Rust.
    pub(super) fn of(folders: &[String], rejected: &BTreeSet<String>) -> anyhow::Result<Self> {
        let mut derived = Self::default();
        let is_in = |file: &str| folders.iter().any(|folder| file.starts_with(&format!("{folder}/src/")));
        for (file, text) in texts(&root())?.into_iter().filter(|(file, _)| is_in(file) && is_source(Path::new(file))) {
            let mut planted = operators::plant(&file, &text, derived.faults.len() + 1, rejected)?;
            derived.faults.append(&mut planted.faults);
            derived.files.insert(file, planted);
        }
        Ok(derived)
    }

    /// Returns the ids of the faults to which places in the changed texts belong, as file and byte.
    pub(super) fn at(&self, places: &[(String, usize)]) -> BTreeSet<String> {
        let number = |(file, byte): &(String, usize)| self.files.get(file)?.at(*byte);
        places.iter().filter_map(number).filter_map(|number| Some(self.faults.get(number - 1)?.id.clone())).collect()
    }
}

/// True for a file of Rust that is not a test.
fn is_source(path: &Path) -> bool {
    let is_test = |stem: &str| stem == "tests" || stem.ends_with("_tests");
    let names = path.components().filter_map(|part| Path::new(part.as_os_str()).file_stem()?.to_str());
    path.extension().is_some_and(|extension| extension == "rs") && !names.into_iter().any(is_test)
}
