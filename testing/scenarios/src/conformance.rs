//! Conformance suite: the same calls on memkube and on a real kube-apiserver, and the differences of their responses.
//!
//! ```text
//! table/*.calls ──> script (cases: sequences of calls) ──> run (one case on one server) ──> normal (comparable) ──> compare
//! random (cases from a seed, and smaller cases that still differ) ─┘
//! ```

pub mod compare;
pub mod normal;
pub mod pins;
pub mod random;
pub mod run;
pub mod script;
pub mod servers;
mod stream;

use script::Case;

/// Theme and text of the files of the main table. A file contains cases: sequences of calls with the expected status
/// codes.
const TABLE: [(&str, &str); 17] = [
    ("verbs", include_str!("conformance/table/verbs.calls")),
    ("metadata", include_str!("conformance/table/metadata.calls")),
    ("patches", include_str!("conformance/table/patches.calls")),
    ("strategic", include_str!("conformance/table/strategic.calls")),
    ("deletion", include_str!("conformance/table/deletion.calls")),
    ("selectors", include_str!("conformance/table/selectors.calls")),
    ("pages", include_str!("conformance/table/pages.calls")),
    ("watches", include_str!("conformance/table/watches.calls")),
    ("everywhere", include_str!("conformance/table/everywhere.calls")),
    ("pods", include_str!("conformance/table/pods.calls")),
    ("custom", include_str!("conformance/table/custom.calls")),
    ("definitions", include_str!("conformance/table/definitions.calls")),
    ("builtin", include_str!("conformance/table/builtin.calls")),
    ("forms", include_str!("conformance/table/forms.calls")),
    ("discovery", include_str!("conformance/table/discovery.calls")),
    ("times", include_str!("conformance/table/times.calls")),
    ("reviews", include_str!("conformance/table/reviews.calls")),
];

/// Name of the file with the known differences for the cases of [`table`].
pub const TABLE_NAME: &str = "table";
/// Name of the file with the known differences for the cases of [`forgetful_table`].
pub const FORGETFUL_NAME: &str = "forgetful";

/// Theme and text of the files with cases for servers that soon drop their watch history.
const FORGETFUL: [(&str, &str); 1] = [("expired", include_str!("conformance/table/expired.calls"))];

/// Name of the file with the known differences for the cases of [`cleaned_table`].
pub const CLEANED_NAME: &str = "cleaned";

/// Theme and text of the files with cases for clusters in which controllers delete objects.
const CLEANED: [(&str, &str); 1] = [("cleaned", include_str!("conformance/table/cleaned.calls"))];

/// Returns the cases for clusters in which kube-controller-manager empties namespaces and collects garbage.
///
/// # Errors
/// If a line is malformed; the error names file and line.
pub fn cleaned_table() -> anyhow::Result<Vec<Case>> {
    read(&CLEANED)
}

/// Returns the cases for servers that compact their store every [`servers::COMPACTION`], and so soon drop their watch
/// history.
///
/// # Errors
/// If a line is malformed; the error names file and line.
pub fn forgetful_table() -> anyhow::Result<Vec<Case>> {
    read(&FORGETFUL)
}

/// Returns the cases of the main table: all except those of [`forgetful_table`] and [`cleaned_table`].
///
/// # Errors
/// If a line is malformed; the error names file and line.
pub fn table() -> anyhow::Result<Vec<Case>> {
    read(&TABLE)
}

fn read(themes: &[(&str, &str)]) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (theme, text) in themes {
        cases.extend(script::parse(theme, text)?);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests;
