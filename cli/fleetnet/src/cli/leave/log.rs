//! Log of the objects that leaving changes.

use crate::cli::objects::{Action, Done, Reference};
use crate::cli::output::progress::Progress;
use std::collections::BTreeMap;

/// Steps that the command has done so far. They are printed also if the command fails later.
pub(super) struct Log<'a> {
    pub(super) done: Vec<Done>,
    /// URL of each cluster by its context.
    pub(super) servers: BTreeMap<String, String>,
    pub(super) is_dry_run: bool,
    pub(super) progress: &'a Progress,
}

impl Log<'_> {
    pub(super) fn add(&mut self, object: Reference, cluster: &str, action: Action, note: &str) {
        self.progress.step(&format!("{cluster}: {object}"));
        self.done.push(Done { object, cluster: cluster.to_owned(), action, note: note.to_owned() });
    }
}
