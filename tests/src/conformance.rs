//! The conformance suite: the same calls on memkube and on a real kube-apiserver, and what differs in their answers.
//!
//! ```text
//! table/*.calls ──> script (cases of steps) ──> play (one case on one server) ──> normal (what no two servers share) ──> compare
//! random (cases from a seed, and the smallest that still differs) ─┘
//! ```

pub mod compare;
pub mod normal;
pub mod plants;
pub mod play;
pub mod random;
pub mod script;
pub mod servers;
mod stream;

use script::Case;

/// The table, a file per theme.
const TABLE: [(&str, &str); 11] = [
    ("verbs", include_str!("conformance/table/verbs.calls")),
    ("metadata", include_str!("conformance/table/metadata.calls")),
    ("patches", include_str!("conformance/table/patches.calls")),
    ("strategic", include_str!("conformance/table/strategic.calls")),
    ("deletion", include_str!("conformance/table/deletion.calls")),
    ("selectors", include_str!("conformance/table/selectors.calls")),
    ("pages", include_str!("conformance/table/pages.calls")),
    ("watches", include_str!("conformance/table/watches.calls")),
    ("custom", include_str!("conformance/table/custom.calls")),
    ("builtin", include_str!("conformance/table/builtin.calls")),
    ("forms", include_str!("conformance/table/forms.calls")),
];

/// The whole table.
///
/// # Errors
/// Where a line of it cannot be read; the error names file and line.
pub fn table() -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (theme, text) in TABLE {
        cases.extend(script::parse(theme, text)?);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests;
