//! What stands in the members' namespaces of the hub: exports, claims and slices, each with a reference to its source.

use super::{Condition, ConsumerType, ImportStatus, Meta, ServicePort, SliceContent};
use crate::conditions;
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
    /// All conditions; `Conflict` is the hub's verdict.
    pub conditions: Vec<Condition>,
    /// The hub's stamp; absent where no hub of ours has seen it, or where it cannot be read.
    pub offered: Option<PortsOffered>,
}

impl InternalServiceExport {
    /// The hub's verdict is there and speaks of the export as it is now.
    pub fn is_judged(&self) -> bool {
        conditions::find(&self.conditions, conditions::CONFLICT)
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
