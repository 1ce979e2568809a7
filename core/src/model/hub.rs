//! Objects in the member namespaces of the hub: exports, claims and slices with references to their sources, and MemberAgents.

use super::{Condition, ConsumerType, ImportStatus, Meta, ServicePort, SessionAffinity, SliceContent};
use crate::conditions;
use crate::features::Features;
use fleetnet_types::{ObjectName, Text, Timestamp, Uid};

/// Reference of a hub object to its source (`ExportedObjectReference`). `kind` and `apiVersion` are never read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Cluster id in the reference; the hub trusts the namespace instead.
    pub cluster: Text,
    pub source: ObjectName,
    pub uid: Uid,
    /// resourceVersion of the source at its last export.
    pub resource_version: Text,
    /// Generation of the source at its last export.
    pub generation: i64,
    /// First sight of the oldest change in this export, on the clock of the exporting member.
    pub exported_since: Option<Timestamp>,
}

/// Age of an export's port set: the hub's stamp, which decides the winner of a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortsOffered {
    /// Time on the hub's clock.
    pub since: Timestamp,
    /// Fingerprint of the stamped ports ([`crate::names::ports_fingerprint`]).
    pub ports: Text,
}

/// An exported Service, in the exporter's member namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceExport {
    pub meta: Meta,
    /// Reference to the source Service.
    pub reference: Reference,
    /// Ports in the order of the Service.
    pub ports: Vec<ServicePort>,
    /// True for a headless Service.
    pub headless: bool,
    pub session_affinity: SessionAffinity,
    /// All conditions; `Conflict` is the hub's outcome.
    pub conditions: Vec<Condition>,
    /// The hub's stamp; `None` if it is missing or malformed.
    pub offered: Option<PortsOffered>,
}

impl InternalServiceExport {
    /// True if the hub's outcome is for the present generation of the export.
    pub fn is_judged(&self) -> bool {
        conditions::find(&self.conditions, conditions::CONFLICT)
            // fault L6.1: is_some_and(|verdict| verdict.observed_generation >= self.meta.generation ~> is_some(
            .is_some_and(|verdict| verdict.observed_generation >= self.meta.generation)
    }
}

/// A claim: a member's request to import, in its member namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceImport {
    pub meta: Meta,
    /// Reference to the member's ServiceImport.
    pub reference: Reference,
    pub consumer_type: ConsumerType,
    /// Outcome in the hub; empty unless the claim is granted.
    pub status: ImportStatus,
}

/// An exported slice in the exporter's member namespace (EndpointSliceExport), or a distributed slice in an importer's
/// (EndpointSliceImport).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSlice {
    pub meta: Meta,
    pub spec: HubSliceSpec,
    /// Generation whose latency a Go agent observed; on an EndpointSliceImport only.
    pub observed_generation: Option<i64>,
    /// True if another writer edited a `namespacedName`, so that it differs from the namespace and name next to it. Go agents
    /// read it.
    pub misnamed: bool,
}

/// Specification of EndpointSliceExport and EndpointSliceImport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSliceSpec {
    /// Reference to the source slice.
    pub reference: Reference,
    /// Exported Service that owns the slice.
    pub owner: ObjectName,
    pub content: SliceContent,
}

/// Announcement of an agent to its peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Version of the agent; empty without an announcement.
    pub version: Text,
    /// Names of the features that it supports in addition to the Go form, including unknown ones.
    pub features: Vec<Text>,
}

impl Announcement {
    /// Returns the announcement of an agent with this version.
    pub fn new(version: impl Into<Text>, features: Features) -> Self {
        Self { version: version.into(), features: features.names().map(Text::from).collect() }
    }

    /// Returns the announced features that this agent knows.
    pub fn understood(&self) -> Features {
        self.features.iter().filter_map(|name| Features::named(name)).collect()
    }
}

/// Numbers of objects of a member, counted by the hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounts {
    pub exported_services: i64,
    pub exported_slices: i64,
    /// Ready endpoints in the exported slices.
    pub exported_endpoints: i64,
    /// Granted claims.
    pub imported_services: i64,
    /// Distributed slices.
    pub imported_slices: i64,
}

/// `spec` of a MemberAgent, as one renewal writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    pub announcement: Announcement,
    /// UID of the member's namespace `kube-system`; `None` if the agent may not read it, and then the field is not written.
    pub cluster_uid: Option<Uid>,
    /// Identity of the process.
    pub leader: Text,
    pub renewed: Timestamp,
    /// Time of a planned stop.
    pub stopped: Option<Timestamp>,
}

/// Heartbeat and announcement of a member. There is one for each member, in its member namespace, named by its cluster id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAgent {
    pub meta: Meta,
    /// Announcement of the member.
    pub member: Announcement,
    /// UID of the namespace `kube-system` of the cluster that owns the id; `None` with an older agent or definition.
    pub cluster_uid: Option<Uid>,
    /// Identity of the process that wrote the last renewal, as in its Leases; `None` with an older agent or definition.
    pub leader: Option<Text>,
    /// Time of the last renewal, on the member's clock.
    pub renewed: Option<Timestamp>,
    /// Time of a planned stop, on the member's clock; `None` while it runs.
    pub stopped: Option<Timestamp>,
    /// Announcement of the hub.
    pub hub: Announcement,
    /// Numbers counted by the hub; `None` if it has not written any.
    pub counts: Option<MemberCounts>,
}
