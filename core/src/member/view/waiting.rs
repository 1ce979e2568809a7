//! Requeues slices whose removal waits for their replacement ([`crate::handover`]).

use super::{Key, View};
use crate::model::HubSlice;
use fleetnet_types::ObjectName;

impl View {
    /// Requeues exports of a Service whose source slice is gone or has no endpoints any more. Their removal or update may wait
    /// for a replacement.
    pub(super) fn requeue_waiting_exports(&self, service: &ObjectName, requeue: &mut Vec<Key>) {
        let exports = self.slice_exports_under.get(service).filter_map(|export| self.slice_exports.get(export));
        let stays = |export: &HubSlice| {
            let source = self.slices.live(&export.spec.reference.source);
            export.spec.content.endpoints.is_empty() || source.is_some_and(|slice| !slice.content.endpoints.is_empty())
        };
        let removed = exports.filter(|export| !stays(export));
        requeue.extend(removed.map(|export| Key::SliceExport(export.spec.reference.source.clone())));
    }

    /// Returns the Service of a distributed slice, which may be the replacement of other slices of this Service. `None` if the
    /// distributed slice is being removed or has no endpoint to import, so that it replaces nothing.
    pub(super) fn replaced_by_import(&self, distributed: &ObjectName) -> Option<ObjectName> {
        let owner = &self.distributed_slices.get(distributed)?.spec.owner;
        (!self.withdrawn_slices_of.holds(owner, distributed)).then(|| owner.clone())
    }

    /// Requeues distributed slices of a Service that are being deleted or have no endpoint to import. The removal of their
    /// imported slices may wait for a replacement.
    pub(super) fn requeue_waiting_imports(&self, imported: &ObjectName, requeue: &mut Vec<Key>) {
        // fault T35.7: withdrawn_slices_of.get(imported ~> distributed_slices_of.get(imported).filter(|slice| self.withdrawn_slices_of.holds(imported, slice)
        requeue.extend(self.withdrawn_slices_of.get(imported).map(|slice| Key::SliceImport(slice.name.clone())));
    }
}
