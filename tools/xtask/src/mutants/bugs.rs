//! Bugs that the simulator must find: patches of the source, each with a switch, in `testing/bugs/`.
//!
//! The text above a patch says what the bug does, and which seed finds it by which rule:
//!
//! ```text
//! The grace period of a derived Service does not count.
//! finds: grace, seed 2
//! only: rights
//! ```

use anyhow::{Context as _, ensure};
use programs::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folder of the patches, from the root of the tree.
pub(super) const FOLDER: &str = "testing/bugs";

/// Bug that the simulator must find.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Bug {
    /// Name of its file and of its switch.
    pub(super) name: String,
    /// Effect of the bug, for people.
    pub(super) what: String,
    /// Rules that it breaks, each with a seed that finds it.
    pub(super) finds: Vec<(String, u64)>,
    /// Kinds of faults to play, separated by commas; empty for all.
    pub(super) only: String,
    patch: String,
}

/// Reads all bugs, in the order of their names.
///
/// # Errors
/// If a patch cannot be read, or the text above it is malformed.
pub(super) fn all() -> anyhow::Result<Vec<Bug>> {
    let folder = root().join(FOLDER);
    let mut bugs = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {FOLDER}"))? {
        let path = entry.with_context(|| format!("cannot read {FOLDER}"))?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).context("a patch without a name")?;
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        bugs.push(parse(name, text).with_context(|| path.display().to_string())?);
    }
    bugs.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(bugs)
}

fn parse(name: &str, text: String) -> anyhow::Result<Bug> {
    let (head, patch) = text.split_once("\n\n").context("no empty line between the text and the patch")?;
    ensure!(patch.contains(&format!("is_bug(\"{name}\")")), "the patch has no switch {name}");
    let mut bug =
        Bug { name: name.to_owned(), what: String::new(), finds: vec![], only: String::new(), patch: patch.to_owned() };
    for line in head.lines() {
        if let Some(finds) = line.strip_prefix("finds: ") {
            let (rule, seed) = finds.split_once(", seed ").context("a line reads `finds: RULE, seed NUMBER`")?;
            bug.finds.push((rule.to_owned(), seed.parse().context("the seed is no number")?));
        } else if let Some(only) = line.strip_prefix("only: ") {
            only.clone_into(&mut bug.only);
        } else {
            bug.what.push_str(line);
        }
    }
    ensure!(!bug.finds.is_empty() && !bug.what.is_empty(), "the text says what the bug does and what finds it");
    Ok(bug)
}

/// Returns the text of each file that a patch changes, with all bugs.
///
/// # Errors
/// If a patch does not fit the source any more.
pub(super) fn patched(bugs: &[Bug], folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let files: Vec<&str> =
        bugs.iter().flat_map(|bug| bug.patch.lines()).filter_map(|line| line.strip_prefix("+++ b/")).collect();
    for file in &files {
        let copy = folder.join(file);
        fs::create_dir_all(copy.parent().context("a file without a folder")?)?;
        fs::copy(root().join(file), copy).with_context(|| format!("cannot copy {file}"))?;
    }
    for bug in bugs {
        let path = root().join(FOLDER).join(format!("{}.patch", bug.name));
        let mut git = Command::new("git");
        // The folder may be inside of the repository, whose paths git would take.
        git.args(["apply", "-C1"]).arg(&path).current_dir(folder).env("GIT_DIR", folder.join("none"));
        let output = git.output().context("cannot call git")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{FOLDER}/{}.patch does not fit the source any more: {error}", bug.name);
    }
    let text = |file: &str| anyhow::Ok((file.to_owned(), fs::read_to_string(folder.join(file))?));
    files.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::{Bug, all, parse, patched};

    #[test]
    fn each_patch_fits_the_source() {
        let folder = tempfile::tempdir().expect("a folder");
        let bugs = all().expect("bugs");
        let texts = patched(&bugs, folder.path()).expect("patches that fit");
        for Bug { name, .. } in bugs {
            let switch = format!("is_bug(\"{name}\")");
            assert!(texts.values().any(|text| text.contains(&switch)), "{name}");
        }
    }

    #[test]
    fn the_text_above_a_patch_says_what_the_bug_does_and_what_finds_it() {
        let patch = "\n\n+++ b/core/src/a.rs\n+crate::planted::is_bug(\"grace\")\n";
        let bug = parse("grace", format!("No grace.\nfinds: grace, seed 2\nonly: rights{patch}")).expect("a bug");
        assert_eq!(
            (bug.what.as_str(), bug.only.as_str(), &bug.finds[..]),
            ("No grace.", "rights", &[("grace".to_owned(), 2)][..])
        );
        for text in ["No grace.", "finds: grace, seed 2", "No grace.\nfinds: grace", "No grace.\nfinds: grace, seed x"]
        {
            assert!(parse("grace", format!("{text}{patch}")).is_err(), "{text}");
        }
        assert!(parse("other", format!("No grace.\nfinds: grace, seed 2{patch}")).is_err(), "another switch");
    }
}
