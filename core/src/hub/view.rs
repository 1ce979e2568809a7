//! View of the hub agent: cache of the exports and claims of all members. Indexes of the view find the keys to requeue after
//! a change.
//!
//! ```text
//!  member namespaces: InternalServiceExport  EndpointSliceExport  InternalServiceImport  EndpointSliceImport  MemberAgent
//!  user namespaces:   ServiceImport          cluster: Namespace
//! ```

mod holders;
mod members;

use crate::disputes::Disputes;
use crate::feature_set::Announced;
use crate::handshake;
use crate::hub::rights::NamespacePolicy;
use crate::hub::{conflict, distribute};
use crate::index::{Index, Stored, Table, Taken};
use crate::model::{
    Announcement, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent, Meta, Namespace, Object,
    ServiceImport,
};
use crate::names;
use crate::plan::Plan;
use crate::undecodable::Undecodable;
use crate::watches::Watches;
use fleetnet_types::{Change, ClusterId, ObjectName, Text, Timestamp, WatchState};
use holders::Holders;
pub(crate) use holders::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Key of the hub agent. A key names what one plan is for, such as an exported Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Exported Service: its ServiceImport, the conditions of its exports, and its claims.
    Service(ObjectName),
    /// Exported slices with this name, and the slices distributed from these exports.
    Slice(Text),
    /// Status in the MemberAgent of a member, which the hub agent writes.
    Member(ClusterId),
}

/// In-memory copy of all objects in the hub that the rules of the hub agent read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Features and version that the hub agent announces to the members. While the version is empty, the hub agent announces
    /// nothing.
    pub announces: Announcement,
    /// Value of the flag `--namespace-policy`: effect of the annotations on the hub's namespaces.
    pub namespace_policy: NamespacePolicy,
    /// State of each kind's watch. While the table of a kind is incomplete, a rule must not treat a missing object as deleted.
    pub watches: Watches,
    /// Objects that exist but do not decode. The tables keep the last decoded state of these objects, if there is one.
    pub(crate) undecodable: Undecodable,
    pub internal_exports: Table<InternalServiceExport>,
    /// Claims (InternalServiceImports) of all members.
    pub claims: Table<InternalServiceImport>,
    /// ServiceImports: the outcome of conflict resolution for each Service, in the Service's namespace.
    pub hub_imports: Table<ServiceImport>,
    /// Exported slices of all members.
    pub slice_exports: Table<HubSlice>,
    /// Distributed slices, one for each importing member.
    pub distributed_slices: Table<HubSlice>,
    /// Namespaces of the hub. Annotations on a namespace may list exporters and importers. A namespace also matters when it is
    /// created: writes that failed without it are planned again.
    pub namespaces: Table<Namespace>,
    pub member_agents: Table<MemberAgent>,

    /// From each Service to its InternalServiceExports.
    pub(crate) internal_exports_of: Index<ObjectName>,
    pub(crate) claims_of: Index<ObjectName>,
    pub(crate) slice_exports_of: Index<ObjectName>,
    /// From the name of a slice to its exports: one export, unless two members use the same name.
    pub(crate) slice_exports_named: Index<Text>,
    /// From each Service to its exported slices that are being deleted or have no endpoints.
    withdrawn_slices_of: Index<ObjectName>,
    /// From a source slice to its exports. These exports are from one member, unless two members claim the same source slice.
    slice_exports_from: Index<Source>,
    /// From a source slice to its holder: the one of its exports that is distributed.
    pub(crate) holders: Holders,
    /// From the name of a slice to its distributed slices.
    pub(crate) distributed_slices_named: Index<Text>,
    /// From each member namespace to the announcement of this member.
    announced: BTreeMap<Text, Announced>,
    /// From each Service to the writes of the hub agent that other writers undo.
    pub(crate) disputes: Disputes<Key>,
}

impl View {
    /// Creates an empty view.
    pub fn new(announces: Announcement, namespace_policy: NamespacePolicy) -> Self {
        Self { announces, namespace_policy, ..Self::default() }
    }

    /// Stores a change of an object, which the agent saw at the time `at`. Appends to `requeue` the keys that depend on the
    /// object.
    pub fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        match change {
            Change::Applied(object) => self.applied(object, at, requeue),
            Change::Undecodable { name } => {
                if self.undecodable.insert(kind, name.clone()) {
                    self.requeue_for_undecodable(kind, &name, requeue);
                }
            }
            Change::Removed { name, uid, how: _ } => {
                let was_undecodable = self.undecodable.remove(kind, &name);
                self.forget(kind, &name, &uid, at, requeue);
                if was_undecodable {
                    self.requeue_for_undecodable(kind, &name, requeue);
                }
            }
        }
    }

    /// Stores the newest state of an object, which the agent saw at the time `at`. Appends to `requeue` the keys that depend on
    /// the object.
    pub fn applied(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<Key>) {
        let (kind, name) = (object.kind(), &object.meta().name);
        let decodable = self.undecodable.remove(kind, name).then(|| name.clone());
        self.take(object, at, requeue);
        if let Some(name) = decodable {
            self.requeue_for_undecodable(kind, &name, requeue);
        }
    }

    /// Stores the new state of a watch. Every plan may depend on the state of the watch, so all keys are requeued.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        if self.watches.set(kind, state, at) {
            if kind == Kind::Namespace {
                self.rank_all_exports(requeue); // the rank of an export depends on the right to export, which may be known now
            }
            self.all_keys(requeue);
        }
    }

    /// Records that another writer undoes the hub agent's writes to the object `over`. `message` is the text for the user;
    /// `None` if the other writer stopped. `about` is the Service whose exports show the dispute in a condition; without it, no
    /// condition shows the dispute.
    pub fn disputed(
        &mut self,
        about: Option<ObjectName>,
        over: (Kind, ObjectName),
        message: Option<String>,
        requeue: &mut Vec<Key>,
    ) {
        requeue.extend(self.disputes.note(about.map(Key::Service), over, message));
    }

    /// Moves all stored times by `micros`, after the wall clock was set forward (positive) or back (negative) by this duration.
    pub fn clock_set(&mut self, micros: i64) {
        self.watches.clock_set(micros);
        self.announced.values_mut().for_each(|announced| announced.clock_set(micros));
    }

    pub fn plan(&self, key: &Key, now: Timestamp) -> Plan {
        match key {
            Key::Service(service) => conflict::plan_service(self, service, now),
            Key::Slice(name) => distribute::plan_slice(self, name, now),
            Key::Member(cluster) => handshake::plan_member(self, cluster),
        }
    }

    /// Appends to `requeue` the keys of all known objects.
    pub fn all_keys(&self, requeue: &mut Vec<Key>) {
        requeue.extend(self.internal_exports.iter().map(|export| Key::Service(export.reference.source.clone())));
        requeue.extend(self.claims.iter().map(|claim| Key::Service(claim.reference.source.clone())));
        requeue.extend(self.hub_imports.iter().map(|import| Key::Service(import.meta.name.clone())));
        requeue.extend(self.slice_exports.iter().map(|slice| Key::Slice(slice.meta.name.name.clone())));
        requeue.extend(self.distributed_slices.iter().map(|slice| Key::Slice(slice.meta.name.name.clone())));
        requeue.extend(self.member_agents.iter().map(|agent| Key::Member(agent.meta.name.name.clone().into())));
    }

    /// Returns the object that Events about a Service refer to: its ServiceImport, or the first of its exports if there is no
    /// ServiceImport.
    pub fn import_or_export_of(&self, service: &ObjectName) -> Option<(Kind, &Meta)> {
        let import = self.hub_imports.get(service).map(|import| (Kind::ServiceImport, &import.meta));
        let mut exports = self.internal_exports_of.get(service).filter_map(|export| self.internal_exports.get(export));
        import.or_else(|| exports.next().map(|export| (Kind::InternalServiceExport, &export.meta)))
    }

    /// Returns one of the exported slices with this name.
    pub fn slice_export_named(&self, name: &Text) -> Option<&HubSlice> {
        self.slice_exports_named.get(name).find_map(|export| self.slice_exports.get(export))
    }

    fn take(&mut self, object: Object, at: Timestamp, requeue: &mut Vec<Key>) {
        match object {
            Object::InternalServiceExport(export) => {
                let after = export.reference.source.clone();
                let name = export.meta.name.clone();
                // fault W7.1: Taken ~> mut export = export; if self.internal_exports.get(&name).is_none() { export.conditions.clear(); } let Taken
                let Taken::Changed(before) = self.internal_exports.take(export) else { return };
                let before = before.map(|old| old.reference.source);
                self.internal_exports_of.shift(before.clone(), Some(after.clone()), &name);
                // fault H10.2: requeue.extend([before, Some(after)].into_iter().flatten().map(Key::Service)); ~> if before.is_none() { requeue.push(Key::Service(after)); }
                requeue.extend([before, Some(after)].into_iter().flatten().map(Key::Service));
            }
            Object::InternalServiceImport(claim) => {
                let after = claim.reference.source.clone();
                let name = claim.meta.name.clone();
                let Taken::Changed(before) = self.claims.take(claim) else { return };
                let before = before.map(|old| old.reference.source);
                self.claims_of.shift(before.clone(), Some(after.clone()), &name);
                self.requeue_for_claim(before, Some(after), requeue);
            }
            Object::ServiceImport(import) => {
                let name = import.meta.name.clone();
                let parties =
                    |import: &ServiceImport| (import.claims.importers.clone(), import.status.clusters.clone());
                let after = parties(&import);
                let Taken::Changed(before) = self.hub_imports.take(import) else { return };
                // fault T6.3, T32.2: parties) != Some(after ~> |old| parties(old).0) != Some(after.0
                if before.as_ref().map(parties) != Some(after) {
                    self.requeue_for_parties(&name, requeue);
                }
                requeue.push(Key::Service(name));
            }
            Object::EndpointSliceExport(slice) => self.take_slice_export(slice, requeue),
            Object::EndpointSliceImport(slice) => {
                let name = slice.meta.name.clone();
                if let Taken::Changed(_) = self.distributed_slices.take(slice) {
                    self.distributed_slices_named.insert(name.name.clone(), name.clone());
                    self.requeue_waiting_slices(self.replacing_under(&name.name), requeue);
                    requeue.push(Key::Slice(name.name));
                }
            }
            Object::Namespace(namespace) => {
                let name = namespace.meta.name.name.clone();
                let open = namespace.exporters.is_none() && namespace.importers.is_none();
                let named = |namespace: &Namespace| (namespace.exporters.clone(), namespace.importers.clone());
                let after = named(&namespace);
                let goes = namespace.meta.deleting;
                let Taken::Changed(before) = self.namespaces.take(namespace) else { return };
                // fault H18.1: self.requeue_for_namespace(&name, requeue); ~>
                self.requeue_for_namespace(&name, requeue);
                // fault D13.3: goes { self ~> goes && false { self
                if goes {
                    self.requeue_distributed_slices_in(&name, requeue);
                }
                // fault T17.1: before ~> false && before
                if before.as_ref().map_or(!open, |old| named(old) != after) {
                    self.requeue_for_rights(&name, requeue);
                }
            }
            Object::MemberAgent(agent) => self.take_member_agent(agent, at, requeue),
            Object::Service(_)
            | Object::EndpointSlice(_)
            | Object::ServiceExport(_)
            | Object::MultiClusterService(_) => {}
        }
    }

    fn take_slice_export(&mut self, slice: HubSlice, requeue: &mut Vec<Key>) {
        let after = slice.spec.owner.clone();
        let source = Source::of(&slice);
        let goes = slice.meta.deleting || slice.spec.content.endpoints.is_empty();
        let name = slice.meta.name.clone();
        // fault D10.4: self.replacing_under(&name.name ~> BTreeSet::new(
        let mut services = self.replacing_under(&name.name);
        let Taken::Changed(before) = self.slice_exports.take(slice) else { return };
        let source_before = before.as_ref().and_then(Source::of);
        let before = before.map(|old| old.spec.owner);
        if let Some(before) = &before {
            self.withdrawn_slices_of.remove(before, &name);
        }
        if goes {
            self.withdrawn_slices_of.insert(after.clone(), name.clone());
        }
        self.slice_exports_of.shift(before, Some(after), &name);
        self.slice_exports_named.insert(name.name.clone(), name.clone());
        self.slice_exports_from.shift(source_before, source, &name);
        self.rank_exports([&name.name], requeue);
        services.extend(self.replacing_under(&name.name));
        self.requeue_waiting_slices(services, requeue);
        requeue.push(Key::Slice(name.name));
    }

    fn forget_slice_export(&mut self, name: &ObjectName, uid: &str, requeue: &mut Vec<Key>) {
        let services = self.replacing_under(&name.name);
        let Some(before) = self.slice_exports.remove(name, uid) else { return };
        self.withdrawn_slices_of.remove(&before.spec.owner, name);
        self.slice_exports_of.remove(&before.spec.owner, name);
        // fault A3.1: self.slice_exports_named.remove(&name.name, name); ~>
        self.slice_exports_named.remove(&name.name, name);
        self.slice_exports_from.shift(Source::of(&before), None, name);
        self.rank_exports([&name.name], requeue);
        self.requeue_waiting_slices(services, requeue);
        requeue.push(Key::Slice(name.name.clone()));
    }

    fn forget(&mut self, kind: Kind, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        match kind {
            Kind::InternalServiceExport => {
                let Some(before) = self.internal_exports.remove(name, uid) else { return };
                self.internal_exports_of.remove(&before.reference.source, name);
                requeue.push(Key::Service(before.reference.source));
            }
            Kind::InternalServiceImport => {
                let Some(before) = self.claims.remove(name, uid) else { return };
                self.claims_of.remove(&before.reference.source, name);
                self.requeue_for_claim(Some(before.reference.source), None, requeue);
            }
            Kind::ServiceImport => {
                if self.hub_imports.remove(name, uid).is_some() {
                    self.requeue_for_parties(name, requeue);
                    // fault H17.1: requeue.push(Key::Service(name.clone())); ~>
                    requeue.push(Key::Service(name.clone()));
                }
            }
            Kind::EndpointSliceExport => self.forget_slice_export(name, uid, requeue),
            Kind::EndpointSliceImport => {
                if self.distributed_slices.remove(name, uid).is_some() {
                    self.distributed_slices_named.remove(&name.name, name);
                    // fault A5.1: requeue.push(Key::Slice(name.name.clone())); ~>
                    requeue.push(Key::Slice(name.name.clone()));
                }
            }
            Kind::Namespace => {
                if self.namespaces.remove(name, uid).is_some() {
                    self.requeue_for_rights(&name.name, requeue);
                }
            }
            Kind::MemberAgent => self.forget_member_agent(name, uid, at, requeue),
            Kind::Service | Kind::EndpointSlice | Kind::ServiceExport | Kind::MultiClusterService => {}
        }
    }

    /// Requeues a Service and its slices after one of its claims changed, because claims decide where slices are distributed.
    fn requeue_for_claim(&self, before: Option<ObjectName>, after: Option<ObjectName>, requeue: &mut Vec<Key>) {
        for service in [before, after].into_iter().flatten() {
            self.requeue_slices_of(&service, requeue);
            // fault C3.2: requeue.push(Key::Service(service)); ~>
            requeue.push(Key::Service(service));
        }
    }

    fn requeue_slices_of(&self, service: &ObjectName, requeue: &mut Vec<Key>) {
        // fault D5.1: requeue.extend(self.slice_exports_of.get(service).map(|slice| Key::Slice(slice.name.clone())) ~> let _ = (service, requeue
        requeue.extend(self.slice_exports_of.get(service).map(|slice| Key::Slice(slice.name.clone())));
    }

    /// Requeues the slices of a Service after its exporting or importing members changed.
    fn requeue_for_parties(&mut self, service: &ObjectName, requeue: &mut Vec<Key>) {
        let slices: BTreeSet<Text> = self.slice_exports_of.get(service).map(|slice| slice.name.clone()).collect();
        self.rank_exports(&slices, requeue);
        self.requeue_slices_of(service, requeue);
    }

    /// Requeues the keys that depend on an object that became undecodable, became decodable again or is gone.
    fn requeue_for_undecodable(&mut self, kind: Kind, name: &ObjectName, requeue: &mut Vec<Key>) {
        // The keys depend only on one fact: does the member namespace have an undecodable object of this kind? Such an export
        // or claim may be of any Service. So they are requeued only for the first such object, and when the last one is gone.
        // fault T35.3: !self.undecodable.any_beside(kind, name) ~> true
        let counts = || !self.undecodable.any_beside(kind, name);
        match kind {
            Kind::ServiceImport => {
                self.requeue_slices_of(name, requeue);
                requeue.push(Key::Service(name.clone()));
            }
            Kind::InternalServiceExport if counts() => {
                if let Some(cluster) = names::cluster_of(&name.namespace) {
                    let named = self.hub_imports.iter().filter(|import| import.status.clusters.contains(&cluster));
                    requeue.extend(named.map(|import| Key::Service(import.meta.name.clone())));
                }
            }
            Kind::InternalServiceImport if counts() => {
                let named =
                    self.hub_imports.iter().filter(|import| import.claims.importers.contains_key(&name.namespace));
                for import in named {
                    self.requeue_slices_of(&import.meta.name, requeue);
                    requeue.push(Key::Service(import.meta.name.clone()));
                }
                self.requeue_distributed_slices_in(&name.namespace, requeue);
            }
            Kind::EndpointSliceExport | Kind::EndpointSliceImport => requeue.push(Key::Slice(name.name.clone())),
            Kind::Namespace => self.requeue_for_rights(&name.name, requeue),
            Kind::InternalServiceExport
            | Kind::InternalServiceImport
            | Kind::Service
            | Kind::EndpointSlice
            | Kind::ServiceExport
            | Kind::MultiClusterService
            | Kind::MemberAgent => {}
        }
    }

    /// Requeues the Services and slices of a namespace after its lists of exporters or importers changed.
    fn requeue_for_rights(&mut self, namespace: &Text, requeue: &mut Vec<Key>) {
        let imports = self.hub_imports.in_namespace(namespace).map(|import| &import.meta.name);
        let exported = self.internal_exports_of.keys_in(namespace);
        let claimed = self.claims_of.keys_in(namespace);
        requeue.extend(imports.chain(exported).chain(claimed).cloned().map(Key::Service));
        let services = self.slice_exports_of.keys_in(namespace);
        let slices: BTreeSet<Text> =
            services.flat_map(|service| self.slice_exports_of.get(service)).map(|slice| slice.name.clone()).collect();
        let mut waited_for: BTreeSet<ObjectName> = BTreeSet::new();
        for slice in &slices {
            waited_for.extend(self.replacing_under(slice));
            requeue.push(Key::Slice(slice.clone()));
        }
        self.rank_exports(&slices, requeue);
        self.requeue_waiting_slices(waited_for, requeue);
    }

    /// Requeues the distributed slices in a member namespace.
    fn requeue_distributed_slices_in(&self, namespace: &Text, requeue: &mut Vec<Key>) {
        let copies = self.distributed_slices.in_namespace(namespace);
        requeue.extend(copies.map(|copy| Key::Slice(copy.meta.name.name.clone())));
    }

    /// Requeues the keys whose writes failed because this namespace did not exist.
    fn requeue_for_namespace(&self, namespace: &Text, requeue: &mut Vec<Key>) {
        requeue.extend(self.internal_exports_of.keys_in(namespace).cloned().map(Key::Service));
        let claims = self.claims.in_namespace(namespace).map(|claim| &claim.reference.source);
        for service in claims.collect::<BTreeSet<_>>() {
            self.requeue_slices_of(service, requeue);
        }
    }
}

/// Returns the objects with these names, without those that are being deleted.
pub(crate) fn live<'a, T: Stored + 'a>(
    table: &'a Table<T>,
    names: impl Iterator<Item = &'a ObjectName> + 'a,
) -> impl Iterator<Item = &'a T> + 'a {
    names.filter_map(|name| table.live(name))
}
