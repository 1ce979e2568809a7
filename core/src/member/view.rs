//! View of the member agent: cache of objects in its own cluster and in its member namespace of the hub, with indexes,
//! and everything else that its plans depend on. The view knows no rule. It tells which values a change of an object
//! changes.
//!
//! ```text
//!  member: Service  EndpointSlice  ServiceExport  ServiceImport  MultiClusterService  Namespace (kube-system)
//!          McsServiceExport
//!  hub:    InternalServiceExport  EndpointSliceExport  InternalServiceImport  EndpointSliceImport  MemberAgent  (one namespace)
//! ```
//!
//! | file | content |
//! |---|---|
//! | `take` | changes of objects |
//! | `distributed` | changes of distributed slices |
//! | [`value`] | the values that a plan can read |
//! | [`reader`] | the reads of a plan |
//! | `existence` | the objects without which a key and a fact do not exist |
//! | [`change_times`] | the times at which the agent saw changes |
//! | `restore` | the last restore of the hub, and what the hub had before |
//! | `own` | addresses of this cluster itself, which slices of other clusters must not have |
//! | `owner` | the owner of the cluster id, as far as this process has seen it |
//! | `renewals` | the renewals of the MemberAgent that show the owner |
//! | `excess` | content that a webhook added to imported slices |
//! | `previews` | contents of distributed slices that the slice stream delivers before their objects |
//! | [`serving`] | what an imported slice serves |
//! | `exporters` | which exporting members serve a derived Service |
//! | [`selections`] | which clusters can serve the ports of an imported Service, and how strong they are |
//! | `switches` | changes of the chosen clusters |
//! | `leave` | the state `Leave` of this member |
//! | `hub_status` | what the hub agent writes to the MemberAgent |
//! | [`shares`] | how many slices and endpoints of a Service are imported from one exporting cluster |
//! | `mcs` | ServiceExports of the standard API |
//! | `stream_server` | which server the slice stream connects to |
//! | `stream_state` | if the slice stream is open |

pub(crate) mod change_times;
mod distributed;
mod excess;
mod existence;
mod exporters;
mod hub_status;
mod leave;
mod mcs;
mod membership;
mod own;
mod owner;
mod previews;
pub(crate) mod reader;
mod renewals;
mod restore;
pub(crate) mod selections;
pub(crate) mod serving;
pub(crate) mod shares;
mod stream_server;
mod stream_state;
mod switches;
mod take;
#[cfg(test)]
mod take_tests;
pub(crate) mod value;

use self::restore::Restore;
use crate::admission::NotImported;
use crate::admission::own::{OwnAddresses, OwnRanges};
use crate::disputes::Disputes;
use crate::feature_set::{Announced, FeatureSet};
use crate::index::{Index, Table};
use crate::limits::{EXPORTS_PER_NAMESPACE, SLICES_PER_TWO_EXPORTS};
use crate::member::latency;
use crate::member::selection::Pace;
use crate::model::{
    Announcement, ClusterProperty, EndpointSlice, HubSlice, HubSliceSpec, InternalMemberCluster, InternalServiceExport,
    InternalServiceImport, Kind, McsServiceExport, McsServiceImport, MemberAgent, MembershipAgent, MergedServiceImport,
    MultiClusterService, Namespace, Node, Properties, Service, ServiceExport, ServiceImport, SliceContent, Treatment,
};
use crate::names;
use crate::ranges::IpNet;
use crate::undecodable::Undecodable;
use crate::watches::Watches;
use change_times::{Facts, Records};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp, Uid};
use leave::Leave;
use renewals::Owners;
use selections::Selections;
use serving::Serving;
use shares::Shares;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use value::{Bucket, Computation, Value};

pub use change_times::ServiceLatency;
pub(crate) use reader::{Leaving, Reader};
pub use selections::{Direction, Switch};
pub use shares::ImportLimits;
pub(crate) use stream_server::HubLeads;
pub use stream_server::{SliceStreamServer, StreamEnd};
pub use stream_state::{SliceStream, SliceStreamUse};

/// Settings of the member agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Addresses of this cluster itself, which other clusters' endpoints must not have.
    pub own_ranges: OwnRanges,
    /// Maximum number of load balancers for the MultiClusterServices of one namespace; `None` for no maximum.
    pub load_balancers_per_namespace: Option<usize>,
    /// Features and version to announce to the hub; `None` if this process announces nothing.
    pub announces: Option<Announcement>,
    /// Identity of this process in its Leases. The MemberAgent shows it, so two leaders of one cluster are detected.
    pub leader: Text,
    /// Takeover time in microseconds: if the owner of the cluster id makes no renewal for this time, this cluster takes
    /// over the id.
    pub takeover_after_micros: i64,
    pub membership: Membership,
    pub mcs_api: McsApi,
    /// True if the standard API imports a slice of its own for kube-proxy: the routing slice.
    pub routing_slices: bool,
    /// Cluster selection; `None` if it is off.
    pub cluster_selection: Option<ClusterSelection>,
    pub limits: Limits,
}

/// Settings of cluster selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSelection {
    /// Properties of this cluster that the flags set.
    pub properties: Properties,
    /// Times of a failback.
    pub pace: Pace,
}

/// Limits that the flags of the member agent set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub imports: ImportLimits,
    /// Value of the flag `--max-exports-per-namespace`: Services of one namespace that may be exported.
    pub exports_per_namespace: usize,
}

impl Limits {
    /// Returns the maximum number of exports of a kind from one namespace. The quota of a member in the hub has as many
    /// slices for each Service.
    pub(crate) fn exports_from_namespace(&self, kind: Kind) -> usize {
        if kind == Kind::EndpointSliceExport {
            self.exports_per_namespace.saturating_mul(SLICES_PER_TWO_EXPORTS) / 2
        } else {
            self.exports_per_namespace
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { imports: ImportLimits::default(), exports_per_namespace: EXPORTS_PER_NAMESPACE }
    }
}

/// Use of the standard API by a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McsApi {
    #[default]
    Off,
    /// Only namespaces with the label `fleetnet/import` import Services.
    LabelledNamespaces,
    /// All namespaces import Services, apart from those of Kubernetes and fleetnet.
    AllNamespaces,
}

/// Work of this process for a fleet manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Agents whose heartbeats this process sends. Empty if it does not follow its membership.
    pub agents: Vec<MembershipAgent>,
    pub on_leave: OnLeave,
}

/// Treatment of ServiceExports and MultiClusterServices when the member leaves the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeave {
    #[default]
    Delete,
    /// This process does not handle them.
    Keep,
}

/// Key of the member agent. A key names what one plan is for, such as the export of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Export of the Service with this name.
    Export(ObjectName),
    /// Export of the source slice with this name.
    SliceExport(ObjectName),
    /// A MultiClusterService, its ServiceImport and its derived Service.
    MultiClusterService(ObjectName),
    /// A ServiceImport and its claim in the hub.
    Import(ObjectName),
    /// Import of a Service by the standard API: its ServiceImport and its derived Service.
    McsImport(ObjectName),
    /// Import of a distributed slice into the EndpointSlice with this name.
    SliceImport(ObjectName),
    /// The MemberAgent that this member renews.
    Heartbeat,
    /// The InternalMemberCluster of this member.
    Membership,
}

/// In-memory copy of all objects in the member and in the hub that the rules of the member agent read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    pub settings: Settings,
    /// State of each kind's watch. While a kind's table is incomplete, no rule may treat a missing object as deleted.
    pub watches: Watches,
    /// Objects that exist but do not decode. The tables keep the last decoded state of these objects, if there is one.
    undecodable: Undecodable,
    pub services: Table<Service>,
    /// EndpointSlices of the member cluster: source slices and imported slices.
    pub slices: Table<EndpointSlice>,
    pub exports: Table<ServiceExport>,
    /// ServiceExports of the standard API.
    pub mcs_exports: Table<McsServiceExport>,
    /// ServiceImports of the standard API.
    pub mcs_imports: Table<McsServiceImport>,
    /// MergedServiceImports in the member namespace.
    pub merged_imports: Table<MergedServiceImport>,
    /// Namespaces of this cluster. Empty if this member does not use the standard API.
    pub namespaces: Table<Namespace>,
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
    /// InternalMemberClusters in the member namespace.
    pub memberships: Table<InternalMemberCluster>,
    /// ClusterProperties of this cluster. Empty without cluster selection.
    pub cluster_properties: Table<ClusterProperty>,
    /// Nodes of this cluster with their zones. Empty without cluster selection.
    pub nodes: Table<Node>,
    leave: Leave,
    /// Restore of the hub from a backup, while imports keep the state before it.
    restore: Option<Restore>,

    /// Names of the objects in each bucket.
    buckets: Index<(Bucket, ObjectName)>,
    /// From the UID of a MultiClusterService to the ServiceImports that it controls.
    imports_of: Index<Uid>,
    /// From each exporting member to the distributed slices that come from this member.
    distributed_slices_from: Index<ClusterId>,
    /// Contents of the objects of distributed slices whose entry in `distributed_slices` has the content of a preview.
    previews: BTreeMap<Text, HubSliceSpec>,
    /// Imported slices whose source went back, so that a hub agent wrote the distributed slice after the last change of
    /// the imported slice, as this process has seen. The two APIs import a slice under two names. Empty if this member
    /// uses no slice stream.
    written: BTreeSet<ObjectName>,
    pub slice_stream: SliceStream,
    /// Validated contents of the distributed slices of which not all parts are imported. Normally empty.
    admissions: BTreeMap<Text, Admission>,
    /// Addresses of this cluster's Services and of its API server.
    own_addresses: OwnAddresses,
    /// Times since which facts are true, for grace periods and latencies.
    pub(super) facts: Facts,
    /// Times at which changes were seen, for latencies.
    records: Records,
    /// Latency samples of imports, for the MemberAgent.
    latencies: latency::Summary,
    /// From each key to the message of the server that rejected the last write of this key.
    rejections: BTreeMap<Key, String>,
    /// Writes of this agent that other writers undo. The key is that of the ServiceExport or MultiClusterService whose
    /// condition shows the dispute.
    pub(crate) disputes: Disputes<Key>,
    /// From each imported slice to the hash of content that a webhook added to the agent's last write. The server's
    /// response to this write showed the content ([`EndpointSlice::excess`]).
    answered_excess: BTreeMap<ObjectName, u64>,
    /// Last announcement of the hub agent.
    hub_announced: Announced,
    /// Silent members, by the last list of the hub agent.
    silent_members: BTreeMap<ClusterId, Treatment>,
    serving: Serving,
    selections: Selections,
    shares: Shares,
    /// Numbers of InternalServiceExports and EndpointSliceExports, by kind and by the namespace of their sources.
    exported_from: BTreeMap<(Kind, Text), usize>,
    owners: Owners,
    /// False while the watch of this cluster's EndpointSlices has no contact with the API server. Then no heartbeat is
    /// written.
    pub(super) slices_followed: bool,
    /// Time since which the watch of distributed slices has contact with the hub; `None` while it has none.
    pub(super) hub_followed_since: Option<Timestamp>,
}

/// Adds to a number. At 0, it is removed. Returns the number before and after.
fn add<K: Ord>(numbers: &mut BTreeMap<K, usize>, key: K, by: isize) -> [usize; 2] {
    let before = numbers.get(&key).copied().unwrap_or_default();
    let after = before.saturating_add_signed(by);
    if after == 0 {
        numbers.remove(&key)
    } else {
        numbers.insert(key, after)
    };
    [before, after]
}

/// Validated content of a distributed slice.
#[derive(Clone, Debug, PartialEq)]
struct Admission {
    content: SliceContent,
    not_imported: NotImported,
    /// First generation of the source slice with these parts that are not imported.
    since: i64,
}

pub type Effects = crate::planner::Effects<Key, Value, Computation>;

impl View {
    /// Creates an empty view.
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, slices_followed: true, hub_followed_since: Some(Timestamp::EPOCH), ..Self::default() }
    }

    /// Moves all stored times by `micros`, after the wall clock was set forward (positive) or back (negative) by it.
    pub fn clock_set(&mut self, micros: i64) {
        self.watches.clock_set(micros);
        if let Some(restore) = &mut self.restore {
            restore.at = restore.at.plus_micros(micros);
        }
        self.leave.clock_set(micros);
        self.hub_followed_since = self.hub_followed_since.map(|since| since.plus_micros(micros));
        self.slice_stream.clock_set(micros);
        self.facts.clock_set(micros);
        self.records.clock_set(micros);
        self.hub_announced.clock_set(micros);
        self.owners.clock_set(micros);
        self.latencies.clock_set(micros);
        self.selections.clock_set(micros);
    }

    /// Records a restore of the hub. If the hub is restored again before it has the newest state, the state before the
    /// first restore counts.
    pub(in crate::member) fn hub_restored(&mut self, at: Timestamp) {
        self.forget_restore(at);
        let merged = || {
            let live = self.merged_imports.iter().filter(|merged| !merged.meta.deleting);
            live.map(|merged| (merged.service.clone(), Arc::clone(&merged.import))).collect()
        };
        let merged = self.restore.take().map_or_else(merged, |earlier| earlier.merged);
        self.restore = Some(Restore { at, merged });
    }

    /// Drops the state before a restore after the time in which imports keep it.
    fn forget_restore(&mut self, now: Timestamp) {
        if self.keeps_until(now).is_none() {
            self.restore = None;
        }
    }

    /// Returns the end of the time after a restore of the hub in which an import keeps its Services as they are. `None`
    /// at other times.
    fn keeps_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.restore.as_ref().and_then(|restore| restore.keeps_until(now))
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

    /// Starts the wait for the hub's outcome of an export that was just written. The outcome ends the latency
    /// measurement of the Service, and may already be in the view.
    pub fn service_exported(&mut self, service: &ObjectName, at: Timestamp) {
        if self.services.get(service).is_none() {
            return; // the Service went while its export was written
        }
        self.records.await_outcome(service);
        let resolved = self
            .bucket(Bucket::InternalExports, service)
            .filter_map(|name| self.internal_exports.get(name))
            .find(|export| export.outcome().is_some());
        if let Some(export) = resolved {
            self.records.outcome_seen(service, export.reference.exported_since, at);
        }
    }

    /// Removes and returns the latencies of Services whose exports got an outcome since the last call.
    pub fn service_latencies(&mut self) -> Vec<ServiceLatency> {
        self.records.take_latencies()
    }

    /// Records that a server rejected a write of this key. `message` is the text for the user. No watch shows a
    /// rejection, so the writer reports each. After a restart, only a condition on the user's object shows it.
    pub fn write_rejected(&mut self, key: &Key, message: String) {
        self.rejections.insert(key.clone(), message);
    }

    /// Drops the recorded rejection of a key, because the write succeeded or would have other content now.
    pub fn forget_rejection(&mut self, key: &Key) {
        self.rejections.remove(key);
    }

    /// Returns the hub's feature set. Until the MemberAgents are listed, returns an assumed set without features (the
    /// Go form).
    fn hub_feature_set(&self, now: Timestamp) -> FeatureSet {
        let (state, since) = (self.watches.state(Kind::MemberAgent), self.watches.since(Kind::MemberAgent));
        FeatureSet::at(now, self.hub_announced, state, since)
    }

    /// True if the slice with this name has the mark of imported slices.
    fn is_marked_imported(&self, slice: &ObjectName) -> bool {
        self.slices.get(slice).is_some_and(|slice| slice.imported)
    }

    /// Returns the names in a bucket.
    fn bucket(&self, bucket: Bucket, of: &ObjectName) -> impl Iterator<Item = &ObjectName> + use<'_> {
        self.buckets.get(&(bucket, of.clone()))
    }

    /// Returns the MultiClusterServices that request a ServiceImport.
    pub fn requests_of_import(&self, import: &ObjectName) -> impl Iterator<Item = &ObjectName> + use<'_> {
        self.bucket(Bucket::MultiClusterServices, import)
    }

    /// Returns the exported Service of a distributed slice.
    pub fn owner_of_distributed_slice(&self, name: &Text) -> Option<ObjectName> {
        Some(self.distributed_slices.get(&self.in_hub(name.clone()))?.spec.owner.clone())
    }

    /// Returns the distributed slice that is imported into the EndpointSlice with this name.
    pub fn distributed_slice_of(&self, imported: &ObjectName) -> Option<&HubSlice> {
        let is_of = |it: &&HubSlice| self.is_imported_into(it, &imported.namespace);
        self.names_in_hub_of(imported).find_map(|name| self.distributed_slices.get(&name).filter(is_of))
    }

    /// Returns the names in the hub that the distributed slice of an imported slice can have. The routing slice of a
    /// distributed slice comes first, so no other distributed slice can take its name.
    fn names_in_hub_of(&self, imported: &ObjectName) -> impl Iterator<Item = ObjectName> + use<'_> {
        let is_by_mcs_api = imported.namespace != self.settings.fleet_system_namespace;
        let routed = names::routed_slice(&imported.name).filter(|_| is_by_mcs_api).map(Text::from);
        routed.into_iter().chain([imported.name.clone()]).map(|name| self.in_hub(name))
    }

    /// True if a distributed slice is imported into this namespace, if it is imported.
    fn is_imported_into(&self, distributed: &HubSlice, namespace: &Text) -> bool {
        *namespace == self.settings.fleet_system_namespace || distributed.spec.owner.namespace == *namespace
    }

    /// Returns the exporting cluster of a distributed slice.
    pub fn origin_of_distributed_slice(&self, name: &Text) -> Option<&ClusterId> {
        Some(&self.distributed_slices.get(&self.in_hub(name.clone()))?.spec.reference.cluster)
    }

    /// True if this member imports a Service or a slice from `cluster`. The agent removes the metrics about a cluster
    /// for which the result is false.
    pub fn is_origin(&self, cluster: &ClusterId) -> bool {
        let imported = |claim: &InternalServiceImport| claim.status.clusters.contains(cluster);
        self.distributed_slices_from.get(cluster).next().is_some() || self.claims.iter().any(imported)
    }

    /// Returns an object's full name in this member's namespace of the hub.
    pub fn in_hub(&self, name: impl Into<Text>) -> ObjectName {
        ObjectName::new(self.settings.hub_namespace.clone(), name)
    }

    /// Returns an object's full name in the namespace of derived Services and imported slices.
    pub(crate) fn in_system(&self, name: Text) -> ObjectName {
        ObjectName { namespace: self.settings.fleet_system_namespace.clone(), name }
    }
}
