//! Lines that changed since a commit.

use anyhow::{Context as _, ensure};
use programs::root;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::process::Command;

/// Changed lines of each file, counted from 1.
#[derive(Debug)]
pub(super) struct Changed(BTreeMap<String, Vec<RangeInclusive<usize>>>);

impl Changed {
    /// Returns the lines of Rust that changed since a commit, with those that are not committed.
    ///
    /// # Errors
    /// If git does not know the commit.
    pub(super) fn since(commit: &str) -> anyhow::Result<Self> {
        let arguments = ["diff", "--unified=0", "--no-color", "--no-ext-diff", commit, "--", "*.rs"];
        let output = Command::new("git").current_dir(root()).args(arguments).output().context("cannot call git")?;
        ensure!(output.status.success(), "git diff {commit}: {}", String::from_utf8_lossy(&output.stderr).trim());
        parse(&String::from_utf8(output.stdout).context("git's answer is not text")?)
    }

    /// True if one of these lines of a file changed.
    pub(super) fn touches(&self, file: &str, lines: &RangeInclusive<usize>) -> bool {
        let changed = self.0.get(file).into_iter().flatten();
        changed.into_iter().any(|range| range.start() <= lines.end() && lines.start() <= range.end())
    }
}

/// Reads a diff without context. If lines were removed, the two lines next to them count as changed.
fn parse(difference: &str) -> anyhow::Result<Changed> {
    let mut changed: BTreeMap<String, Vec<RangeInclusive<usize>>> = BTreeMap::new();
    let mut file = String::new();
    for line in difference.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            path.clone_into(&mut file);
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            let new = hunk.split(' ').find_map(|part| part.strip_prefix('+')).context("a hunk without new lines")?;
            let (start, count) = new.split_once(',').unwrap_or((new, "1"));
            let (start, count): (usize, usize) = (start.parse()?, count.parse()?);
            changed.entry(file.clone()).or_default().push(start..=start + count.max(2) - 1);
        }
    }
    Ok(Changed(changed))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn changed_lines_are_read_from_a_difference_without_context() {
        let difference = "--- a/core/src/a.rs\n+++ b/core/src/a.rs\n@@ -3 +3 @@ fn a() {\n-x\n+y\n@@ -9,2 +9,3 @@\n\
                          +a\n+b\n+c\n@@ -20,2 +20,0 @@\n-a\n-b\n--- a/b.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        let changed = parse(difference).expect("a difference");
        assert_eq!(changed.0["core/src/a.rs"][..3], [3..=4, 9..=11, 20..=21]);
        assert!(changed.touches("core/src/a.rs", &(11..=15)) && !changed.touches("core/src/a.rs", &(12..=19)));
        assert!(!changed.touches("core/src/b.rs", &(1..=99)));
    }
}
