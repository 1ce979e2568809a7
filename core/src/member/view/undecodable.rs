//! Undecodable objects ([`crate::undecodable`]) in the member's view: the keys to plan again when such an object changes, and the
//! names that plans use to look up such an object.

use super::{Key, View};
use crate::model::{EndpointSlice, HubSlice, Kind};
use crate::names;
use fleetnet_types::{ObjectName, Timestamp, Uid};

impl View {
    /// Requeues the keys that depend on an object that became undecodable, became decodable again or is gone. If only the
    /// unknown content would show which keys depend on it, all possible keys are requeued. Undecodable objects are rare.
    pub(super) fn requeue_for_undecodable(
        &mut self,
        kind: Kind,
        name: &ObjectName,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        match kind {
            Kind::Service => {
                self.requeue_export_of(name, requeue);
                self.requeue_for_service(name, [None, None], at, requeue);
                self.requeue_all_distributed_slices(requeue);
            }
            Kind::ServiceExport => self.requeue_export_of(name, requeue),
            Kind::EndpointSlice => {
                requeue.push(Key::SliceExport(name.clone()));
                requeue.push(Key::SliceImport(name.name.clone()));
                if let Some(distributed) = self.distributed_slices.get(&self.in_hub(name.name.clone())) {
                    self.requeue_for_slice_name(&name.name, &distributed.spec.owner, requeue);
                }
            }
            Kind::ServiceImport => {
                self.note_resolved(name, at);
                self.requeue_distributed_slices_of(name, requeue);
                let mcs = self.multi_cluster_services.in_namespace(&name.namespace);
                requeue.extend(mcs.map(|mcs| Key::MultiClusterService(mcs.meta.name.clone())));
                requeue.push(Key::Import(name.clone()));
            }
            Kind::MultiClusterService => {
                let imports = self.imports.in_namespace(&name.namespace);
                requeue.extend(imports.map(|import| Key::Import(import.meta.name.clone())));
                self.requeue_all_distributed_slices(requeue);
                requeue.push(Key::MultiClusterService(name.clone()));
            }
            Kind::InternalServiceExport => {
                requeue.extend(self.exports.iter().map(|export| Key::Export(export.meta.name.clone())));
            }
            Kind::InternalServiceImport => {
                requeue.extend(self.imports.iter().map(|import| Key::Import(import.meta.name.clone())));
            }
            Kind::EndpointSliceExport => {
                let exported = |slice: &&EndpointSlice| {
                    Self::service_of(slice).is_some_and(|service| self.exports.get(&service).is_some())
                };
                let slices = self.slices.iter().filter(exported);
                requeue.extend(slices.map(|slice| Key::SliceExport(slice.meta.name.clone())));
            }
            Kind::EndpointSliceImport => {
                self.note_orphan(&name.name, at);
                requeue.push(Key::SliceImport(name.name.clone()));
                requeue.push(Key::SliceExport(self.in_system(name.name.clone())));
            }
            Kind::MemberAgent => requeue.push(Key::Heartbeat),
            Kind::Namespace => {}
        }
    }

    /// Requeues an exported Service and the exports of its slices.
    fn requeue_export_of(&self, service: &ObjectName, requeue: &mut Vec<Key>) {
        requeue.push(Key::Export(service.clone()));
        requeue.extend(self.slices_of.get(service).cloned().map(Key::SliceExport));
        let exports = self.slice_exports_under.get(service).filter_map(|export| self.slice_exports.get(export));
        requeue.extend(exports.map(|export| Key::SliceExport(export.spec.reference.source.clone())));
    }

    /// Requeues all distributed slices, and all imported slices that the hub no longer distributes.
    fn requeue_all_distributed_slices(&self, requeue: &mut Vec<Key>) {
        let distributed =
            self.distributed_slices.iter().map(|distributed: &HubSlice| distributed.meta.name.name.clone());
        requeue.extend(distributed.chain(self.stamps.orphaned.keys().cloned()).map(Key::SliceImport));
    }

    /// True if the Service or its ServiceExport is undecodable, so that it is unknown whether the Service is exported.
    pub(crate) fn is_export_unknown(&self, service: &ObjectName) -> bool {
        self.undecodable.has(Kind::Service, service) || self.undecodable.has(Kind::ServiceExport, service)
    }

    /// Returns the names that the hub's object for this ServiceExport or ServiceImport may have, in order of preference. The
    /// second name contains digits of the UID, so without `uid` there is only the first name.
    pub(crate) fn names_in_hub(&self, object: &ObjectName, uid: Option<&Uid>) -> impl Iterator<Item = ObjectName> {
        let ObjectName { namespace, name } = object;
        let candidates = [names::joined(namespace, name), uid.map(|uid| names::joined_with_uid(namespace, name, uid))];
        candidates.into_iter().flatten().map(|name| self.in_hub(name))
    }

    /// Returns an undecodable object in the hub that may belong to this ServiceExport or ServiceImport, because it has one of
    /// the names from `names_in_hub`.
    pub(crate) fn undecodable_in_hub(&self, kind: Kind, object: &ObjectName, uid: Option<&Uid>) -> Option<ObjectName> {
        self.names_in_hub(object, uid).find(|at| self.undecodable.has(kind, at))
    }
}
