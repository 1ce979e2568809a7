//! Check of the subjects of commits.

use super::source::Tree;
use std::path::Path;
use std::process::Command;

/// Last commit that may have any subject.
const BEFORE: &str = "b996e494";
/// Maximum number of characters of a subject, so that git and GitHub show the whole subject on one line.
const LONGEST: usize = 72;

/// Returns the subjects of the commits since [`BEFORE`], one a line. Merges are left out: git writes their subjects.
///
/// Returns an empty text if the tree is no work tree of git, or if the commit is not there, as in a shallow clone.
pub(super) fn read(root: &Path) -> String {
    let mut git = Command::new("git");
    git.current_dir(root).args(["log", "--no-merges", "--format=%s", &format!("{BEFORE}..HEAD")]);
    let found = root.join(".git").exists().then(|| git.output().ok()).flatten();
    let found = found.filter(|output| output.status.success());
    found.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns subjects that are too long or do not begin with a capital letter.
pub(super) fn subjects(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for subject in tree.subjects.lines() {
        let length = subject.chars().count();
        if length > LONGEST {
            places.push(format!("{subject:?}: {length} characters"));
        }
        if !subject.starts_with(char::is_uppercase) {
            places.push(format!("{subject:?} does not begin with a capital letter"));
        }
    }
    places
}
