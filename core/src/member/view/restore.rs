//! Restore of the hub from a backup. For some time, imports keep what they had before. The hub agent needs this time to
//! write the newest state again.

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

impl Restore {
    /// Returns the end of the time in which an import keeps its Services as they are; `None` after this time.
    pub(super) fn keeps_until(&self, now: Timestamp) -> Option<Timestamp> {
        Some(self.at.plus_micros(RESTORE_GRACE_MICROS)).filter(|until| now < *until)
    }
}
