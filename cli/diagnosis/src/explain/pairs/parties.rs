//! Clusters that export and import a Service by one API.

use std::collections::BTreeSet;

/// Clusters that export and import a Service by one API.
#[derive(Debug, Default)]
pub(super) struct Parties {
    pub(super) exporters: BTreeSet<String>,
    pub(super) importers: BTreeSet<String>,
}

impl Parties {
    pub(super) fn is_empty(&self) -> bool {
        self.exporters.is_empty() && self.importers.is_empty()
    }
}
