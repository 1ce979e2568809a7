//! Undecodable objects ([`crate::undecodable`]) in the member's view: the keys that they concern, and the names by which they
//! are found.

use super::{Key, View};
use crate::model::{EndpointSlice, HubSlice, Kind};
use crate::names;
use fleetnet_types::{ObjectName, Timestamp, Uid};

impl View {
    /// Requeues the keys that depend on an object that became undecodable, became decodable again or is gone. If only its
    /// content would tell the keys, all possible ones are requeued. That is rare.
    pub(super) fn undecodable_changed(&mut self, kind: Kind, name: &ObjectName, at: Timestamp, dirty: &mut Vec<Key>) {
        match kind {
            Kind::Service => {
                self.source_dirties(name, dirty);
                self.service_dirties(name, [None, None], at, dirty);
                self.import_slices_dirties(dirty);
            }
            Kind::ServiceExport => self.source_dirties(name, dirty),
            Kind::EndpointSlice => {
                dirty.push(Key::SliceExport(name.clone()));
                dirty.push(Key::SliceImport(name.name.clone()));
                if let Some(given) = self.slice_imports.get(&self.in_hub(name.name.clone())) {
                    self.slice_name_dirties(&name.name, &given.spec.owner, dirty);
                }
            }
            Kind::ServiceImport => {
                self.note_resolved(name, at);
                self.slice_import_dirties(name, dirty);
                let mcs = self.multi_cluster_services.in_namespace(&name.namespace);
                dirty.extend(mcs.map(|mcs| Key::MultiClusterService(mcs.meta.name.clone())));
                dirty.push(Key::Import(name.clone()));
            }
            Kind::MultiClusterService => {
                let imports = self.imports.in_namespace(&name.namespace);
                dirty.extend(imports.map(|import| Key::Import(import.meta.name.clone())));
                self.import_slices_dirties(dirty);
                dirty.push(Key::MultiClusterService(name.clone()));
            }
            Kind::InternalServiceExport => {
                dirty.extend(self.exports.iter().map(|export| Key::Export(export.meta.name.clone())));
            }
            Kind::InternalServiceImport => {
                dirty.extend(self.imports.iter().map(|import| Key::Import(import.meta.name.clone())));
            }
            Kind::EndpointSliceExport => {
                let exported = |slice: &&EndpointSlice| {
                    Self::service_of(slice).is_some_and(|service| self.exports.get(&service).is_some())
                };
                let slices = self.slices.iter().filter(exported);
                dirty.extend(slices.map(|slice| Key::SliceExport(slice.meta.name.clone())));
            }
            Kind::EndpointSliceImport => {
                self.note_orphan(&name.name, at);
                dirty.push(Key::SliceImport(name.name.clone()));
                dirty.push(Key::SliceExport(self.in_system(name.name.clone())));
            }
            Kind::MemberAgent => dirty.push(Key::Heartbeat),
            Kind::Namespace => {}
        }
    }

    /// Requeues an exported Service and the exports of its slices.
    fn source_dirties(&self, service: &ObjectName, dirty: &mut Vec<Key>) {
        dirty.push(Key::Export(service.clone()));
        dirty.extend(self.slices_of.get(service).cloned().map(Key::SliceExport));
        let exports = self.slice_exports_under.get(service).filter_map(|export| self.slice_exports.get(export));
        dirty.extend(exports.map(|export| Key::SliceExport(export.spec.reference.source.clone())));
    }

    /// Requeues all distributed slices, and all imported slices that the hub no longer distributes.
    fn import_slices_dirties(&self, dirty: &mut Vec<Key>) {
        let given = self.slice_imports.iter().map(|given: &HubSlice| given.meta.name.name.clone());
        dirty.extend(given.chain(self.stamps.orphans().cloned()).map(Key::SliceImport));
    }

    /// True if the Service or its ServiceExport is undecodable, so that it is unknown whether the Service is exported.
    pub(crate) fn is_export_unknown(&self, service: &ObjectName) -> bool {
        self.undecodable.has(Kind::Service, service) || self.undecodable.has(Kind::ServiceExport, service)
    }

    /// Returns the names that a member's object may have in the hub, in order of preference. Without the object's UID only the
    /// first name is known.
    pub(crate) fn names_in_hub(&self, object: &ObjectName, uid: Option<&Uid>) -> impl Iterator<Item = ObjectName> {
        let ObjectName { namespace, name } = object;
        let candidates = [names::joined(namespace, name), uid.map(|uid| names::joined_with_uid(namespace, name, uid))];
        candidates.into_iter().flatten().map(|name| self.in_hub(name))
    }

    /// Returns an undecodable object of the hub that has one of the possible names of this member's object.
    pub(crate) fn undecodable_in_hub(&self, kind: Kind, object: &ObjectName, uid: Option<&Uid>) -> Option<ObjectName> {
        self.names_in_hub(object, uid).find(|at| self.undecodable.has(kind, at))
    }
}
