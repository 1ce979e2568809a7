//! Stores changes of objects in the member's view, and requeues the keys that depend on the changed objects.

use super::{Key, View};
use crate::index::Taken;
use crate::member::export;
use crate::member::import::admission::{NotImported, admitted, has_ipv6};
use crate::model::{
    EndpointSlice, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MultiClusterService, Object, Service,
    ServiceExport, ServiceImport, ServicePort, SessionAffinity,
};
use crate::names;
use fleetnet_types::{ObjectName, Text, Timestamp, Uid};

impl View {
    pub(super) fn take(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<Key>) {
        match object {
            Object::Service(service) => self.take_service(service, at, requeue),
            Object::EndpointSlice(slice) => self.take_slice(slice, at, requeue),
            Object::ServiceExport(export) => self.take_export(export, at, requeue),
            Object::ServiceImport(import) => self.take_import(import, at, requeue),
            Object::MultiClusterService(mcs) => self.take_multi_cluster_service(mcs, at, requeue),
            Object::InternalServiceExport(export) => self.take_internal_export(export, at, requeue),
            Object::InternalServiceImport(import) => self.take_claim(import, at, requeue),
            Object::EndpointSliceExport(slice) => self.take_slice_export(slice, at, requeue),
            Object::EndpointSliceImport(slice) => self.take_distributed_slice(slice, at, requeue),
            Object::MemberAgent(agent) => self.take_member_agent(agent, at, requeue),
            Object::Namespace(namespace) => self.take_namespace(namespace),
        }
    }

    pub(super) fn forget(&mut self, kind: Kind, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        match kind {
            Kind::Service => self.forget_service(name, uid, at, requeue),
            Kind::EndpointSlice => self.forget_slice(name, uid, requeue),
            Kind::ServiceExport => self.forget_export(name, uid, at, requeue),
            Kind::ServiceImport => self.forget_import(name, uid, at, requeue),
            Kind::MultiClusterService => self.forget_multi_cluster_service(name, uid, at, requeue),
            Kind::InternalServiceExport => self.forget_internal_export(name, uid, at, requeue),
            Kind::InternalServiceImport => self.forget_claim(name, uid, at, requeue),
            Kind::EndpointSliceExport => self.forget_slice_export(name, uid, at, requeue),
            Kind::EndpointSliceImport => self.forget_distributed_slice(name, uid, at, requeue),
            Kind::MemberAgent => self.forget_member_agent(name, uid, at, requeue),
            Kind::Namespace => {}
        }
    }

    // === Services: exported Services and derived Services ===

    fn take_service(&mut self, mut service: Service, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = service.meta.name.clone();
        let present = self.services.get(&name).filter(|present| present.meta.uid == service.meta.uid);
        if let Some(derived_from) = present.and_then(|present| present.derived_from.clone()) {
            // Another writer may have edited the labels of a derived Service. So the view keeps `derived_from` from the
            // previous state, and still treats the Service as a derived Service.
            // fault M17.1: service.relabelled = service.derived_from.replace(derived_from.clone()) != Some(derived_from) ~> let _ = derived_from
            service.relabelled = service.derived_from.replace(derived_from.clone()) != Some(derived_from);
        }
        let derived_from = service.derived_from.clone();
        let Taken::Changed(before) = self.services.take(service) else { return };
        fn exported_fields(service: &Service) -> (&Uid, &[ServicePort], bool, SessionAffinity) {
            (&service.meta.uid, &service.ports, service.headless, service.session_affinity)
        }
        if before.as_ref().map(exported_fields) != self.services.get(&name).map(exported_fields) {
            self.stamps.service_changed(&name, at);
        }
        let derived_before = before.and_then(|old| old.derived_from);
        // fault A3.3: self.derived_of.shift(derived_before.clone(), derived_from.clone(), &name); ~> if self.multi_cluster_services.iter().next().is_some() { self.derived_of.shift(derived_before.clone(), derived_from.clone(), &name); }
        self.derived_of.shift(derived_before.clone(), derived_from.clone(), &name);
        self.requeue_for_service(&name, [derived_before, derived_from], at, requeue);
    }

    fn forget_service(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let Some(before) = self.services.remove(name, uid) else { return };
        self.stamps.service_gone(name);
        if self.exports.get(name).is_none() {
            self.stamps.service_forgotten(name);
        }
        self.derived_of.shift(before.derived_from.clone(), None, name);
        self.requeue_for_service(name, [before.derived_from, None], at, requeue);
    }

    pub(super) fn requeue_for_service(
        &mut self,
        name: &ObjectName,
        derived_from: [Option<ObjectName>; 2],
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        // fault S2.2: exports.get(name).is_some() || self. ~>
        if self.exports.get(name).is_some() || self.internal_exports_of.get(name).next().is_some() {
            requeue.push(Key::Export(name.clone()));
        }
        self.requeue_if_exportable_changed(name, at, requeue);
        let mut mcs: Vec<ObjectName> = derived_from.into_iter().flatten().collect();
        if name.namespace == self.settings.fleet_system_namespace {
            mcs.extend(self.mcs_of_derived_name.get(&name.name).cloned());
            // fault R7.1: self.import_name_freed(requeue); ~>
            self.import_name_freed(requeue);
        }
        for mcs in mcs {
            // fault M14.1: self.requeue_bound_slices(&mcs, requeue); ~>
            self.requeue_bound_slices(&mcs, requeue);
            // fault M16.1, M20.1: requeue.push(Key::MultiClusterService(mcs)); ~>
            requeue.push(Key::MultiClusterService(mcs));
        }
    }

    /// Requeues the slices of a Service when the Service becomes exportable, or stops being exportable.
    fn requeue_if_exportable_changed(&mut self, service: &ObjectName, at: Timestamp, requeue: &mut Vec<Key>) {
        let exportable = export::exportable(self, service, at).is_some();
        let since = &mut self.stamps.exportable;
        if if exportable { since.begin(service, at) } else { since.end(service) } {
            requeue.extend(self.slices_of.get(service).cloned().map(Key::SliceExport));
            self.requeue_waiting_exports(service, requeue);
        }
    }

    /// Requeues the imported slices of a MultiClusterService after the MultiClusterService or its derived Service changed. So
    /// the slices get the right Service label.
    fn requeue_bound_slices(&self, mcs: &ObjectName, requeue: &mut Vec<Key>) {
        if let Some(mcs) = self.multi_cluster_services.get(mcs) {
            let imported = ObjectName::new(mcs.meta.name.namespace.clone(), mcs.import_name.clone());
            self.requeue_distributed_slices_of(&imported, requeue);
        }
    }

    pub(super) fn requeue_distributed_slices_of(&self, imported: &ObjectName, requeue: &mut Vec<Key>) {
        requeue.extend(self.distributed_slices_of.get(imported).map(|slice| Key::SliceImport(slice.name.clone())));
        requeue.extend(self.stamps.orphaned.keys().map(|slice| Key::SliceImport(slice.clone())));
    }

    // === EndpointSlices: source slices and imported slices ===

    fn take_slice(&mut self, mut slice: EndpointSlice, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = slice.meta.name.clone();
        let present = self.slices.get(&name).filter(|present| present.meta.uid == slice.meta.uid);
        if present.is_some_and(|present| present.imported) {
            slice.relabelled = !slice.imported;
            slice.imported = true;
        }
        let service = Self::service_of(&slice);
        let generation = slice.meta.generation;
        let Taken::Changed(before) = self.slices.take(slice) else { return };
        let new = before.as_ref().is_none_or(|old| Some(&old.meta.uid) != self.slices.get(&name).map(|s| &s.meta.uid));
        let changes_for_hub = |old: &EndpointSlice, slice: &EndpointSlice| {
            old.content != slice.content && self.content_for_hub(old, at) != self.content_for_hub(slice, at)
        };
        if new {
            self.stamps.slice_created(&name, generation, at);
        } else if before.as_ref().zip(self.slices.get(&name)).is_some_and(|(old, slice)| changes_for_hub(old, slice)) {
            self.stamps.slice_changed(&name, generation, at);
        } else {
            self.stamps.slice_touched(&name, generation);
        }
        self.note_pending(&name, at);
        let service_before = before.as_ref().and_then(Self::service_of);
        self.slices_of.shift(service_before.clone(), service.clone(), &name);
        self.requeue_for_slice(&name, at, requeue);
        for service in service_before.iter().chain(service.iter().filter(|now| Some(*now) != service_before.as_ref())) {
            self.requeue_waiting_exports(service, requeue);
        }
    }

    // fault E6.1: requeue: &mut Vec<Key>) { ~> _: &mut Vec<Key>) { let requeue = &mut Vec::new();
    fn forget_slice(&mut self, name: &ObjectName, uid: &str, requeue: &mut Vec<Key>) {
        let Some(before) = self.slices.remove(name, uid) else { return };
        self.stamps.slice_gone(name);
        // fault P12.3: name.namespace == self.settings.fleet_system_namespace ~> false
        if name.namespace == self.settings.fleet_system_namespace {
            self.answered_excess.remove(&name.name);
        }
        let service = Self::service_of(&before);
        self.slices_of.shift(service.clone(), None, name);
        self.requeue_for_slice(name, Timestamp::default(), requeue);
        if let Some(service) = service {
            self.requeue_waiting_exports(&service, requeue);
        }
    }

    fn requeue_for_slice(&mut self, name: &ObjectName, at: Timestamp, requeue: &mut Vec<Key>) {
        let exported = self.slices.get(name).and_then(Self::service_of).is_some_and(|service| {
            self.exports.get(&service).is_some() // most slices belong to Services that are not exported, and need no plan
        });
        if exported || self.slice_exports_of.get(name).next().is_some() {
            requeue.push(Key::SliceExport(name.clone()));
        }
        if name.namespace == self.settings.fleet_system_namespace {
            self.note_orphan(&name.name, at);
            // fault P7.1: requeue.push(Key::SliceImport(name.name.clone())); ~>
            requeue.push(Key::SliceImport(name.name.clone()));
            if let Some(replaced) = self.replaced_by_import(&self.in_hub(name.name.clone())) {
                self.requeue_waiting_imports(&replaced, requeue);
            }
            if let Some(distributed) = self.distributed_slices.get(&self.in_hub(name.name.clone())) {
                // fault P5.4: self.requeue_for_slice_name(&name.name, &distributed.spec.owner, requeue); ~>
                self.requeue_for_slice_name(&name.name, &distributed.spec.owner, requeue);
            }
        }
    }

    // === ServiceExports ===

    fn take_export(&mut self, export: ServiceExport, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = export.meta.name.clone();
        let uid = export.meta.uid.clone();
        let Taken::Changed(before) = self.exports.take(export) else { return };
        if before.as_ref().is_none_or(|old| old.meta.uid != uid) {
            self.stamps.service_changed(&name, at);
        }
        self.update_nameless_export(&name);
        requeue.push(Key::Export(name.clone()));
        self.requeue_if_exportable_changed(&name, at, requeue);
    }

    fn forget_export(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        if self.exports.remove(name, uid).is_some() {
            if self.services.get(name).is_none() {
                self.stamps.service_forgotten(name);
            }
            self.update_nameless_export(name);
            requeue.push(Key::Export(name.clone()));
            self.requeue_if_exportable_changed(name, at, requeue);
        }
    }

    // === Exports of this member in the hub ===

    fn take_internal_export(&mut self, export: InternalServiceExport, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = export.meta.name.clone();
        let service = export.reference.source.clone();
        let has_outcome = export.has_outcome();
        let since = export.reference.exported_since;
        let Taken::Changed(before) = self.internal_exports.take(export) else { return };
        if has_outcome {
            self.stamps.outcome_seen(&service, since, at);
        }
        let service_before = before.map(|old| old.reference.source);
        self.internal_exports_of.shift(service_before.clone(), Some(service.clone()), &name);
        // fault A6.7: service_before.filter(|old| *old != service).into_iter().chain([service]) ~> [service]
        for service in service_before.filter(|old| *old != service).into_iter().chain([service]) {
            self.requeue_if_exportable_changed(&service, at, requeue);
            // fault A3.2: requeue.push(Key::Export(service)); ~>
            requeue.push(Key::Export(service));
        }
    }

    fn forget_internal_export(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let Some(before) = self.internal_exports.remove(name, uid) else { return };
        self.internal_exports_of.shift(Some(before.reference.source.clone()), None, name);
        self.requeue_if_exportable_changed(&before.reference.source, at, requeue);
        // fault R5.2: self.export_name_freed(requeue); ~>
        self.export_name_freed(requeue);
        // fault S13.2, A10.1: requeue.push(Key::Export(before.reference.source)); ~>
        requeue.push(Key::Export(before.reference.source));
    }

    fn take_slice_export(&mut self, export: HubSlice, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = export.meta.name.clone();
        let (source, owner) = (export.spec.reference.source.clone(), export.spec.owner.clone());
        let Taken::Changed(before) = self.slice_exports.take(export) else { return };
        self.slice_exports_under.shift(before.as_ref().map(|old| old.spec.owner.clone()), Some(owner.clone()), &name);
        let source_before = before.map(|old| old.spec.reference.source);
        self.slice_exports_of.shift(source_before.clone(), Some(source.clone()), &name);
        for source in source_before.iter().chain([&source]) {
            self.note_pending(source, at);
        }
        requeue.extend(source_before.filter(|old| *old != source).map(Key::SliceExport));
        self.requeue_waiting_exports(&owner, requeue);
        requeue.push(Key::SliceExport(source));
    }

    /// Updates the record of a slice's changes that are not in the hub yet. Called after a change of the slice and after a
    /// change of its exports, because their watch events may arrive in any order.
    pub(super) fn note_pending(&mut self, name: &ObjectName, at: Timestamp) {
        let Some(slice) = self.slices.get(name) else { return };
        let hub = self.hub_feature_set(at);
        if hub.slice(&slice.content).is_none() {
            return self.stamps.slice_settled(name); // the hub does not support such slices, so no change is pending
        }
        let exports = self.slice_exports_of.get(name).filter_map(|export| self.slice_exports.get(export));
        let of_this = exports.map(|export| &export.spec).filter(|spec| spec.reference.uid == slice.meta.uid);
        let (mut carried, mut same) = (None, false);
        for spec in of_this {
            carried = carried.max(Some(spec.reference.generation));
            // fault U10.1: hub.is_carried(&spec.content, &slice.content) ~> *spec.content == slice.content
            same |= hub.is_carried(&spec.content, &slice.content); // also true if the slice was changed and then changed back
        }
        if same {
            self.stamps.slice_settled(name);
        } else {
            self.stamps.slice_pending(name, carried, slice.meta.generation, at);
        }
    }

    fn forget_slice_export(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let Some(before) = self.slice_exports.remove(name, uid) else { return };
        let source = before.spec.reference.source;
        self.slice_exports_of.shift(Some(source.clone()), None, name);
        self.slice_exports_under.shift(Some(before.spec.owner), None, name);
        self.note_pending(&source, at);
        let is_named_after = names::is_slice_export_name_of_source(&name.name, &self.settings.cluster, &source);
        if !is_named_after {
            // Another writer edited the reference in the export that is gone: the export had the name of one slice, and its
            // reference named another slice. So the slice with the UID in the reference may have waited for the name.
            let of_uid = self.slices.iter().filter(|slice| slice.meta.uid == before.spec.reference.uid);
            // fault A6.4: requeue.extend(of_uid.map(|slice| Key::SliceExport(slice.meta.name.clone())) ~> let _ = of_uid.count(
            requeue.extend(of_uid.map(|slice| Key::SliceExport(slice.meta.name.clone())));
        }
        requeue.push(Key::SliceExport(source));
    }

    // === MultiClusterServices and ServiceImports ===

    fn take_multi_cluster_service(&mut self, mcs: MultiClusterService, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = mcs.meta.name.clone();
        let after = (Some(import_name_of(&mcs)), mcs.derived_label.clone());
        let Taken::Changed(before) = self.multi_cluster_services.take(mcs) else { return };
        let before = before.map_or((None, None), |old| (Some(import_name_of(&old)), old.derived_label));
        self.requeue_for_mcs(&name, before, after, at, requeue);
    }

    fn forget_multi_cluster_service(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let Some(before) = self.multi_cluster_services.remove(name, uid) else { return };
        let import = import_name_of(&before);
        self.requeue_for_mcs(name, (Some(import), before.derived_label), (None, None), at, requeue);
    }

    fn requeue_for_mcs(
        &mut self,
        name: &ObjectName,
        before: (Option<ObjectName>, Option<Text>),
        after: (Option<ObjectName>, Option<Text>),
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        self.update_nameless_mcs(name);
        self.mcs_of_import.shift(before.0.clone(), after.0.clone(), name);
        self.mcs_of_derived_name.shift(before.1, after.1, name);
        requeue.push(Key::MultiClusterService(name.clone()));
        for import in [before.0, after.0].into_iter().flatten() {
            self.note_resolved(&import, at);
            // Other MultiClusterServices may request this ServiceImport too. One of them may become its controller now.
            requeue.extend(self.mcs_of_import.get(&import).cloned().map(Key::MultiClusterService));
            // fault P2.2: self.requeue_distributed_slices_of(&import, requeue); ~>
            self.requeue_distributed_slices_of(&import, requeue);
            requeue.push(Key::Import(import));
        }
    }

    fn take_import(&mut self, import: ServiceImport, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = import.meta.name.clone();
        let controller = import.controller().map(|owner| owner.uid.clone());
        let Taken::Changed(before) = self.imports.take(import) else { return };
        self.note_resolved(&name, at);
        let controller_before = before.and_then(|old| old.controller().map(|owner| owner.uid.clone()));
        if controller != controller_before {
            self.requeue_distributed_slices_of(&name, requeue);
        }
        self.imports_of.shift(controller_before, controller, &name);
        self.requeue_for_import(&name, requeue);
    }

    fn forget_import(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let Some(before) = self.imports.remove(name, uid) else { return };
        self.note_resolved(name, at);
        self.imports_of.shift(before.controller().map(|owner| owner.uid.clone()), None, name);
        self.requeue_for_import(name, requeue);
        if let Some(owner) = before.controller() {
            let owner = ObjectName::new(name.namespace.clone(), owner.name.clone());
            requeue.push(Key::MultiClusterService(owner));
        }
    }

    /// Records the time since which a ServiceImport has no exporters, if it exists or is requested. The grace period of the
    /// derived Service starts at this time.
    pub(super) fn note_resolved(&mut self, import: &ObjectName, at: Timestamp) {
        if self.imports.get(import).is_none() && self.mcs_of_import.get(import).next().is_none() {
            self.stamps.unresolved.end(import);
            return;
        }
        let resolved = self.imports.live(import).is_some_and(|import| !import.status.clusters.is_empty());
        // The exporters of an undecodable ServiceImport are unknown, so the grace period of the derived Service must not run.
        let unknown = self.undecodable.has(Kind::ServiceImport, import);
        if resolved || unknown {
            self.stamps.unresolved.end(import);
        } else {
            self.stamps.unresolved.begin(import, at);
        }
    }

    fn requeue_for_import(&self, name: &ObjectName, requeue: &mut Vec<Key>) {
        requeue.push(Key::Import(name.clone()));
        requeue.extend(self.mcs_of_import.get(name).cloned().map(Key::MultiClusterService));
        if let Some(owner) = self.imports.get(name).and_then(ServiceImport::controller) {
            let owner = ObjectName::new(name.namespace.clone(), owner.name.clone());
            requeue.push(Key::MultiClusterService(owner));
        }
    }

    // === Claims and distributed slices ===

    fn take_claim(&mut self, claim: InternalServiceImport, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = claim.meta.name.clone();
        let import = claim.reference.source.clone();
        let Taken::Changed(before) = self.claims.take(claim) else { return };
        let import_before = before.map(|old| old.reference.source);
        self.claims_of.shift(import_before.clone(), Some(import.clone()), &name);
        for import in import_before.iter().chain([&import]) {
            self.note_fulfilled(import, at);
            // The granted claim decides the type of the derived Service. The plan of the MultiClusterService writes this
            // Service.
            requeue.extend(self.mcs_of_import.get(import).cloned().map(Key::MultiClusterService));
        }
        requeue.extend(import_before.filter(|old| *old != import).map(Key::Import));
        requeue.extend(self.stamps.orphaned.keys().map(|slice| Key::SliceImport(slice.clone())));
        requeue.push(Key::Import(import));
    }

    fn forget_claim(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let Some(before) = self.claims.remove(name, uid) else { return };
        let import = before.reference.source;
        if self.names_in_hub(&import, Some(&before.reference.uid)).all(|at| at != *name) {
            // Another writer edited the reference in the claim that is gone: the claim had the name of one ServiceImport, and
            // its reference named another. So any ServiceImport may have waited for the name.
            // fault A6.5: requeue.extend(self.imports.iter().map(|import| Key::Import(import.meta.name.clone()))); ~>
            requeue.extend(self.imports.iter().map(|import| Key::Import(import.meta.name.clone())));
        }
        self.claims_of.shift(Some(import.clone()), None, name);
        self.note_fulfilled(&import, at);
        // fault R6.2: self.import_name_freed(requeue); ~>
        self.import_name_freed(requeue);
        // The plan of the MultiClusterService shows in the condition `Valid` if the next claim finds no free name.
        requeue.extend(self.mcs_of_import.get(&import).cloned().map(Key::MultiClusterService));
        // fault A10.2: requeue.push(Key::Import(import)); ~>
        requeue.push(Key::Import(import));
    }

    fn note_fulfilled(&mut self, import: &ObjectName, at: Timestamp) {
        let claims = self.claims_of.get(import).filter_map(|claim| self.claims.live(claim));
        if claims.map(|claim| &claim.status.clusters).any(|clusters| !clusters.is_empty()) {
            self.stamps.fulfilled.begin(import, at);
        } else {
            self.stamps.fulfilled.end(import);
        }
    }

    fn take_distributed_slice(&mut self, slice: HubSlice, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = slice.meta.name.clone();
        let owner = slice.spec.owner.clone();
        let origin = slice.spec.reference.cluster.clone();
        let generation = slice.spec.reference.generation;
        // fault P10.4: = self.replaced_by_import(&name) ~> : Option<ObjectName> = None
        let mut replaced = self.replaced_by_import(&name);
        let Taken::Changed(before) = self.distributed_slices.take(slice) else { return };
        if let Some(before) = &before {
            self.withdrawn_slices_of.remove(&before.spec.owner, &name);
        }
        if let Some(slice) = self.distributed_slices.get(&name) {
            let admitted = admitted(self, slice);
            if slice.meta.deleting || admitted.content.endpoints.is_empty() {
                self.withdrawn_slices_of.insert(owner.clone(), name.clone());
            }
            let not_imported = admitted.not_imported;
            self.stamps.set_not_imported(&name.name, not_imported, generation);
        }
        let is_six = self.distributed_slices.get(&name).is_some_and(|slice| has_ipv6(self, slice));
        // fault F4.2: before ~> false && before
        // fault F4.4: || !has_ipv6(self, old) ~>
        if is_six && before.as_ref().is_none_or(|old| old.spec.owner != owner || !has_ipv6(self, old)) {
            // The first IPv6 slice makes the derived Service dual-stack.
            requeue.extend(self.mcs_of_import.get(&owner).cloned().map(Key::MultiClusterService));
        }
        self.distributed_slices_from.shift(
            before.as_ref().map(|old| old.spec.reference.cluster.clone()),
            Some(origin),
            &name,
        );
        let owner_before = before.map(|old| old.spec.owner);
        self.distributed_slices_of.shift(owner_before.clone(), Some(owner.clone()), &name);
        self.note_orphan(&name.name, at);
        // Other slices of the same Service may be kept until this slice replaces them. This slice may also have moved from
        // another Service, so both Services are requeued.
        let replaces = self.replaced_by_import(&name);
        replaced = replaced.filter(|before| Some(before) != replaces.as_ref());
        replaced.iter().chain(&replaces).for_each(|service| self.requeue_waiting_imports(service, requeue));
        for owner in owner_before.iter().filter(|before| **before != owner).chain([&owner]) {
            self.requeue_for_slice_name(&name.name, owner, requeue);
        }
        requeue.push(Key::SliceImport(name.name));
    }

    fn forget_distributed_slice(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let replaced = self.replaced_by_import(name);
        let Some(before) = self.distributed_slices.remove(name, uid) else { return };
        self.withdrawn_slices_of.remove(&before.spec.owner, name);
        // fault T22.3: self.stamps.set_not_imported(&name.name, NotImported::default(), 0); ~>
        self.stamps.set_not_imported(&name.name, NotImported::default(), 0);
        self.distributed_slices_from.remove(&before.spec.reference.cluster, name);
        self.distributed_slices_of.shift(Some(before.spec.owner.clone()), None, name);
        self.note_orphan(&name.name, at);
        replaced.iter().for_each(|service| self.requeue_waiting_imports(service, requeue));
        self.requeue_for_slice_name(&name.name, &before.spec.owner, requeue);
        requeue.push(Key::SliceImport(name.name.clone()));
    }
}

fn import_name_of(mcs: &MultiClusterService) -> ObjectName {
    ObjectName::new(mcs.meta.name.namespace.clone(), mcs.import_name.clone())
}
