//! Keys of what goes and waits for what comes in its place ([`crate::succession`]).

use super::{Key, View};
use crate::ids::ObjectName;
use crate::import::admission::admitted;
use crate::model::HubSlice;

impl View {
    /// What is to be withdrawn of an exported Service waits for what is to be exported in its place.
    pub(super) fn going_export_dirties(&self, service: &ObjectName, dirty: &mut Vec<Key>) {
        let exports = self.slice_exports_under.get(service).filter_map(|export| self.slice_exports.get(export));
        let stays = |export: &HubSlice| {
            let source = self.slices.live(&export.spec.reference.source);
            export.spec.content.endpoints.is_empty() || source.is_some_and(|slice| !slice.content.endpoints.is_empty())
        };
        let going = exports.filter(|export| !stays(export));
        dirty.extend(going.map(|export| Key::SliceExport(export.spec.reference.source.clone())));
    }

    /// The same of an imported Service.
    pub(super) fn going_import_dirties(&self, imported: &ObjectName, dirty: &mut Vec<Key>) {
        let given = self.slice_imports_of.get(imported).filter_map(|slice| self.slice_imports.get(slice));
        let going = given.filter(|slice| slice.meta.deleting || admitted(self, slice).content.endpoints.is_empty());
        dirty.extend(going.map(|slice| Key::SliceImport(slice.meta.name.name.clone())));
    }
}
