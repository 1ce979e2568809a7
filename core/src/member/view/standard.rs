//! ServiceExports of the standard API in the member's view.

use super::value::Fact;
use super::{Effects, Key, View};
use crate::index::Taken;
use crate::model::StandardServiceExport;
use fleetnet_types::{ObjectName, Timestamp};

impl View {
    pub(super) fn take_standard_export(
        &mut self,
        export: StandardServiceExport,
        at: Timestamp,
        effects: &mut Effects,
    ) -> bool {
        let name = export.meta.name.clone();
        let Taken::Changed(before) = self.standard_exports.take(export) else { return false };
        if before.is_none() {
            self.records.service_changed(&name, at);
            self.export_appeared(name, effects);
        }
        true
    }

    /// A user requests the export of a Service.
    pub(super) fn export_appeared(&self, service: ObjectName, effects: &mut Effects) {
        effects.keys.push(Key::Export(service.clone()));
        // fault ME1.1: .map(Key::SliceExport) ~> .map(Key::SliceExport).take(0)
        effects.keys.extend(self.slices_of.get(&service).cloned().map(Key::SliceExport));
        effects.facts.push(Fact::Exportable(service));
    }

    /// True if a user requests the export of a Service, by any API.
    pub(super) fn requests_export(&self, service: &ObjectName) -> bool {
        self.exports.get(service).is_some() || self.standard_exports.get(service).is_some()
    }
}
