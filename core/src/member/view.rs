//! View of the member agent: cache of objects in its own cluster and in its member namespace of the hub. Indexes of the view
//! find the keys to requeue after a change.
//!
//! ```text
//!  member: Service  EndpointSlice  ServiceExport  ServiceImport  MultiClusterService  Namespace (kube-system)
//!  hub:    InternalServiceExport  EndpointSliceExport  InternalServiceImport  EndpointSliceImport  MemberAgent  (one namespace)
//! ```

mod announced;
mod apply;
mod disputed;
mod excess;
mod nameless;
mod orphans;
mod owner;
mod rejections;
mod stamps;
mod undecodable;
mod waiting;

use crate::disputes::Disputes;
use crate::feature_set::Announced;
use crate::handshake;
use crate::index::{Index, Table};
use crate::member::{export, import, latency};
use crate::model::{
    Announcement, EndpointSlice, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent,
    MultiClusterService, Object, Service, ServiceExport, ServiceImport,
};
use crate::plan::Plan;
use crate::ranges::IpNet;
use crate::undecodable::Undecodable;
use crate::watches::Watches;
use fleetnet_types::{Change, ClusterId, MemberNamespace, ObjectName, Text, Timestamp, Uid, WatchState};
use nameless::Nameless;
use owner::Owners;
use std::collections::BTreeMap;

pub use stamps::ServiceLatency;
pub(crate) use stamps::Stamps;

/// Settings of the member agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub cluster: ClusterId,
    /// Member namespace of this cluster in the hub.
    pub hub_namespace: MemberNamespace,
    /// Namespace of derived Services and imported slices in the member (`fleet-system`).
    pub fleet_system_namespace: Text,
    /// Time for which a derived Service stays after its last exporter is gone, in microseconds.
    pub derived_service_grace_micros: i64,
    /// Allowed address ranges of each exporting cluster's endpoints. A cluster without an entry may export any address.
    pub source_ranges: BTreeMap<ClusterId, Vec<IpNet>>,
    /// Features and version to announce to the hub; `None` if this process announces nothing.
    pub announces: Option<Announcement>,
    /// Identity of this process in its Leases. The MemberAgent shows it, so that two leaders of one cluster are detected.
    pub leader: Text,
    /// Takeover time in microseconds: if the owner of the cluster id makes no renewal for this time, this cluster takes over
    /// the id.
    pub takeover_after_micros: i64,
}

/// Key of the member agent. A key names what one plan is for, such as the export of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Export of the Service with this name.
    Export(ObjectName),
    /// Export of the source slice with this name.
    SliceExport(ObjectName),
    /// A MultiClusterService, its ServiceImport and its derived Service.
    MultiClusterService(ObjectName),
    /// A ServiceImport and its claim in the hub.
    Import(ObjectName),
    /// Import of the distributed slice with this name.
    SliceImport(Text),
    /// The MemberAgent that this member renews.
    Heartbeat,
}

/// In-memory copy of all objects in the member and in the hub that the rules of the member agent read.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub settings: Settings,
    /// State of each kind's watch. While the table of a kind is incomplete, a rule must not treat a missing object as deleted.
    pub watches: Watches,
    /// Objects that exist but do not decode. The tables keep the last decoded state of these objects, if there is one.
    pub(crate) undecodable: Undecodable,
    pub services: Table<Service>,
    /// EndpointSlices of the member cluster: source slices and imported slices.
    pub slices: Table<EndpointSlice>,
    pub exports: Table<ServiceExport>,
    pub imports: Table<ServiceImport>,
    pub multi_cluster_services: Table<MultiClusterService>,
    /// InternalServiceExports of this member in the hub.
    pub internal_exports: Table<InternalServiceExport>,
    /// Claims (InternalServiceImports) of this member in the hub.
    pub claims: Table<InternalServiceImport>,
    /// EndpointSliceExports of this member in the hub.
    pub slice_exports: Table<HubSlice>,
    /// Slices that the hub distributed to this member (EndpointSliceImports).
    pub distributed_slices: Table<HubSlice>,
    /// MemberAgents in the member namespace.
    pub member_agents: Table<MemberAgent>,

    /// From each Service to its slices in this cluster.
    pub(crate) slices_of: Index<ObjectName>,
    /// From each Service to its InternalServiceExports in the hub.
    pub(crate) internal_exports_of: Index<ObjectName>,
    /// From each source slice to its EndpointSliceExports in the hub.
    pub(crate) slice_exports_of: Index<ObjectName>,
    /// From each exported Service to the exports of its slices.
    pub(crate) slice_exports_under: Index<ObjectName>,
    /// From each ServiceImport to the MultiClusterServices that request it.
    pub(crate) mcs_of_import: Index<ObjectName>,
    /// From the UID of a MultiClusterService to the ServiceImports that it controls.
    pub(crate) imports_of: Index<Uid>,
    /// From each MultiClusterService to the Services derived for it.
    pub(crate) derived_of: Index<ObjectName>,
    /// From the name of a derived Service to the MultiClusterServices whose label contains this name.
    pub(crate) mcs_of_derived_name: Index<Text>,
    /// From each ServiceImport to its claims in the hub.
    pub(crate) claims_of: Index<ObjectName>,
    /// From each imported Service to its distributed slices.
    pub(crate) distributed_slices_of: Index<ObjectName>,
    /// From each imported Service to its distributed slices that are being deleted or have no endpoint to import.
    withdrawn_slices_of: Index<ObjectName>,
    /// From each exporting member to the distributed slices that come from this member.
    pub(crate) distributed_slices_from: Index<ClusterId>,
    /// Times at which changes were observed, for latencies and grace periods.
    pub(crate) stamps: Stamps,
    /// Exports and imports that wait for a free name: other objects have all names that the agent may give to the object that
    /// it must create.
    nameless: Nameless,
    /// Latency samples of imports, for the MemberAgent.
    pub(crate) latencies: latency::Summary,
    /// From each key to the message of the server that rejected the last write of this key.
    rejections: BTreeMap<Key, String>,
    /// Writes of this agent that other writers undo. The key is that of the ServiceExport or MultiClusterService whose
    /// condition shows the dispute.
    disputes: Disputes<Key>,
    /// From each imported slice to the hash of content that a webhook added to the agent's last write. The server's response to
    /// this write showed the content ([`EndpointSlice::excess`]).
    answered_excess: BTreeMap<Text, u64>,
    /// Last announcement of the hub agent.
    pub(super) hub_announced: Announced,
    owners: Owners,
    /// False while the watch of this cluster's EndpointSlices has no contact with the API server. Then no heartbeat is written.
    pub(super) slices_followed: bool,
}

impl View {
    /// Creates an empty view.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            watches: Watches::default(),
            undecodable: Undecodable::default(),
            services: Table::default(),
            slices: Table::default(),
            exports: Table::default(),
            imports: Table::default(),
            multi_cluster_services: Table::default(),
            internal_exports: Table::default(),
            claims: Table::default(),
            slice_exports: Table::default(),
            distributed_slices: Table::default(),
            member_agents: Table::default(),
            slices_of: Index::default(),
            internal_exports_of: Index::default(),
            slice_exports_of: Index::default(),
            slice_exports_under: Index::default(),
            mcs_of_import: Index::default(),
            imports_of: Index::default(),
            derived_of: Index::default(),
            mcs_of_derived_name: Index::default(),
            claims_of: Index::default(),
            distributed_slices_of: Index::default(),
            withdrawn_slices_of: Index::default(),
            distributed_slices_from: Index::default(),
            stamps: Stamps::default(),
            nameless: Nameless::default(),
            latencies: latency::Summary::default(),
            rejections: BTreeMap::new(),
            disputes: Disputes::default(),
            answered_excess: BTreeMap::new(),
            hub_announced: Announced::default(),
            owners: Owners::default(),
            slices_followed: true,
        }
    }

    /// Stores a change of an object, which the agent saw at the time `at`. Appends to `requeue` the keys that depend on the
    /// object.
    pub fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        match change {
            Change::Applied(object) => self.applied(object, at, requeue),
            Change::Undecodable { name } => {
                if self.undecodable.insert(kind, name.clone()) {
                    self.requeue_for_undecodable(kind, &name, at, requeue);
                }
            }
            Change::Removed { name, uid, how: _ } => {
                let was_undecodable = self.undecodable.remove(kind, &name);
                self.forget(kind, &name, &uid, at, requeue);
                if was_undecodable {
                    self.requeue_for_undecodable(kind, &name, at, requeue);
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
            self.requeue_for_undecodable(kind, &name, at, requeue);
        }
    }

    /// Stores the new state of a watch. Every plan may depend on the state of the watch, so all keys are requeued.
    pub fn watch_state(&mut self, kind: Kind, state: WatchState, at: Timestamp, requeue: &mut Vec<Key>) {
        if self.watches.set(kind, state, at) {
            self.note_orphans(at);
            self.all_keys(requeue);
        }
    }

    /// Moves all stored times by `micros`, after the wall clock was set forward (positive) or back (negative) by this duration.
    pub fn clock_set(&mut self, micros: i64) {
        self.watches.clock_set(micros);
        self.stamps.clock_set(micros);
        self.hub_announced.clock_set(micros);
        self.owners.clock_set(micros);
        self.latencies.clock_set(micros);
    }

    /// Adds the latency of an imported slice to the summary that the heartbeat writes to the MemberAgent.
    pub fn slice_imported(
        &mut self,
        origin: &ClusterId,
        import: latency::Import,
        exported_since: Timestamp,
        now: Timestamp,
    ) {
        self.latencies.observe(origin, import, latency::latency(exported_since, now), now);
    }

    /// Records that a heartbeat with a change of the latency summary was written.
    pub fn latency_reported(&mut self, at: Timestamp) {
        self.latencies.change_written(at);
    }

    /// Starts the wait for the hub's outcome of an export that was just written. The outcome ends the latency measurement of
    /// the Service, and may already be in the view.
    pub fn service_exported(&mut self, service: &ObjectName, at: Timestamp) {
        self.stamps.await_outcome(service);
        let names = self.internal_exports_of.get(service);
        let resolved = names.filter_map(|name| self.internal_exports.get(name)).find(|export| export.has_outcome());
        if let Some(export) = resolved {
            self.stamps.outcome_seen(service, export.reference.exported_since, at);
        }
    }

    /// Removes and returns the latencies of Services whose exports got an outcome since the last call.
    pub fn service_latencies(&mut self) -> Vec<ServiceLatency> {
        self.stamps.take_latencies()
    }

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

    /// Plans a ServiceImport in a process that makes no claims, because its import part is off.
    pub fn plan_unclaimed_import(&self, name: &ObjectName) -> Plan {
        import::plan_unclaimed_import(self, name)
    }

    /// Appends to `requeue` the keys of all known objects.
    pub fn all_keys(&self, requeue: &mut Vec<Key>) {
        requeue.push(Key::Heartbeat);
        requeue.extend(self.exports.iter().map(|object| Key::Export(object.meta.name.clone())));
        requeue.extend(self.internal_exports.iter().map(|object| Key::Export(object.reference.source.clone())));
        requeue.extend(self.slices.iter().map(|object| Key::SliceExport(object.meta.name.clone())));
        // fault E6.2: requeue.extend(self.slice_exports.iter().map(|object| Key::SliceExport(object.spec.reference.source.clone()))); ~>
        requeue.extend(self.slice_exports.iter().map(|object| Key::SliceExport(object.spec.reference.source.clone())));
        requeue.extend(
            self.multi_cluster_services.iter().map(|object| Key::MultiClusterService(object.meta.name.clone())),
        );
        requeue.extend(self.imports.iter().map(|object| Key::Import(object.meta.name.clone())));
        requeue.extend(self.claims.iter().map(|object| Key::Import(object.reference.source.clone())));
        requeue.extend(self.distributed_slices.iter().map(|object| Key::SliceImport(object.meta.name.name.clone())));
        let system = &self.settings.fleet_system_namespace;
        requeue.extend(self.slices.in_namespace(system).map(|object| Key::SliceImport(object.meta.name.name.clone())));
    }

    /// Returns the MultiClusterServices that request a ServiceImport.
    pub fn multi_cluster_services_of_import<'a>(
        &'a self,
        import: &ObjectName,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.mcs_of_import.get(import)
    }

    /// Returns the exported Service of a distributed slice.
    pub fn owner_of_distributed_slice(&self, name: &Text) -> Option<ObjectName> {
        Some(self.distributed_slices.get(&self.in_hub(name.clone()))?.spec.owner.clone())
    }

    /// Returns the exporting cluster of a distributed slice.
    pub fn origin_of_distributed_slice(&self, name: &Text) -> Option<&ClusterId> {
        Some(&self.distributed_slices.get(&self.in_hub(name.clone()))?.spec.reference.cluster)
    }

    /// True if this member imports a Service or a slice from `cluster`. The agent removes the metrics about a cluster for which
    /// the result is false.
    pub fn is_origin(&self, cluster: &ClusterId) -> bool {
        let imported = |claim: &InternalServiceImport| claim.status.clusters.contains(cluster);
        // fault T27.1: self.distributed_slices_from.get(cluster).next().is_some() || self.claims.iter().any(imported) ~> { let _ = imported; self.distributed_slices_from.get(cluster).next().is_some() }
        self.distributed_slices_from.get(cluster).next().is_some() || self.claims.iter().any(imported)
    }

    /// Returns the Service that a slice belongs to, by its label.
    pub(crate) fn service_of(slice: &EndpointSlice) -> Option<ObjectName> {
        let service = slice.service.as_ref()?;
        Some(ObjectName::new(slice.meta.name.namespace.clone(), service.clone()))
    }

    /// True if a slice of this cluster is an imported slice, even if its labels were edited.
    ///
    /// The managed-by label identifies an imported slice, and so does our finalizer on the distributed slice with the same
    /// name. A distributed slice gets this finalizer before it is imported. While another EndpointSlice, which was not
    /// imported, has this name, the distributed slice gets no finalizer.
    pub(crate) fn is_imported(&self, slice: &EndpointSlice) -> bool {
        let name = &slice.meta.name;
        let distributed = || {
            let at = self.in_hub(name.name.clone());
            // fault T26.3: is_some_and(|it| it.meta.finalizers.ours ~> is_some(
            let is_marked = self.distributed_slices.get(&at).is_some_and(|it| it.meta.finalizers.ours);
            is_marked || self.undecodable.has(Kind::EndpointSliceImport, &at)
        };
        // fault E11.2: distributed()) } ~> distributed() && false) }
        slice.imported || (name.namespace == self.settings.fleet_system_namespace && distributed())
    }

    /// Returns an object's full name in this member's namespace of the hub.
    pub(crate) fn in_hub(&self, name: impl Into<Text>) -> ObjectName {
        ObjectName::new(self.settings.hub_namespace.clone(), name)
    }

    /// Returns an object's full name in the namespace of derived Services and imported slices.
    pub(crate) fn in_system(&self, name: Text) -> ObjectName {
        ObjectName { namespace: self.settings.fleet_system_namespace.clone(), name }
    }
}
