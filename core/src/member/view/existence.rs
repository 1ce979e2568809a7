//! Objects without which a key and a fact do not exist. The agent forgets what it recorded about a key or a fact with
//! the last of them.
//!
//! This is read through a [`Reader`], so the record of a key or a fact contains the objects that keep it. When the last
//! one goes, the key or the fact is computed once more, and forgotten.

use super::Key;
use super::reader::Reader;
use super::value::Fact;
use crate::model::EndpointSlice;
use crate::names;
use fleetnet_types::ObjectName;

impl Reader<'_> {
    /// True if an object exists that the key is for. Most slices of a cluster belong to Services that are not exported,
    /// so they have no key.
    pub(crate) fn has(self, key: &Key) -> bool {
        match key {
            Key::Export(service) => self.requests_export(service) || self.internal_exports_of(service).next().is_some(),
            Key::SliceExport(slice) => self.has_slice_export(slice),
            Key::MultiClusterService(name) => self.multi_cluster_services().get(name).is_some(),
            Key::McsImport(service) => self.has_mcs_import(service),
            Key::Import(name) => self.imports().get(name).is_some() || self.claims_of(name).next().is_some(),
            Key::SliceImport(name) => self.has_slice_import(name),
            Key::Heartbeat => true,
            Key::Membership => self.memberships().get(&self.own_membership()).is_some(),
        }
    }

    fn has_slice_export(self, slice: &ObjectName) -> bool {
        let service = self.slices().get(slice).and_then(EndpointSlice::service_name);
        service.is_some_and(|service| self.requests_export(&service)) || self.slice_exports_of(slice).next().is_some()
    }

    fn has_mcs_import(self, service: &ObjectName) -> bool {
        self.has_merged_import(service) || self.has_mcs_derived(service) || self.mcs_imports().get(service).is_some()
    }

    fn has_slice_import(self, name: &ObjectName) -> bool {
        self.has_distributed_slice(name) || self.is_marked_imported(name)
    }

    /// True if the object of a fact exists.
    pub(crate) fn has_fact(self, fact: &Fact) -> bool {
        match fact {
            Fact::Exportable(service) => self.requests_export(service),
            Fact::Unneeded(service) => self.has_mcs_derived(service),
            Fact::Requested(service) => self.has_merged_import(service),
            Fact::Unresolved(import) => self.imports().get(import).is_some(),
            Fact::Fulfilled(import) => self.claims_of(import).next().is_some(),
            Fact::Orphaned(slice) | Fact::Outdated(slice) | Fact::Unlisted(slice) => self.is_marked_imported(slice),
        }
    }

    /// True if a user requests the export of a Service, by any API.
    fn requests_export(self, service: &ObjectName) -> bool {
        self.exports().get(service).is_some() || self.mcs_exports().get(service).is_some()
    }

    /// True if the hub merged the exports of a Service for this member.
    fn has_merged_import(self, service: &ObjectName) -> bool {
        self.merged_imports().get(&self.in_hub(names::merged_import_name(service))).is_some()
    }

    /// True if a Service has the name and the label of the derived Service of an import by the standard API.
    fn has_mcs_derived(self, service: &ObjectName) -> bool {
        self.services().get(&names::mcs_derived(service)).is_some_and(|service| service.imports.is_some())
    }

    /// True if the slice with this name has the mark of imported slices.
    pub(crate) fn is_marked_imported(self, slice: &ObjectName) -> bool {
        self.slices().get(slice).is_some_and(|slice| slice.imported)
    }
}
