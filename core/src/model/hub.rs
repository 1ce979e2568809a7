//! Objects in the member namespaces of the hub: exports, claims and slices with references to their sources in members,
//! and MemberAgents.

use super::{
    ClusterSelection, ClusterSelector, Condition, ConsumerType, ExportedBy, ImportStatus, ImportType, McsExport, Meta,
    Place, Properties, ServicePort, SessionAffinity, Silence, SilentMember, SliceContent,
};
use crate::variants::variants;
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp, Traced, Uid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reference from an object in the hub to its source in a member (`ExportedObjectReference`). The fields `kind` and
/// `apiVersion` are omitted, because the agents never read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Cluster id in the reference. A member can forge this id, so the hub agent takes the id from the object's
    /// namespace.
    pub cluster: ClusterId,
    pub source: ObjectName,
    pub uid: Uid,
    /// resourceVersion of the source at its last export.
    pub resource_version: Text,
    /// Generation of the source at its last export.
    pub generation: i64,
    /// Time at which the exporting member first saw the oldest change in this export, on the exporter's clock.
    pub exported_since: Option<Timestamp>,
}

/// Stamp that the hub agent writes to an export: the start time of its port set. The oldest port set wins a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSetStamp {
    /// Start time of the port set, on the hub agent's clock.
    pub since: Timestamp,
    /// Fingerprint of the ports to which the start time applies ([`crate::names::ports_fingerprint`]).
    pub ports: Text,
}

/// Copy of a member's exported Service in the hub, in the exporter's member namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceExport {
    pub meta: Meta,
    /// Reference to the source Service in the member.
    pub reference: Reference,
    /// Ports in the order of the Service.
    pub ports: Vec<ServicePort>,
    /// True if the source Service is headless.
    pub headless: bool,
    pub session_affinity: SessionAffinity,
    /// Part for the standard API; `None` if the standard API does not export the Service.
    pub mcs: Option<Arc<McsExport>>,
    /// Weight of the ServiceExport. `None` means 1.
    pub weight: Option<i64>,
    /// All conditions; `Conflict` is the outcome of conflict resolution.
    pub conditions: Vec<Condition>,
    /// Stamp of the hub agent: the start time of the port set. `None` if the stamp is missing or malformed.
    pub stamp: Option<PortSetStamp>,
    /// Places of the oldest exports of the Service by the standard API, up to this one. Only the hub agent can write
    /// them. Empty before the first merge.
    pub precedence: Vec<Place>,
}

impl InternalServiceExport {
    /// True if the fleet's ServiceExport requests the export, alone or beside the standard ServiceExport.
    pub(crate) fn is_of_fleet_api(&self) -> bool {
        self.mcs.as_ref().is_none_or(|mcs| mcs.exported_by == ExportedBy::Both)
    }

    /// Returns the type of an import of the exported Service.
    pub fn import_type(&self) -> ImportType {
        if self.headless { ImportType::Headless } else { ImportType::ClusterSetIp }
    }
}

/// Claim: a member's request to import a Service, in the importer's member namespace of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceImport {
    pub meta: Meta,
    /// Reference to the member's ServiceImport.
    pub reference: Reference,
    pub consumer_type: ConsumerType,
    /// Outcome of conflict resolution. The hub agent writes the outcome only if the claim is granted; otherwise the
    /// status is empty.
    pub status: ImportStatus,
    /// Selection for this importer, which the hub agent writes. Empty without cluster selectors and weights.
    pub selection: ClusterSelection,
    /// Cluster selectors of the MultiClusterService, in an annotation.
    pub selectors: Vec<ClusterSelector>,
}

impl InternalServiceImport {
    /// Returns the state of the claim for metrics. `None` while the claim is being deleted.
    pub fn state(&self) -> Option<ClaimState> {
        match (self.meta.deleting, self.status.clusters.is_empty()) {
            (true, _) => None,
            (false, false) => Some(ClaimState::Granted),
            (false, true) => Some(ClaimState::Pending),
        }
    }
}

/// State of an export in the hub, according to its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportState {
    Accepted,
    Conflicted,
    /// The cluster has no right to export the Service.
    Denied,
    /// The hub agent has not resolved conflicts for the present generation yet.
    Pending,
}

variants!(ExportState, as_str: Accepted = "accepted", Conflicted = "conflicted", Denied = "denied", Pending = "pending");

/// State of a claim in the hub, according to its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// The member imports the Service.
    Granted,
    /// The claim waits for an export, for the exclusive claim of another member, or for a right to import.
    Pending,
}

variants!(ClaimState, as_str: Granted = "granted", Pending = "pending");

/// Slice in the hub: an exported slice (EndpointSliceExport) in the exporter's member namespace, or a distributed slice
/// (EndpointSliceImport) in the importer's member namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSlice {
    pub meta: Meta,
    pub spec: HubSliceSpec,
    /// Generation of the source slice that a Go agent recorded, because it has observed the latency of this generation.
    /// Always `None` on an EndpointSliceExport.
    pub observed_generation: Option<i64>,
    /// True if `namespacedName` in the reference contradicts the fields `namespace` and `name`, because another writer
    /// edited it. The agents repair `namespacedName`, because Go agents read it.
    pub misnamed: bool,
    /// Time at which somebody deleted the object, by the clock of the server; `None` unless the object is being
    /// deleted.
    pub deleted: Option<Timestamp>,
    /// Annotations for traces. The agent takes them out before the view gets the object.
    pub traced: Option<Box<Traced>>,
}

/// Specification of EndpointSliceExport and EndpointSliceImport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSliceSpec {
    /// Reference to the source slice.
    pub reference: Reference,
    /// Exported Service that the slice belongs to.
    pub owner: ObjectName,
    /// Content, which an exported slice and the slices distributed from it share.
    pub content: Arc<SliceContent>,
}

impl HubSliceSpec {
    /// True if both are states of the same source slice, for the same Service. A preview changes nothing else.
    #[must_use]
    pub(crate) fn is_of_same_slice(&self, other: &Self) -> bool {
        let (one, two) = (&self.reference, &other.reference);
        self.owner == other.owner
            && self.content.address_type == other.content.address_type
            && (&one.cluster, &one.source, &one.uid) == (&two.cluster, &two.source, &two.uid)
    }
}

/// Announcement of an agent to its peer (hub agent or member agent).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Version of the announcing agent; empty if the agent announces nothing.
    pub version: Text,
    /// Names of the features that the announcing agent supports in addition to the Go form, including names that this
    /// version does not know.
    pub features: Vec<Text>,
}

/// Offer of the hub agent's slice stream to a member agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceStreamOffer {
    /// Address, as `host:port`.
    pub address: Text,
    /// Certificate authorities of the hub agent's certificate, in PEM.
    pub ca_bundle: Text,
}

/// Report of a member agent on its slice stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceStreamReport {
    pub connected: bool,
    /// Reason in CamelCase.
    pub reason: Text,
    pub message: Text,
}

/// Numbers of objects of one member, counted by the hub agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounts {
    pub exported_services: i64,
    pub exported_slices: i64,
    /// Ready endpoints in the exported slices.
    pub exported_endpoints: i64,
    /// Number of Services that the member imports: its granted claims.
    pub imported_services: i64,
    /// Number of slices distributed to the member.
    pub imported_slices: i64,
}

/// `status` of a MemberAgent, as the hub agent writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberStatus {
    /// Announcement of the hub agent. Empty before the hub agent's first write.
    pub announcement: Announcement,
    /// Offer of the hub agent's slice stream; `None` without one, or if the hub's CRD is older than this field.
    pub slice_stream: Option<SliceStreamOffer>,
    /// Numbers of the member's objects, counted by the hub agent; `None` before the hub agent's first write.
    pub counts: Option<MemberCounts>,
    /// Last silence of this member; `None` if there was none for a while, or if the hub's CRD is older than this field.
    pub silence: Option<Silence>,
    /// Silent members, sorted by cluster. This member treats their endpoints in a special way.
    pub silent_members: Vec<SilentMember>,
}

/// `spec` of a MemberAgent, as the member agent writes it at each renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    pub announcement: Announcement,
    /// UID of the member's namespace `kube-system`. `None` if the agent has no right to read this namespace; then the
    /// renewal omits the field.
    pub cluster_uid: Option<Uid>,
    /// Identity of the process that renews, as in its Leases.
    pub leader: Text,
    pub renewed: Timestamp,
    /// Time of a planned stop; `None` while the process runs.
    pub stopped: Option<Timestamp>,
    /// Change of the latency summary; `None` to leave the summary as it is.
    pub latency: Option<LatencyChange>,
    /// State of the slice stream; `None` if this member uses none.
    pub slice_stream: Option<SliceStreamReport>,
    /// Changed properties, and `None` for each one to remove. `None` to leave all as they are, and an empty map to
    /// remove the field.
    pub properties: Option<BTreeMap<Text, Option<Text>>>,
}

/// Change of the latency summary in a MemberAgent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LatencyChange {
    Report(LatencyReport),
    /// There was no sample for a while.
    Remove,
}

/// Summary of the latency samples of one importing member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyReport {
    pub updated: Timestamp,
    /// Exporting members with samples, sorted by cluster.
    pub origins: Vec<OriginLatency>,
}

/// Latency samples of the imports from one exporting member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginLatency {
    pub cluster: ClusterId,
    /// Number of samples in each bucket of the histogram, without trailing zeros. The last bucket has no upper bound.
    pub buckets: Vec<u32>,
    /// Number of samples whose two clocks differ so much that the sample is wrong. No bucket counts them.
    pub clamped: u32,
    /// Number of first imports. No bucket counts them.
    pub first_imports: u32,
    /// Sum of the samples in the buckets.
    pub sum_milliseconds: u64,
}

impl OriginLatency {
    /// Returns the number of samples in the buckets.
    pub fn count(&self) -> u32 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the number of all samples.
    pub(crate) fn samples(&self) -> u32 {
        self.count().saturating_add(self.clamped).saturating_add(self.first_imports)
    }
}

/// MemberAgent: heartbeat and announcement of a member. Each member has one MemberAgent, in its member namespace and
/// with its cluster id as the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAgent {
    pub meta: Meta,
    /// Announcement of the member agent.
    pub member: Announcement,
    /// UID of the namespace `kube-system` of the cluster that owns the id. `None` if the member agent or the hub's CRD
    /// is older than this field.
    pub cluster_uid: Option<Uid>,
    /// Identity of the process that wrote the last renewal, as in its Leases. `None` if the member agent or the hub's
    /// CRD is older than this field.
    pub leader: Option<Text>,
    /// Time of the last renewal, on the member's wall clock.
    pub renewed: Option<Timestamp>,
    /// Time of a planned stop, on the member's wall clock; `None` while the member agent runs.
    pub stopped: Option<Timestamp>,
    /// Properties that the member announces. Empty if it announces none, or if the hub's CRD is older than this field.
    pub properties: Properties,
    /// Status, which the hub agent writes.
    pub status: MemberStatus,
}

#[cfg(test)]
mod tests {
    use super::{ClaimState, ExportState, ExportedBy, McsExport};
    use crate::support::build::{
        BuildInternalExport, claim, condition, conflict, internal_export, mcs_part, no_conflict, pending, resolved,
        service, service_import,
    };

    /// Rule G7: An operator asks how many exports and imports there are
    /// Then: The hub agent shows the number of exports in `fleetnet_exports{state}`: `accepted`, `conflicted`, `denied`
    /// (the cluster has no right to export) or `pending`. `fleetnet_imports{state}` shows the number of claims:
    /// `granted` or `pending`. Objects that are being deleted do not count
    #[test]
    fn the_state_of_an_export_is_the_outcome_for_its_present_generation() {
        let denial = condition("Valid", "False", "ExporterNotAllowed", "no", 1);
        let invalid = condition("Valid", "False", "WriteRefused", "no", 1);
        let work = "work/app";
        let table = [
            (vec![], 1, Some(ExportState::Pending)),
            (vec![pending(work)], 1, Some(ExportState::Pending)),
            (vec![no_conflict(work)], 1, Some(ExportState::Accepted)),
            (vec![no_conflict(work)], 2, Some(ExportState::Pending)),
            (vec![conflict(work)], 1, Some(ExportState::Conflicted)),
            (vec![conflict(work)], 2, Some(ExportState::Pending)),
            (vec![denial.clone()], 1, Some(ExportState::Denied)),
            (vec![no_conflict(work), denial], 2, Some(ExportState::Denied)),
            (vec![no_conflict(work), invalid], 1, Some(ExportState::Accepted)),
        ];
        for (conditions, generation, expected) in table {
            let mut export = internal_export("a", &service(work));
            export.meta.generation = generation;
            export.conditions = conditions;
            assert_eq!(export.state(), expected, "{generation} {:?}", export.conditions);
            export.meta.deleting = true;
            assert_eq!(export.state(), None, "being deleted: {:?}", export.conditions);
        }
        // If only the standard API requests the export, the outcome of the merge counts.
        let merged = |status| condition("multicluster.x-k8s.io/Conflict", status, "Any", "", 1);
        let table = [
            (vec![no_conflict(work)], 1, ExportState::Pending),
            (vec![merged("Unknown")], 1, ExportState::Pending),
            (vec![merged("False")], 1, ExportState::Accepted),
            (vec![merged("True"), no_conflict(work)], 1, ExportState::Conflicted),
            (vec![merged("False")], 2, ExportState::Pending),
        ];
        for (conditions, generation, expected) in table {
            let only = McsExport { exported_by: ExportedBy::McsApi, ..mcs_part() };
            let mut export = internal_export("a", &service(work)).mcs(only);
            export.meta.generation = generation;
            export.conditions = conditions;
            assert_eq!(export.state(), Some(expected), "{generation} {:?}", export.conditions);
        }
    }

    /// Also rule G7.
    #[test]
    fn the_state_of_a_claim_is_its_grant() {
        let mut claim = claim("b", &service_import("work/app"));
        assert_eq!(claim.state(), Some(ClaimState::Pending));
        claim.status = resolved(&["a"]);
        assert_eq!(claim.state(), Some(ClaimState::Granted));
        claim.meta.deleting = true;
        assert_eq!(claim.state(), None);
    }
}
