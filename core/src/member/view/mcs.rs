//! Objects of the standard API in the member's view.

use super::value::{Bucket, Computation, Fact};
use super::{Effects, Key, McsApi, View};
use crate::index::Taken;
use crate::model::{McsServiceExport, McsServiceImport, MergedServiceImport};
use fleetnet_types::{ObjectName, Text, Timestamp};

impl View {
    pub(super) fn take_mcs_export(&mut self, export: McsServiceExport, at: Timestamp, effects: &mut Effects) -> bool {
        let name = export.meta.name.clone();
        let Taken::Changed(before) = self.mcs_exports.take(export) else { return false };
        if before.is_none() {
            self.records.service_changed(&name, at);
            self.export_appeared(name, effects);
        }
        true
    }

    /// The request of a user for the export of a Service appeared or changed.
    pub(super) fn export_appeared(&self, service: ObjectName, effects: &mut Effects) {
        effects.keys.push(Key::Export(service.clone()));
        effects.keys.extend(self.bucket(Bucket::Slices, &service).cloned().map(Key::SliceExport));
        effects.results.push(Fact::Exportable(service).into());
    }

    pub(super) fn take_merged_import(&mut self, import: MergedServiceImport, effects: &mut Effects) -> bool {
        let service = import.service.clone();
        let Taken::Changed(before) = self.merged_imports.take(import) else { return false };
        if before.is_none_or(|before| before.service != service) {
            self.import_appeared(service, effects);
        }
        true
    }

    pub(super) fn take_mcs_import(&mut self, mut import: McsServiceImport, effects: &mut Effects) -> bool {
        let name = import.meta.name.clone();
        let present = self.mcs_imports.get(&name).filter(|present| present.meta.uid == import.meta.uid);
        // Another writer may have removed the label that shows the writer.
        if present.is_some_and(|present| present.is_ours) {
            import.relabelled = !import.is_ours;
            import.is_ours = true;
        }
        let Taken::Changed(before) = self.mcs_imports.take(import) else { return false };
        if before.is_none() {
            self.import_appeared(name, effects);
        }
        true
    }

    /// An object of an imported Service appeared or changed.
    pub(super) fn import_appeared(&self, service: ObjectName, effects: &mut Effects) {
        if self.settings.mcs_api != McsApi::Off {
            effects.keys.push(Key::McsImport(service.clone()));
            effects.results.extend([Fact::Unneeded(service.clone()), Fact::Requested(service)].map(Computation::Fact));
        }
    }

    /// True if slices are imported into a namespace.
    pub(super) fn is_for_imports(&self, namespace: &Text) -> bool {
        *namespace == self.settings.fleet_system_namespace || self.settings.mcs_api != McsApi::Off
    }
}
