//! Values of the hub agent's view that a plan can read. After a value changes, the plans that read it are made again.

use crate::model::{HubSlice, Kind};
use crate::reads::view_value;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Uid};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Object of a kind, or its absence.
    Object(Kind, ObjectName),
    /// Names of all objects in a bucket of an index.
    Bucket(Bucket, ObjectName),
    /// Names of the exported slices with this name.
    SliceExportsNamed(Text),
    /// Names of the distributed slices with this name.
    DistributedSlicesNamed(Text),
    /// Exporters of a Service: those that its ServiceImport lists, those of its merged import, and its exports by the
    /// standard API.
    Exporters(ObjectName),
    /// All importers of a Service: those that its ServiceImport records, and those by the standard API.
    Importers(ObjectName),
    /// Use of a Service by one importer, by its member namespace: the entry in the record of its ServiceImport, and the
    /// import by the standard API.
    Importer(ObjectName, MemberNamespace),
    /// Names of the claims of a Service in one member namespace.
    ClaimsIn(ObjectName, MemberNamespace),
    /// Existence of a slice with this name that is distributed to any importer, and not being deleted.
    HasDistributedSlices(Text),
    /// Right of the member with this member namespace to cause further objects in other member namespaces.
    FanOut(MemberNamespace),
    /// Lists of exporters, importers and source ranges of a namespace.
    Lists(Text),
    /// Properties of the member with this member namespace.
    Properties(MemberNamespace),
    /// Merge of the exports of a Service, or its absence.
    Merge(ObjectName),
    /// Announcement and offer of the hub agent.
    Announces,
    /// Last announcement of the member with this member namespace.
    Announced(MemberNamespace),
    /// Numbers of ready endpoints of a Service that members export.
    EndpointCounts(ObjectName),
    /// Silent members.
    SilentMembers,
    /// Silence of this member.
    Silence(ClusterId),
    /// Contact of the watch of MemberAgents with the API server.
    MembersFollowed,
    /// Slice stream of the importer with this member namespace.
    Stream(MemberNamespace),
    /// Last preview of a distributed slice, and if the importer has acknowledged it.
    Lagging(ObjectName),
    /// Name of the export that is the holder of a source slice.
    Holder(Source),
    /// State of all these kinds together: completely listed or not.
    Complete(&'static [Kind]),
    /// State of the watch of a kind.
    Watch(Kind),
    /// Decodability of this object.
    Undecodable(Kind, ObjectName),
    /// Undecodable objects of a kind with this name.
    UndecodableNamed(Kind, Text),
    /// Existence of an undecodable object of a kind in a namespace.
    UndecodableIn(Kind, MemberNamespace),
}

/// Index whose buckets belong to a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    InternalExports,
    Claims,
    SliceExports,
}

view_value!(Value);

/// Result that the hub agent's view stores, computed from other values of the view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Computation {
    /// Rank of the export with this name among the exports of its source slice.
    Rank(Text),
    /// Merge of the exports of a Service.
    Merge(ObjectName),
}

/// Identity of a source slice: its UID, and the Service that it is exported with. Only exports of the same Service
/// compete, so a forged owner reference cannot capture another Service's slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    uid: Uid,
    service: ObjectName,
}

impl Source {
    /// Returns the source slice of an export. `None` if the export has no UID of a source slice; then no other export
    /// competes with this export.
    pub(crate) fn of(export: &HubSlice) -> Option<Self> {
        let (uid, service) = (&export.spec.reference.uid, &export.spec.owner);
        (!uid.is_empty()).then(|| Self { uid: uid.clone(), service: service.clone() })
    }
}
