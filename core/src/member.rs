//! The member agent's view: its own cluster and its namespace in the hub, with the indexes that tell which keys a change
//! concerns.
//!
//! ```text
//!  member: Service  EndpointSlice  ServiceExport  ServiceImport  MultiClusterService  Namespace (kube-system)
//!  hub:    InternalServiceExport  EndpointSliceExport  InternalServiceImport  EndpointSliceImport  MemberAgent  (one namespace)
//! ```

mod announced;
mod apply;
mod disputed;
mod excess;
mod going;
mod nameless;
mod orphans;
mod owner;
mod refused;
mod stamps;
mod unreadable;

use crate::disputes::Disputes;
use crate::feature_set::Announced;
use crate::handshake;
use crate::ids::{ObjectName, Text, Timestamp};
use crate::index::{Index, Table};
use crate::model::{
    Announcement, EndpointSlice, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent,
    MultiClusterService, Object, Service, ServiceExport, ServiceImport,
};
use crate::plan::Plan;
use crate::ranges::Range;
use crate::unreadable::Unreadable;
use crate::watches::{WatchState, Watches};
use crate::{export, import};
use nameless::Nameless;
use owner::Owners;
use std::collections::BTreeMap;

pub use stamps::ServiceLatency;
pub(crate) use stamps::Stamps;

/// What the member agent was told about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its cluster id.
    pub cluster: Text,
    /// Its namespace in the hub.
    pub hub_namespace: Text,
    /// Namespace of derived Services and imported slices in the member.
    pub fleet_system_namespace: Text,
    /// How long a derived Service outlives its last exporter, in microseconds.
    pub derived_service_grace_micros: i64,
    /// Where the endpoints of a cluster lie; of one that is not named they may lie anywhere.
    pub source_ranges: BTreeMap<Text, Vec<Range>>,
    /// What it says of itself to the hub; `None` where this process writes nothing there.
    pub announces: Option<Announcement>,
    /// Identity of this process, as in its Leases.
    pub leader: Text,
    /// How long another cluster with this id may be silent before this one takes over, in microseconds.
    pub takeover_after_micros: i64,
}

/// What the member agent plans about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Export of the Service of that name.
    Export(ObjectName),
    /// Export of the slice of that name.
    SliceExport(ObjectName),
    /// A MultiClusterService, its ServiceImport and its derived Service.
    MultiClusterService(ObjectName),
    /// A ServiceImport and its claim in the hub.
    Import(ObjectName),
    /// Import of the slice of that name.
    SliceImport(Text),
    /// The member's word to the hub.
    Heartbeat,
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all changes are of the large kind, and none is kept")]
pub enum Change {
    /// Its newest state.
    Applied(Object),
    /// It is there, cannot be read, and nothing is known of it: until it can be read or is gone.
    Unreadable {
        /// What it is.
        kind: Kind,
        /// Where it is.
        name: ObjectName,
    },
    /// It is gone.
    Removed {
        /// What it was.
        kind: Kind,
        /// Where it was.
        name: ObjectName,
        /// Which it was.
        uid: Text,
    },
}

/// Everything that the member agent knows.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// What it was told about itself.
    pub settings: Settings,
    /// How far each table can be trusted.
    pub watches: Watches,
    /// What is there beside these tables and cannot be read.
    pub(crate) unreadable: Unreadable,
    /// All Services of the member.
    pub services: Table<Service>,
    /// All EndpointSlices of the member.
    pub slices: Table<EndpointSlice>,
    /// All ServiceExports.
    pub exports: Table<ServiceExport>,
    /// All ServiceImports of the member.
    pub imports: Table<ServiceImport>,
    /// All MultiClusterServices.
    pub multi_cluster_services: Table<MultiClusterService>,
    /// Exports of Services, in the hub.
    pub internal_exports: Table<InternalServiceExport>,
    /// Claims, in the hub.
    pub internal_imports: Table<InternalServiceImport>,
    /// Exported slices, in the hub.
    pub slice_exports: Table<HubSlice>,
    /// Slices to import, in the hub.
    pub slice_imports: Table<HubSlice>,
    /// Our word to the hub, and the hub's to us.
    pub member_agents: Table<MemberAgent>,

    /// Service to its slices.
    pub(crate) slices_of: Index<ObjectName>,
    /// Service to its exports in the hub.
    pub(crate) internal_exports_of: Index<ObjectName>,
    /// Slice to its exports in the hub.
    pub(crate) slice_exports_of: Index<ObjectName>,
    /// Exported Service to the exports of its slices in the hub.
    pub(crate) slice_exports_under: Index<ObjectName>,
    /// ServiceImport to the MultiClusterServices that want it.
    pub(crate) wanting: Index<ObjectName>,
    /// UID of a MultiClusterService to the ServiceImports that it controls.
    pub(crate) imports_of: Index<Text>,
    /// MultiClusterService to the Services derived for it.
    pub(crate) derived_of: Index<ObjectName>,
    /// Name of a derived Service to the MultiClusterServices that name it in their label.
    pub(crate) deriving: Index<Text>,
    /// ServiceImport to its claims in the hub.
    pub(crate) internal_imports_of: Index<ObjectName>,
    /// Imported Service to the slices that the hub gives for it.
    pub(crate) slice_imports_of: Index<ObjectName>,
    /// Imported Service to those of them that are on their way out: deleted, or without an endpoint that is imported.
    going_slice_imports_of: Index<ObjectName>,
    /// Cluster to the slices that the hub gives from it.
    pub(crate) slice_imports_from: Index<Text>,
    /// What is remembered of when things were seen.
    pub(crate) stamps: Stamps,
    /// What waits for a name.
    nameless: Nameless,
    /// What a server refused.
    refused: BTreeMap<Key, String>,
    /// What other writers undo, by the ServiceExport that it is written for, and by the MultiClusterService.
    disputed_exports: Disputes,
    disputed_imports: Disputes,
    /// Imported slices to the excess that our last write to them was answered with.
    answered_excess: BTreeMap<Text, u64>,
    /// What the hub has announced.
    pub(super) hub_announced: Announced,
    /// What is known of the owner of this cluster's id.
    owners: Owners,
    /// The watch of this cluster's slices is in touch with the server, or has not lost it yet.
    pub(super) slices_followed: bool,
}

impl View {
    /// An agent that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            watches: Watches::default(),
            unreadable: Unreadable::default(),
            services: Table::default(),
            slices: Table::default(),
            exports: Table::default(),
            imports: Table::default(),
            multi_cluster_services: Table::default(),
            internal_exports: Table::default(),
            internal_imports: Table::default(),
            slice_exports: Table::default(),
            slice_imports: Table::default(),
            member_agents: Table::default(),
            slices_of: Index::default(),
            internal_exports_of: Index::default(),
            slice_exports_of: Index::default(),
            slice_exports_under: Index::default(),
            wanting: Index::default(),
            imports_of: Index::default(),
            derived_of: Index::default(),
            deriving: Index::default(),
            internal_imports_of: Index::default(),
            slice_imports_of: Index::default(),
            going_slice_imports_of: Index::default(),
            slice_imports_from: Index::default(),
            stamps: Stamps::default(),
            nameless: Nameless::default(),
            refused: BTreeMap::new(),
            disputed_exports: Disputes::default(),
            disputed_imports: Disputes::default(),
            answered_excess: BTreeMap::new(),
            hub_announced: Announced::default(),
            owners: Owners::default(),
            slices_followed: true,
        }
    }

    /// Takes a change in; `at` is when it was seen. Pushes the keys that it concerns.
    pub fn apply(&mut self, change: Change, at: Timestamp, dirty: &mut Vec<Key>) {
        match change {
            Change::Applied(object) => {
                let (kind, name) = (object.kind(), &object.meta().name);
                let readable = self.unreadable.remove(kind, name).then(|| name.clone());
                self.take(object, at, dirty);
                if let Some(name) = readable {
                    self.unreadable_changed(kind, &name, at, dirty);
                }
            }
            Change::Unreadable { kind, name } => {
                if self.unreadable.insert(kind, name.clone()) {
                    self.unreadable_changed(kind, &name, at, dirty);
                }
            }
            Change::Removed { kind, name, uid } => {
                let was_unreadable = self.unreadable.remove(kind, &name);
                self.forget(kind, &name, &uid, at, dirty);
                if was_unreadable {
                    self.unreadable_changed(kind, &name, at, dirty);
                }
            }
        }
    }

    /// Takes the new state of a watch. Every decision may depend on it, so every key is planned anew.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, dirty: &mut Vec<Key>) {
        if self.watches.set(kind, state, at) {
            self.note_orphans(at);
            self.all_keys(dirty);
        }
    }

    /// The wall clock was set by so many microseconds: what is remembered moves with it.
    pub fn clock_set(&mut self, micros: i64) {
        self.watches.clock_set(micros);
        self.stamps.clock_set(micros);
        self.hub_announced.clock_set(micros);
        self.owners.clock_set(micros);
    }

    /// A write that exported a Service is done: its latency ends when the hub has judged it, which the watch may have
    /// shown already.
    pub fn service_exported(&mut self, service: &ObjectName, at: Timestamp) {
        self.stamps.await_verdict(service);
        let names = self.internal_exports_of.get(service);
        let judged = names.filter_map(|name| self.internal_exports.get(name)).find(|export| export.is_judged());
        if let Some(export) = judged {
            self.stamps.judged(service, export.reference.exported_since, at);
        }
    }

    /// Latencies of Services whose verdict has come since the last call.
    pub fn service_latencies(&mut self) -> Vec<ServiceLatency> {
        self.stamps.take_latencies()
    }

    /// What to do about a key.
    pub fn plan(&self, key: &Key, now: Timestamp) -> Plan {
        let plan = match key {
            Key::Heartbeat => return handshake::plan_heartbeat(self, now),
            Key::Export(service) => export::plan_service(self, service, now),
            Key::SliceExport(slice) => export::plan_slice(self, slice, now),
            Key::MultiClusterService(name) => import::plan_multi_cluster_service(self, name, now),
            Key::Import(name) => import::plan_import(self, name),
            Key::SliceImport(name) => import::plan_slice(self, name, now),
        };
        if self.acts_in_hub(now) { plan } else { owner::restricted(plan) }
    }

    /// What to do about a ServiceImport where another process claims, or none.
    pub fn plan_unclaimed_import(&self, name: &ObjectName) -> Plan {
        import::plan_unclaimed_import(self, name)
    }

    /// Every key about which there may be something to do.
    pub fn all_keys(&self, dirty: &mut Vec<Key>) {
        dirty.push(Key::Heartbeat);
        dirty.extend(self.exports.iter().map(|object| Key::Export(object.meta.name.clone())));
        dirty.extend(self.internal_exports.iter().map(|object| Key::Export(object.reference.source.clone())));
        dirty.extend(self.slices.iter().map(|object| Key::SliceExport(object.meta.name.clone())));
        // fault E6.2: dirty.extend(self.slice_exports.iter().map(|object| Key::SliceExport(object.spec.reference.source.clone()))); ~>
        dirty.extend(self.slice_exports.iter().map(|object| Key::SliceExport(object.spec.reference.source.clone())));
        dirty.extend(
            self.multi_cluster_services.iter().map(|object| Key::MultiClusterService(object.meta.name.clone())),
        );
        dirty.extend(self.imports.iter().map(|object| Key::Import(object.meta.name.clone())));
        dirty.extend(self.internal_imports.iter().map(|object| Key::Import(object.reference.source.clone())));
        dirty.extend(self.slice_imports.iter().map(|object| Key::SliceImport(object.meta.name.name.clone())));
        let system = &self.settings.fleet_system_namespace;
        dirty.extend(self.slices.in_namespace(system).map(|object| Key::SliceImport(object.meta.name.name.clone())));
    }

    /// The MultiClusterServices that want an import.
    pub fn wishes_for<'a>(&'a self, import: &ObjectName) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.wanting.get(import)
    }

    /// The exported Service that a slice to import belongs to.
    pub fn owner_of_slice_import(&self, name: &Text) -> Option<ObjectName> {
        Some(self.slice_imports.get(&self.in_hub(name.clone()))?.spec.owner.clone())
    }

    /// The cluster that a slice to import says it comes from.
    pub fn origin_of_slice_import(&self, name: &Text) -> Option<&Text> {
        Some(&self.slice_imports.get(&self.in_hub(name.clone()))?.spec.reference.cluster)
    }

    /// Whether anything comes from a cluster, or is imported from it: what is measured of others is of no interest any more.
    pub fn is_origin(&self, cluster: &Text) -> bool {
        let imported = |claim: &InternalServiceImport| claim.status.clusters.contains(cluster);
        // fault T27.1: self.slice_imports_from.get(cluster).next().is_some() || self.internal_imports.iter().any(imported) ~> { let _ = imported; self.slice_imports_from.get(cluster).next().is_some() }
        self.slice_imports_from.get(cluster).next().is_some() || self.internal_imports.iter().any(imported)
    }

    /// The Service that a slice belongs to.
    pub(crate) fn service_of(slice: &EndpointSlice) -> Option<ObjectName> {
        let service = slice.service.as_ref()?;
        Some(ObjectName::new(slice.meta.name.namespace.clone(), service.clone()))
    }

    /// Whether a slice was imported, whatever its labels say by now: what the hub gives is marked before it is imported, and
    /// nothing that is given under the name of another slice of this cluster is marked.
    pub(crate) fn is_imported(&self, slice: &EndpointSlice) -> bool {
        let name = &slice.meta.name;
        let given = || {
            let at = self.in_hub(name.name.clone());
            // fault T26.3: is_some_and(|given| given.meta.finalizers.ours ~> is_some(
            let is_marked = self.slice_imports.get(&at).is_some_and(|given| given.meta.finalizers.ours);
            is_marked || self.unreadable.has(Kind::EndpointSliceImport, &at)
        };
        // fault E11.2: given()) } ~> given() && false) }
        slice.imported || (name.namespace == self.settings.fleet_system_namespace && given())
    }

    /// A name in the member's hub namespace.
    pub(crate) fn in_hub(&self, name: Text) -> ObjectName {
        ObjectName { namespace: self.settings.hub_namespace.clone(), name }
    }

    /// A name in the fleet's system namespace of the member.
    pub(crate) fn in_system(&self, name: Text) -> ObjectName {
        ObjectName { namespace: self.settings.fleet_system_namespace.clone(), name }
    }
}
