//! Stores changes of objects in the member's view, and tells which values they change.

use super::value::{Bucket, Computation, Fact, Value};
use super::{Effects, Key, McsApi, Reader, View, add, own};
use crate::index::Taken;
use crate::model::{
    EndpointSlice, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent, MultiClusterService,
    Object, Service, ServiceExport, ServiceImport, ServicePort, SessionAffinity,
};
use crate::names;
use crate::reads::Reads;
use fleetnet_types::{Change, ObjectName, Text, Timestamp, Uid};

impl View {
    /// Stores a change of an object, which the agent saw at the time `at`.
    pub(in crate::member) fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp) -> Effects {
        let (acted_in_hub, mut effects) = (self.acts_in_hub(at), Effects::default());
        self.forget_restore(at);
        match change {
            Change::Applied(object) => {
                let name = object.meta().name.clone();
                self.decodable(kind, &name, &mut effects);
                self.take(object, at, &mut effects);
            }
            Change::Undecodable { name } => self.undecodable(kind, &name, &mut effects),
            Change::Removed { name, uid, how: _ } => {
                self.decodable(kind, &name, &mut effects);
                self.forget(kind, &name, &uid, at, &mut effects);
            }
        }
        if self.acts_in_hub(at) != acted_in_hub {
            effects.values.push(Value::ActsInHub);
        }
        effects
    }

    fn undecodable(&mut self, kind: Kind, name: &ObjectName, effects: &mut Effects) {
        let is_first = self.undecodable.is_empty();
        if self.undecodable.insert(kind, name.clone()) {
            effects.values.extend(is_first.then_some(Value::HasUndecodable));
            self.decodability_changed(kind, name, effects);
        }
    }

    /// Records that an object is decodable or gone.
    fn decodable(&mut self, kind: Kind, name: &ObjectName, effects: &mut Effects) {
        if self.undecodable.remove(kind, name) {
            effects.values.extend(self.undecodable.is_empty().then_some(Value::HasUndecodable));
            self.decodability_changed(kind, name, effects);
        }
    }

    fn decodability_changed(&mut self, kind: Kind, name: &ObjectName, effects: &mut Effects) {
        effects.values.extend([Value::Object(kind, name.clone()), Value::All(kind)]);
        // An EndpointSlice that is undecodable perhaps has the name of a distributed slice.
        self.review_contested(&name.name, effects);
    }

    fn take(&mut self, object: Object, at: Timestamp, effects: &mut Effects) {
        let (kind, name) = (object.kind(), object.meta().name.clone());
        let is_changed = match object {
            Object::Service(service) => self.take_service(service, at, effects),
            Object::EndpointSlice(slice) => self.take_slice(slice, at, effects),
            Object::ServiceExport(export) => self.take_export(export, at, effects),
            Object::McsServiceExport(export) => self.take_mcs_export(export, at, effects),
            Object::ServiceImport(import) => self.take_import(import, effects),
            Object::MultiClusterService(request) => self.take_multi_cluster_service(request, effects),
            Object::InternalServiceExport(export) => self.take_internal_export(export, at, effects),
            Object::InternalServiceImport(claim) => self.take_claim(claim, effects),
            Object::EndpointSliceExport(slice) => self.take_slice_export(slice, at, effects),
            Object::EndpointSliceImport(slice) => self.take_distributed_slice(slice, effects),
            Object::MemberAgent(agent) => self.take_member_agent(agent, at, effects),
            Object::InternalMemberCluster(membership) => self.take_membership(membership, at, effects),
            Object::McsServiceImport(import) => self.take_mcs_import(import, effects),
            Object::MergedServiceImport(import) => self.take_merged_import(import, effects),
            Object::Namespace(namespace) => self.take_namespace(namespace),
            Object::SystemNamespace(meta) => self.take_system_namespace(meta),
            Object::ClusterProperty(property) => self.cluster_properties.take(property).changed(|_| heartbeat(effects)),
            Object::Node(node) => self.nodes.take(node).changed(|_| heartbeat(effects)),
            Object::MemberCluster(_) => false,
        };
        if is_changed {
            effects.object_changed(kind, name);
        }
    }

    fn forget(&mut self, kind: Kind, name: &ObjectName, uid: &str, at: Timestamp, effects: &mut Effects) {
        let known = match kind {
            Kind::Service => self.services.remove(name, uid).map(|it| self.forget_service(name, it, effects)),
            Kind::EndpointSlice => self.slices.remove(name, uid).map(|it| self.forget_slice(name, &it, effects)),
            Kind::ServiceExport => self.exports.remove(name, uid).map(|_| self.forget_change(name)),
            Kind::McsServiceExport => self.mcs_exports.remove(name, uid).map(|_| self.forget_change(name)),
            Kind::ServiceImport => self.imports.remove(name, uid).map(|it| self.forget_import(name, &it, effects)),
            Kind::MultiClusterService => {
                self.multi_cluster_services.remove(name, uid).map(|it| self.forget_request(name, &it, effects))
            }
            Kind::InternalServiceExport => {
                let before = self.internal_exports.remove(name, uid);
                before.map(|it| self.shift_internal_export(name, [Some(it.reference.source), None], effects))
            }
            Kind::InternalServiceImport => {
                let before = self.claims.remove(name, uid).map(|it| Some(it.reference.source));
                before.map(|import| self.shift(Bucket::Claims, name, [import, None], effects))
            }
            Kind::EndpointSliceExport => {
                let before = self.slice_exports.remove(name, uid);
                before.map(|it| self.shift_slice_export(name, [Some(it.spec.reference.source), None], at, effects))
            }
            Kind::EndpointSliceImport => {
                let before = self.distributed_slices.remove(name, uid);
                before.map(|it| self.forget_distributed_slice(name, it, effects))
            }
            Kind::MemberAgent => self.member_agents.remove(name, uid).map(|it| self.forget_agent(&it, at, effects)),
            Kind::InternalMemberCluster => self.memberships.remove(name, uid).map(drop),
            Kind::McsServiceImport => self.mcs_imports.remove(name, uid).map(drop),
            Kind::MergedServiceImport => self.merged_imports.remove(name, uid).map(drop),
            Kind::Namespace => self.namespaces.remove(name, uid).map(drop),
            Kind::ClusterProperty => self.cluster_properties.remove(name, uid).map(|_| heartbeat(effects)),
            Kind::Node => self.nodes.remove(name, uid).map(|_| heartbeat(effects)),
            Kind::SystemNamespace | Kind::MemberCluster => None,
        };
        if known.is_some() {
            effects.object_changed(kind, name.clone());
        }
    }

    /// Moves an object between two buckets of an index. It may be in neither of them.
    pub(super) fn shift(
        &mut self,
        bucket: Bucket,
        name: &ObjectName,
        of: [Option<ObjectName>; 2],
        effects: &mut Effects,
    ) {
        let [before, after] = of.map(|of| of.map(|of| (bucket, of)));
        let before = before.filter(|before| self.buckets.holds(before, name));
        if before != after {
            let both = before.iter().chain(&after);
            effects.values.extend(both.map(|(bucket, of)| Value::Bucket(*bucket, of.clone())));
            self.buckets.shift(before, after, name);
        }
    }

    // === Services: exported Services and derived Services ===

    /// Stores an object. Returns false if only its resourceVersion changed. The same holds for the functions below.
    fn take_service(&mut self, mut service: Service, at: Timestamp, effects: &mut Effects) -> bool {
        let name = service.meta.name.clone();
        let present = self.services.get(&name).filter(|present| present.meta.uid == service.meta.uid);
        if let Some(derived_from) = present.and_then(|present| present.derived_from.clone()) {
            // Another writer may have edited the labels of a derived Service. So the view keeps `derived_from` from the
            // previous state, and still treats the Service as a derived Service.
            service.relabelled = service.derived_from.replace(derived_from.clone()) != Some(derived_from);
        }
        if let Some(imports) = present.and_then(|present| present.imports.clone()) {
            service.relabelled |= service.imports.replace(imports.clone()) != Some(imports);
        }
        let derived_from = service.derived_from.clone();
        let imports = service.imports.clone();
        let own_addresses = own::of_service(&service);
        let Taken::Changed(before) = self.services.take(service) else { return false };
        self.own_addresses_changed(&before.as_ref().map_or_else(Vec::new, own::of_service), &own_addresses, effects);
        fn exported_fields(service: &Service) -> (&Uid, &[ServicePort], bool, SessionAffinity) {
            (&service.meta.uid, &service.ports, service.headless, service.session_affinity)
        }
        if before.as_ref().map(exported_fields) != self.services.get(&name).map(exported_fields) {
            self.records.service_changed(&name, at);
        }
        if let Some(imports) = imports {
            self.import_appeared(ObjectName::new(name.namespace.clone(), imports), effects);
        }
        let derived_before = before.and_then(|old| old.derived_from);
        self.shift(Bucket::DerivedServices, &name, [derived_before, derived_from], effects);
        true
    }

    fn forget_service(&mut self, name: &ObjectName, before: Service, effects: &mut Effects) {
        self.own_addresses_changed(&own::of_service(&before), &[], effects);
        self.records.service_gone(name);
        self.forget_change(name);
        self.shift(Bucket::DerivedServices, name, [before.derived_from, None], effects);
    }

    /// Drops the time of a Service's last change, unless the Service or a request for its export exists.
    fn forget_change(&mut self, service: &ObjectName) {
        let is_exported = self.exports.get(service).is_some() || self.mcs_exports.get(service).is_some();
        if self.services.get(service).is_none() && !is_exported {
            self.records.service_forgotten(service);
        }
    }

    // === EndpointSlices: source slices and imported slices ===

    fn take_slice(&mut self, mut slice: EndpointSlice, at: Timestamp, effects: &mut Effects) -> bool {
        let name = slice.meta.name.clone();
        let present = self.slices.get(&name).filter(|present| present.meta.uid == slice.meta.uid);
        // Somebody may have edited the labels while no agent ran. The annotation with the generation remains.
        let in_system = name.namespace == self.settings.fleet_system_namespace;
        let is_derived = slice.service.as_ref().is_some_and(|service| names::is_mcs_derived(service));
        let is_like_ours = in_system || is_derived && names::routed_slice(&name.name).is_some();
        let is_annotated = is_like_ours && slice.observed_generation.is_some();
        if is_annotated || present.is_some_and(|present| present.imported) {
            slice.relabelled = !slice.imported;
            slice.imported = true;
        }
        let (service, own_addresses) = (slice.service_name(), own::of_slice(&slice));
        let Taken::Changed(before) = self.slices.take(slice) else { return false };
        let before = before.as_ref();
        self.own_addresses_changed(&before.map_or_else(Vec::new, own::of_slice), &own_addresses, effects);
        self.record_slice(&name, before, at);
        self.settle_changes(&name, at);
        let service_before = before.and_then(EndpointSlice::service_name);
        let is_other = before.is_none() || service_before != service;
        self.shift(Bucket::Slices, &name, [service_before, service], effects);
        if is_other {
            let (key, unrecorded) = (Key::SliceExport(name.clone()), Reads::default());
            effects.keys.extend(Reader::new(self, &unrecorded).has(&key).then_some(key));
        }
        if self.is_for_imports(&name.namespace) && self.is_marked_imported(&name) {
            effects.keys.push(Key::SliceImport(name.clone()));
            effects.results.extend([Fact::Orphaned(name.clone()), Fact::Outdated(name.clone())].map(Computation::Fact));
            let is_listed = in_system && self.settings.mcs_api != McsApi::Off;
            effects.results.extend(is_listed.then(|| Fact::Unlisted(name.clone()).into()));
        }
        self.review_contested(&name.name, effects);
        self.review_serving(&name, effects);
        true
    }

    /// Records the change of a slice, whose state before was `before`.
    fn record_slice(&mut self, name: &ObjectName, before: Option<&EndpointSlice>, at: Timestamp) {
        let hub = self.hub_feature_set(at);
        let Some(slice) = self.slices.get(name) else { return };
        let generation = slice.meta.generation;
        let changes_for_hub =
            |old: &EndpointSlice| old.content != slice.content && hub.slice(&old.content) != hub.slice(&slice.content);
        match before.filter(|before| before.meta.uid == slice.meta.uid) {
            None => self.records.slice_created(name, generation, at),
            Some(before) if changes_for_hub(before) => self.records.slice_changed(name, generation, at),
            Some(_) => self.records.slice_touched(name, generation),
        }
        if before.is_none_or(|before| before.observed_generation != slice.observed_generation) {
            self.imported_other_generation(name);
        }
    }

    fn forget_slice(&mut self, name: &ObjectName, before: &EndpointSlice, effects: &mut Effects) {
        self.own_addresses_changed(&own::of_slice(before), &[], effects);
        self.records.slice_settled(name);
        self.shift(Bucket::Slices, name, [before.service_name(), None], effects);
        self.answered_excess.remove(name);
        self.review_contested(&name.name, effects);
        self.review_serving(name, effects);
    }

    /// Updates the record of a slice's changes that are not in the hub yet. Called after a change of the slice and
    /// after a change of its exports, because their watch events may arrive in any order.
    pub(super) fn settle_changes(&mut self, name: &ObjectName, at: Timestamp) {
        let Some(slice) = self.slices.get(name) else { return };
        let hub = self.hub_feature_set(at);
        if hub.slice(&slice.content).is_none() {
            return self.records.slice_settled(name); // the hub does not support such slices, so no change is pending
        }
        let exports = self.bucket(Bucket::SliceExports, name).filter_map(|export| self.slice_exports.get(export));
        let of_this = exports.map(|export| &export.spec).filter(|spec| spec.reference.uid == slice.meta.uid);
        let (mut carried, mut same) = (None, false);
        for spec in of_this {
            carried = carried.max(Some(spec.reference.generation));
            same |= hub.is_carried(&spec.content, &slice.content); // also true if the slice was changed and then changed back
        }
        if same {
            self.records.slice_settled(name);
        } else {
            self.records.slice_pending(name, carried, slice.meta.generation, at);
        }
    }

    // === ServiceExports ===

    fn take_export(&mut self, export: ServiceExport, at: Timestamp, effects: &mut Effects) -> bool {
        let (name, uid) = (export.meta.name.clone(), export.meta.uid.clone());
        let Taken::Changed(before) = self.exports.take(export) else { return false };
        if before.as_ref().is_none_or(|old| old.meta.uid != uid) {
            self.records.service_changed(&name, at);
        }
        self.export_appeared(name, effects);
        true
    }

    // === Exports of this member in the hub ===

    fn take_internal_export(&mut self, export: InternalServiceExport, at: Timestamp, effects: &mut Effects) -> bool {
        let (name, service) = (export.meta.name.clone(), export.reference.source.clone());
        let (has_outcome, since) = (export.outcome().is_some(), export.reference.exported_since);
        let Taken::Changed(before) = self.internal_exports.take(export) else { return false };
        if has_outcome {
            self.records.outcome_seen(&service, since, at);
        }
        effects.keys.push(Key::Export(service.clone()));
        self.shift_internal_export(&name, [before.map(|old| old.reference.source), Some(service)], effects);
        true
    }

    fn shift_internal_export(&mut self, name: &ObjectName, of: [Option<ObjectName>; 2], effects: &mut Effects) {
        self.count_export(Kind::InternalServiceExport, &of, effects);
        self.shift(Bucket::InternalExports, name, of, effects);
    }

    fn take_slice_export(&mut self, export: HubSlice, at: Timestamp, effects: &mut Effects) -> bool {
        let (name, source) = (export.meta.name.clone(), export.spec.reference.source.clone());
        let Taken::Changed(before) = self.slice_exports.take(export) else { return false };
        effects.keys.push(Key::SliceExport(source.clone()));
        let before = before.map(|old| old.spec.reference.source);
        self.shift_slice_export(&name, [before, Some(source)], at, effects);
        true
    }

    fn shift_slice_export(
        &mut self,
        name: &ObjectName,
        of: [Option<ObjectName>; 2],
        at: Timestamp,
        effects: &mut Effects,
    ) {
        self.count_export(Kind::EndpointSliceExport, &of, effects);
        self.shift(Bucket::SliceExports, name, of.clone(), effects);
        of.iter().flatten().for_each(|source| self.settle_changes(source, at));
    }

    /// Counts an export in the hub, with its source before and now.
    fn count_export(&mut self, kind: Kind, sources: &[Option<ObjectName>; 2], effects: &mut Effects) {
        let namespaces = sources.each_ref().map(|source| source.as_ref().map(|source| &source.namespace));
        if namespaces[0] == namespaces[1] {
            return;
        }
        let limit = self.settings.limits.exports_from_namespace(kind);
        for (namespace, by) in namespaces.into_iter().zip([-1, 1]) {
            let Some(namespace) = namespace else { continue };
            let [was, is] = add(&mut self.exported_from, (kind, namespace.clone()), by);
            if (was < limit) != (is < limit) {
                effects.values.push(Value::MayExportMore(kind, namespace.clone()));
            }
        }
    }

    /// True if further Services or slices of a namespace may be exported.
    pub(crate) fn may_export_more(&self, kind: Kind, namespace: &Text) -> bool {
        let number = self.exported_from.get(&(kind, namespace.clone())).copied().unwrap_or_default();
        number < self.settings.limits.exports_from_namespace(kind)
    }

    // === MultiClusterServices and ServiceImports ===

    fn take_multi_cluster_service(&mut self, request: MultiClusterService, effects: &mut Effects) -> bool {
        let (name, import) = (request.meta.name.clone(), request.import());
        let requested = request.load_balancer_requested_since();
        let Taken::Changed(before) = self.multi_cluster_services.take(request) else { return false };
        effects.keys.push(Key::MultiClusterService(name.clone()));
        if before.as_ref().map(MultiClusterService::load_balancer_requested_since) != Some(requested) {
            effects.values.push(Value::Requests(name.namespace.clone()));
        }
        let before = before.map(|old| old.import());
        self.shift(Bucket::MultiClusterServices, &name, [before, Some(import)], effects);
        true
    }

    fn forget_request(&mut self, name: &ObjectName, before: &MultiClusterService, effects: &mut Effects) {
        self.shift(Bucket::MultiClusterServices, name, [Some(before.import()), None], effects);
        effects.values.push(Value::Requests(name.namespace.clone()));
    }

    fn take_import(&mut self, import: ServiceImport, effects: &mut Effects) -> bool {
        let (name, controller) = (import.meta.name.clone(), controller_of(&import));
        let Taken::Changed(before) = self.imports.take(import) else { return false };
        effects.keys.push(Key::Import(name.clone()));
        effects.results.push(Fact::Unresolved(name.clone()).into());
        self.shift_controller(&name, before.as_ref().and_then(controller_of), controller, effects);
        true
    }

    fn forget_import(&mut self, name: &ObjectName, before: &ServiceImport, effects: &mut Effects) {
        self.shift_controller(name, controller_of(before), None, effects);
    }

    /// The controller of a ServiceImport changed.
    fn shift_controller(
        &mut self,
        import: &ObjectName,
        before: Option<Uid>,
        after: Option<Uid>,
        effects: &mut Effects,
    ) {
        if before != after {
            effects.values.extend(before.iter().chain(&after).cloned().map(Value::ImportsOf));
        }
        self.imports_of.shift(before, after, import);
    }

    // === Claims ===

    fn take_claim(&mut self, claim: InternalServiceImport, effects: &mut Effects) -> bool {
        let (name, import) = (claim.meta.name.clone(), claim.reference.source.clone());
        let Taken::Changed(before) = self.claims.take(claim) else { return false };
        effects.keys.push(Key::Import(import.clone()));
        effects.results.push(Fact::Fulfilled(import.clone()).into());
        self.shift(Bucket::Claims, &name, [before.map(|old| old.reference.source), Some(import)], effects);
        true
    }

    // === MemberAgent ===

    fn take_member_agent(&mut self, agent: MemberAgent, at: Timestamp, effects: &mut Effects) -> bool {
        if agent.meta.name != self.own_member_agent() {
            return false; // the MemberAgent does not have the name of this member
        }
        let Taken::Changed(before) = self.member_agents.take(agent) else { return false };
        self.offer_was(before.and_then(|before| before.status.slice_stream).as_ref(), at);
        self.note_renewal(at);
        self.record_hub_announcement(at, effects);
        self.record_silent_members(effects);
        true
    }

    fn forget_agent(&mut self, before: &MemberAgent, at: Timestamp, effects: &mut Effects) {
        self.offer_was(before.status.slice_stream.as_ref(), at);
        self.record_hub_announcement(at, effects);
    }
}

/// A property of this cluster has perhaps changed.
fn heartbeat(effects: &mut Effects) {
    effects.keys.push(Key::Heartbeat);
}

fn controller_of(import: &ServiceImport) -> Option<Uid> {
    import.controller().map(|owner| owner.uid.clone())
}
