//! Check of the subjects of commits.

use super::source::Tree;

/// Maximum number of characters of a subject, so that git and GitHub show the whole subject on one line.
const LONGEST: usize = 72;

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
