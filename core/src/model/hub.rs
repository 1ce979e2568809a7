//! What stands in the members' namespaces of the hub: exports, claims and slices, each with a reference to its source, and
//! what member and hub say to each other.

use super::{Condition, ConsumerType, ImportStatus, Meta, ServicePort, SessionAffinity, SliceContent};
use crate::conditions;
use crate::features::Features;
use crate::ids::{ObjectName, Text, Timestamp};

/// Reference of a hub object to its source (`ExportedObjectReference`). `kind` and `apiVersion` are never read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Cluster id that the object claims; the hub trusts the namespace instead.
    pub cluster: Text,
    /// The source object.
    pub source: ObjectName,
    /// Its UID.
    pub uid: Text,
    /// Its version when last exported.
    pub resource_version: Text,
    /// Its generation when last exported.
    pub generation: i64,
    /// When the oldest change that this export carries was first seen, on the source's clock.
    pub exported_since: Option<Timestamp>,
}

/// Since when an export offers its present ports: the hub's stamp, from which the winner of a conflict follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortsOffered {
    /// On the hub's clock.
    pub since: Timestamp,
    /// Fingerprint of the ports that the stamp speaks of ([`crate::names::ports_fingerprint`]).
    pub ports: Text,
}

/// An exported Service, in the exporter's hub namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceExport {
    /// Metadata.
    pub meta: Meta,
    /// The source Service.
    pub reference: Reference,
    /// Its ports, in its order.
    pub ports: Vec<ServicePort>,
    /// It has no address of its own.
    pub headless: bool,
    /// Its session affinity.
    pub session_affinity: SessionAffinity,
    /// All conditions; `Conflict` is the hub's verdict.
    pub conditions: Vec<Condition>,
    /// The hub's stamp; absent where no hub of ours has seen it, or where it cannot be read.
    pub offered: Option<PortsOffered>,
}

impl InternalServiceExport {
    /// The hub's verdict is there and speaks of the export as it is now.
    pub fn is_judged(&self) -> bool {
        conditions::find(&self.conditions, conditions::CONFLICT)
            // fault L6.1: is_some_and(|verdict| verdict.observed_generation >= self.meta.generation ~> is_some(
            .is_some_and(|verdict| verdict.observed_generation >= self.meta.generation)
    }
}

/// A claim: a member's wish to import, in its hub namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalServiceImport {
    /// Metadata.
    pub meta: Meta,
    /// The member's ServiceImport.
    pub reference: Reference,
    /// How it will be consumed.
    pub consumer_type: ConsumerType,
    /// The hub's answer: empty unless the claim is fulfilled.
    pub status: ImportStatus,
}

/// An exported slice in the exporter's hub namespace (EndpointSliceExport), or its copy in an importer's
/// (EndpointSliceImport).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSlice {
    /// Metadata.
    pub meta: Meta,
    /// What it says and of what.
    pub spec: HubSliceSpec,
    /// Of an EndpointSliceImport: the generation whose latency a Go agent observed.
    pub observed_generation: Option<i64>,
    /// True if a `namespacedName` differs from the namespace and the name beside it: somebody edited it. Go agents read it.
    pub misnamed: bool,
}

/// Specification of EndpointSliceExport and EndpointSliceImport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSliceSpec {
    /// The source slice.
    pub reference: Reference,
    /// The exported Service that owns it.
    pub owner: ObjectName,
    /// Its content.
    pub content: SliceContent,
}

/// What an agent says of itself to its peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Its version; empty where it has said nothing.
    pub version: Text,
    /// What it understands beside the Go form, by name, also what we do not know of.
    pub features: Vec<Text>,
}

impl Announcement {
    /// What an agent of this version says.
    pub fn new(version: impl Into<Text>, features: Features) -> Self {
        Self { version: version.into(), features: features.names().map(Text::from).collect() }
    }

    /// What both of us understand of it.
    pub fn understood(&self) -> Features {
        self.features.iter().filter_map(|name| Features::named(name)).collect()
    }
}

/// How much a member shares, as the hub counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounts {
    /// Services that it exports.
    pub exported_services: i64,
    /// Slices that it exports.
    pub exported_slices: i64,
    /// Ready endpoints in these.
    pub exported_endpoints: i64,
    /// Services that it imports: its claims that are granted.
    pub imported_services: i64,
    /// Slices that it is given.
    pub imported_slices: i64,
}

/// `spec` of a MemberAgent, as one renewal writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// What the member says of itself.
    pub announcement: Announcement,
    /// UID of the member's namespace `kube-system`; `None` where it may not be read, and then the field is not written.
    pub cluster_uid: Option<Text>,
    /// Identity of the process.
    pub leader: Text,
    /// When it says so.
    pub renewed: Timestamp,
    /// When it stopped as planned.
    pub stopped: Option<Timestamp>,
}

/// The word between a member and the hub: one for each member, in its hub namespace, under its cluster id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAgent {
    /// Metadata.
    pub meta: Meta,
    /// What the member says.
    pub member: Announcement,
    /// UID of the namespace `kube-system` of the cluster that owns the id; absent where an older agent or definition is used.
    pub cluster_uid: Option<Text>,
    /// Identity of the process that wrote the last renewal, as in its Leases; absent where that is.
    pub leader: Option<Text>,
    /// When the member last said that it is there, on its own clock.
    pub renewed: Option<Timestamp>,
    /// When the member stopped as planned, on its own clock; absent while it runs.
    pub stopped: Option<Timestamp>,
    /// What the hub says.
    pub hub: Announcement,
    /// What the hub counts; absent where it has said nothing.
    pub counts: Option<MemberCounts>,
}
