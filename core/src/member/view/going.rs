//! Requeues slices whose removal waits for their replacement ([`crate::handover`]).

use super::{Key, View};
use crate::model::HubSlice;
use fleetnet_types::ObjectName;

impl View {
    /// Requeues the exported slices of a Service whose withdrawal waits for a replacement.
    pub(super) fn going_export_dirties(&self, service: &ObjectName, dirty: &mut Vec<Key>) {
        let exports = self.slice_exports_under.get(service).filter_map(|export| self.slice_exports.get(export));
        let stays = |export: &HubSlice| {
            let source = self.slices.live(&export.spec.reference.source);
            export.spec.content.endpoints.is_empty() || source.is_some_and(|slice| !slice.content.endpoints.is_empty())
        };
        let going = exports.filter(|export| !stays(export));
        dirty.extend(going.map(|export| Key::SliceExport(export.spec.reference.source.clone())));
    }

    /// Returns the Service whose slices may wait for the import of this slice; `None` if this slice is itself being removed.
    pub(super) fn replaced_by_import(&self, given: &ObjectName) -> Option<ObjectName> {
        let owner = &self.slice_imports.get(given)?.spec.owner;
        (!self.going_slice_imports_of.holds(owner, given)).then(|| owner.clone())
    }

    /// Requeues the imported slices of a Service whose removal waits for a replacement.
    pub(super) fn going_import_dirties(&self, imported: &ObjectName, dirty: &mut Vec<Key>) {
        // fault T35.7: going_slice_imports_of.get(imported ~> slice_imports_of.get(imported).filter(|slice| self.going_slice_imports_of.holds(imported, slice)
        dirty.extend(self.going_slice_imports_of.get(imported).map(|slice| Key::SliceImport(slice.name.clone())));
    }
}
