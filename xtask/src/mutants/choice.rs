//! Choice of the faults (deliberate errors in the source) to plant: arguments of `cargo xtask mutants`.

use super::Planned;
use super::mark::Fault;
use crate::test::Shard;
use anyhow::{Context as _, bail, ensure};
use programs::root;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::process::Command;
use std::time::Duration;

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// Faults to plant: their ids, or ids of rules of docs/contributors/behaviour.md. All, if none is named.
    ids: Vec<String>,
    /// Plant only the faults of part I of N, from 1. Each fault is in one part, in the same one every time.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Plant only the faults in lines that changed since this commit.
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// Begin no fault so many minutes after the build, and print those that are left. The order is drawn by the hash of HEAD.
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    pub(super) within: Option<Duration>,
    /// Leave out the faults that an earlier run saw on the same tree.
    #[arg(long)]
    pub(super) resume: bool,
}

fn minutes(text: &str) -> Result<Duration, std::num::ParseIntError> {
    Ok(Duration::from_secs(60 * text.parse::<u64>()?))
}

/// Changed lines of each file, counted from 1.
type Changed = BTreeMap<String, Vec<RangeInclusive<usize>>>;

impl Choice {
    /// True if the faults are not chosen by their ids or lines.
    pub(super) fn is_for_all(&self) -> bool {
        self.ids.is_empty() && self.since.is_none()
    }

    /// Returns the chosen faults, in the order in which they are planted.
    ///
    /// # Errors
    /// If an id names no fault, or git does not know the commit.
    pub(super) fn of(&self, mut planned: Vec<Planned>) -> anyhow::Result<Vec<Planned>> {
        if let Some(unknown) = self.ids.iter().find(|id| planned.iter().all(|one| !one.fault.is_named_by(id))) {
            bail!("no mark has the id or the rule {unknown}");
        }
        planned.retain(|one| self.ids.is_empty() || self.ids.iter().any(|id| one.fault.is_named_by(id)));
        planned.retain(|one| self.shard.is_none_or(|shard| shard.has(&one.fault.id)));
        if let Some(commit) = &self.since {
            let changed =
                changes(&git(&["diff", "--unified=0", "--no-color", "--no-ext-diff", commit, "--", "*.rs"])?)?;
            let mut kept = Vec::new();
            for one in planned {
                if touches(&one.fault, &changed)? {
                    kept.push(one);
                }
            }
            planned = kept;
        }
        if self.within.is_some() {
            // The order depends on HEAD. If git fails, the order is the same in each run.
            let head = git(&["rev-parse", "HEAD"]).unwrap_or_default();
            planned.sort_by_cached_key(|one| Shard::hash(&format!("{} {}", head.trim(), one.fault.id)));
        }
        Ok(planned)
    }
}

/// True if a line changed between the comment that describes the fault and the end of the code that the fault replaces.
fn touches(fault: &Fault, changed: &Changed) -> anyhow::Result<bool> {
    let Some(ranges) = changed.get(&fault.file) else { return Ok(false) };
    let text =
        std::fs::read_to_string(root().join(&fault.file)).with_context(|| format!("cannot read {}", fault.file))?;
    let end = text[..fault.place(&text)?.end].matches('\n').count() + 1;
    Ok(ranges.iter().any(|range| *range.start() <= end && fault.line <= *range.end()))
}

/// Returns the changed lines of each file, from a diff without context. If lines were removed, the two lines next to them count
/// as changed.
fn changes(difference: &str) -> anyhow::Result<Changed> {
    let mut changed = Changed::new();
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
    Ok(changed)
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").current_dir(root()).args(arguments).output().context("cannot call git")?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).context("git's answer is not text")
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn changed_lines_are_read_from_a_difference_without_context() {
        let difference = "--- a/core/src/a.rs\n+++ b/core/src/a.rs\n@@ -3 +3 @@ fn a() {\n-x\n+y\n@@ -9,2 +9,3 @@\n\
                          +a\n+b\n+c\n@@ -20,2 +20,0 @@\n-a\n-b\n--- a/b.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        let changed = changes(difference).expect("a difference");
        assert_eq!(changed["core/src/a.rs"][..3], [3..=4, 9..=11, 20..=21]);
    }
}
