//! Record of the faults (deliberate errors) that earlier runs on the same tree detected, for `cargo xtask mutants --resume`.

use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// File that records detected faults. Its first line is the digest of the tree, each further line the id of a fault.
pub(super) struct Journal {
    path: PathBuf,
    seen: BTreeSet<String>,
}

impl Journal {
    /// Opens the record of a tree. Starts a new record if the tree changed or `resume` is false.
    pub(super) fn open(folder: &Path, digest: &str, resume: bool) -> anyhow::Result<Self> {
        let path = folder.join("seen");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        if resume && lines.next() == Some(digest) {
            return Ok(Self { path, seen: lines.map(str::to_owned).collect() });
        }
        fs::write(&path, format!("{digest}\n")).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, seen: BTreeSet::new() })
    }

    pub(super) fn has_seen(&self, id: &str) -> bool {
        self.seen.contains(id)
    }

    pub(super) fn add(&mut self, id: &str) -> anyhow::Result<()> {
        let context = || format!("cannot write {}", self.path.display());
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).with_context(context)?;
        writeln!(file, "{id}").with_context(context)?;
        self.seen.insert(id.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Journal;

    #[test]
    fn only_a_run_on_the_same_tree_is_resumed() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |digest, resume| Journal::open(folder.path(), digest, resume).expect("it is opened");
        open("a", false).add("S1.1").expect("it is written");
        assert!(open("a", true).has_seen("S1.1"));
        assert!(!open("a", true).has_seen("S1.2"));
        assert!(!open("b", true).has_seen("S1.1"), "another tree");
        open("b", true).add("S1.2").expect("it is written");
        assert!(!open("b", false).has_seen("S1.2"), "begun anew");
    }
}
