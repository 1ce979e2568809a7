//! Objects without which a key does not exist. The agent forgets what it recorded about a key with the last of them.
//!
//! This is read through a [`Reader`], so the record of a key contains the objects that keep it. When the last one goes,
//! the key is planned once more, and forgotten.

use super::reader::Reader;
use super::{Key, is_among};
use crate::names;
use fleetnet_types::{ObjectName, Text};

impl Reader<'_> {
    /// True if an object exists that the key is for.
    pub(crate) fn has(self, key: &Key) -> bool {
        match key {
            Key::Service(service) => {
                self.hub_imports().get(service).is_some()
                    || self.internal_exports_of(service).next().is_some()
                    || self.claims_of(service).next().is_some()
            }
            Key::Slice(name) => self.slice_exports_named(name).next().is_some(),
            Key::Copy { slice, importer } => {
                let at = ObjectName { namespace: importer.clone(), name: slice.clone() };
                self.distributed_slices().get(&at).is_some()
                    || self.slice_exports_named(slice).any(|export| self.receives(importer, export))
            }
            Key::MergedImport { service, importer } => {
                let at = ObjectName { namespace: importer.clone(), name: names::merged_import_name(service) };
                self.merged_import(&at).is_some()
                    || self.merged_imports_in(service, importer).next().is_some()
                    || self.has_announcement(importer) && self.merged(service).is_some()
            }
            Key::Member(cluster) => self.member_agents().get(&names::member_agent(cluster)).is_some(),
        }
    }

    /// True if an importer receives an exported slice: the ServiceImport records the importer and lists the exporter,
    /// or the importer imports the Service by the standard API.
    fn receives(self, importer: &Text, export: &ObjectName) -> bool {
        let Some(export) = self.slice_exports().get(export) else { return false };
        let service = &export.spec.owner;
        let is_accepted = || self.exporters(service).is_some_and(|exporters| is_among(exporters, &export.meta.name));
        self.imports_merged(service, importer) || self.is_recorded(service, importer) && is_accepted()
    }
}
