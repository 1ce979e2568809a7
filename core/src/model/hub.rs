//! Objects in the member namespaces of the hub: exports, claims and slices with references to their sources in members, and
//! MemberAgents.

use super::{Condition, ConsumerType, ImportStatus, ImportType, Meta, ServicePort, SessionAffinity, SliceContent};
use crate::conditions;
use crate::features::Features;
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp, Uid};

/// Reference from an object in the hub to its source in a member (`ExportedObjectReference`). The fields `kind` and
/// `apiVersion` are omitted, because the agents never read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Cluster id in the reference. A member can forge this id, so the hub agent takes the id from the object's namespace.
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
    /// All conditions; `Conflict` is the outcome of conflict resolution.
    pub conditions: Vec<Condition>,
    /// Stamp of the hub agent: the start time of the port set. `None` if the stamp is missing or malformed.
    pub stamp: Option<PortSetStamp>,
}

impl InternalServiceExport {
    /// Returns the type of an import of the exported Service.
    pub fn import_type(&self) -> ImportType {
        if self.headless { ImportType::Headless } else { ImportType::ClusterSetIp }
    }

    /// True if the outcome of conflict resolution is for the present generation of the export.
    pub fn has_outcome(&self) -> bool {
        conditions::find(&self.conditions, conditions::CONFLICT)
            // fault L6.1: is_some_and(|condition| condition.observed_generation >= self.meta.generation ~> is_some(
            .is_some_and(|condition| condition.observed_generation >= self.meta.generation)
    }
}

/// Claim: a member's request to import a Service, in the importer's member namespace of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceImport {
    pub meta: Meta,
    /// Reference to the member's ServiceImport.
    pub reference: Reference,
    pub consumer_type: ConsumerType,
    /// Outcome of conflict resolution. The hub agent writes the outcome only if the claim is granted; otherwise the status is
    /// empty.
    pub status: ImportStatus,
}

/// Slice in the hub: an exported slice (EndpointSliceExport) in the exporter's member namespace, or a distributed slice
/// (EndpointSliceImport) in the importer's member namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSlice {
    pub meta: Meta,
    pub spec: HubSliceSpec,
    /// Generation of the source slice that a Go agent recorded, because it has observed the latency of this generation. Always
    /// `None` on an EndpointSliceExport.
    pub observed_generation: Option<i64>,
    /// True if `namespacedName` in the reference contradicts the fields `namespace` and `name`, because another writer edited
    /// it. The agents repair `namespacedName`, because Go agents read it.
    pub misnamed: bool,
}

/// Specification of EndpointSliceExport and EndpointSliceImport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSliceSpec {
    /// Reference to the source slice.
    pub reference: Reference,
    /// Exported Service that the slice belongs to.
    pub owner: ObjectName,
    pub content: SliceContent,
}

/// Announcement of an agent to its peer (hub agent or member agent).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Version of the announcing agent; empty if the agent announces nothing.
    pub version: Text,
    /// Names of the features that the announcing agent supports in addition to the Go form, including names that this version
    /// does not know.
    pub features: Vec<Text>,
}

impl Announcement {
    pub fn new(version: impl Into<Text>, features: Features) -> Self {
        Self { version: version.into(), features: features.names().map(Text::from).collect() }
    }

    /// Returns the announced features that this version knows.
    pub fn known_features(&self) -> Features {
        self.features.iter().filter_map(|name| Features::named(name)).collect()
    }
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

/// `spec` of a MemberAgent, as the member agent writes it at each renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    pub announcement: Announcement,
    /// UID of the member's namespace `kube-system`. `None` if the agent has no right to read this namespace; then the renewal
    /// omits the field.
    pub cluster_uid: Option<Uid>,
    /// Identity of the process that renews, as in its Leases.
    pub leader: Text,
    pub renewed: Timestamp,
    /// Time of a planned stop; `None` while the process runs.
    pub stopped: Option<Timestamp>,
}

/// MemberAgent: heartbeat and announcement of a member. Each member has one MemberAgent, in its member namespace and with its
/// cluster id as the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAgent {
    pub meta: Meta,
    /// Announcement of the member agent.
    pub member: Announcement,
    /// UID of the namespace `kube-system` of the cluster that owns the id. `None` if the member agent or the hub's CRD is
    /// older than this field.
    pub cluster_uid: Option<Uid>,
    /// Identity of the process that wrote the last renewal, as in its Leases. `None` if the member agent or the hub's CRD is
    /// older than this field.
    pub leader: Option<Text>,
    /// Time of the last renewal, on the member's wall clock.
    pub renewed: Option<Timestamp>,
    /// Time of a planned stop, on the member's wall clock; `None` while the member agent runs.
    pub stopped: Option<Timestamp>,
    /// Announcement of the hub agent.
    pub hub: Announcement,
    /// Numbers of the member's objects, counted by the hub agent; `None` before the hub agent's first write.
    pub counts: Option<MemberCounts>,
}
