//! Orphans: imported slices that the hub no longer distributes. The view records the time at which each slice became an orphan.

use super::View;
use crate::model::Kind;
use fleetnet_types::{Text, Timestamp};

impl View {
    /// Finds the orphans among all imported slices. The caller must have a complete list of distributed slices; otherwise a
    /// slice looks like an orphan only because its distributed slice is not listed yet.
    pub(super) fn note_orphans(&mut self, at: Timestamp) {
        let system = self.settings.fleet_system_namespace.clone();
        let imported: Vec<Text> = self
            .slices
            .in_namespace(&system)
            .filter(|slice| slice.imported)
            .map(|slice| slice.meta.name.name.clone())
            .collect();
        for slice in imported {
            self.note_orphan(&slice, at);
        }
    }

    /// Records the slice with this name as an orphan, or removes the record if the slice is no orphan.
    pub(super) fn note_orphan(&mut self, slice: &Text, at: Timestamp) {
        let present = self.slices.get(&self.in_system(slice.clone())).is_some_and(|present| present.imported);
        let distributed_at = self.in_hub(slice.clone());
        let distributed = self.distributed_slices.get(&distributed_at).is_some()
            || self.undecodable.has(Kind::EndpointSliceImport, &distributed_at);
        // fault P9.3: complete(&[Kind::EndpointSliceImport]) ~> complete(&[])
        let known = self.watches.complete(&[Kind::EndpointSliceImport]);
        if !present || distributed {
            self.stamps.orphaned.end(slice);
        } else if known {
            self.stamps.orphaned.begin(slice, at);
        }
    }
}
