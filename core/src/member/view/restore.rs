//! Restore of the hub from a backup. For some time, imports keep what they had before. The hub agent needs this time to
//! write the newest state again.

use super::View;
use crate::limits::RESTORE_GRACE_MICROS;
use crate::model::MergedImport;
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Restore {
    /// Time at which this process saw the restore.
    pub(super) at: Timestamp,
    /// Merged import of each Service before the restore.
    pub(super) merged: BTreeMap<ObjectName, Arc<MergedImport>>,
}

impl View {
    /// Records a restore of the hub. If the hub is restored again before it has the newest state, the state before the
    /// first restore counts.
    pub(in crate::member) fn hub_restored(&mut self, at: Timestamp) {
        self.forget_restore(at);
        let merged = || {
            let live = self.merged_imports.iter().filter(|merged| !merged.meta.deleting);
            live.map(|merged| (merged.service.clone(), Arc::clone(&merged.import))).collect()
        };
        let merged = self.restore.take().map_or_else(merged, |earlier| earlier.merged);
        self.restore = Some(Restore { at, merged });
    }

    /// Drops the state before a restore after the time in which imports keep it.
    pub(super) fn forget_restore(&mut self, now: Timestamp) {
        if self.keeps_until(now).is_none() {
            self.restore = None;
        }
    }

    /// Returns the end of the time after a restore of the hub in which an import keeps its Services as they are. `None`
    /// at other times.
    pub(super) fn keeps_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = self.restore.as_ref().map(|restore| restore.at.plus_micros(RESTORE_GRACE_MICROS));
        until.filter(|until| now < *until)
    }
}
