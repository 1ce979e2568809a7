//! Values of the member agent's view that a plan can read. After a value changes, the plans that read it are made
//! again.

use super::selections::Selected;
use super::serving::Served;
use crate::model::Kind;
use crate::reads::view_value;
use fleetnet_types::{ClusterId, ObjectName, Text, Uid};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Object of a kind, or its absence, and if it is decodable.
    Object(Kind, ObjectName),
    /// All objects of a kind, and if one is undecodable.
    All(Kind),
    /// Names of all objects in a bucket of an index.
    Bucket(Bucket, ObjectName),
    /// MultiClusterServices in this namespace, and if they request a load balancer.
    Requests(Text),
    /// Names of the ServiceImports that the MultiClusterService with this UID controls.
    ImportsOf(Uid),
    /// Existence of any undecodable object.
    HasUndecodable,
    /// Last announcement of the hub agent.
    HubAnnounced,
    /// Contact of the watch of distributed slices with the hub, and if the slice stream is open.
    FollowsHub,
    /// Exporting members that serve a derived Service.
    Serving(Served),
    /// Clusters that are chosen for the ports of an imported Service.
    Selection(Selected),
    /// Right of this namespace to have further exports of a kind in the hub.
    MayExportMore(Kind, Text),
    /// Treatment of the endpoints of this exporting member.
    Treatment(ClusterId),
    /// Right of this process to write to the hub.
    ActsInHub,
    /// State `Leave` of this member.
    Leave,
    Fact(Fact),
    /// State of all these kinds together: completely listed or not.
    Complete(&'static [Kind]),
    /// State of the watch of a kind.
    Watch(Kind),
}

/// Index whose buckets belong to an object with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// Slices of a Service in this cluster.
    Slices,
    /// InternalServiceExports of a Service in the hub.
    InternalExports,
    /// EndpointSliceExports of a source slice in the hub.
    SliceExports,
    /// MultiClusterServices that request a ServiceImport.
    MultiClusterServices,
    /// Services that are derived for a MultiClusterService.
    DerivedServices,
    /// Claims of a ServiceImport in the hub.
    Claims,
    /// Distributed slices of a Service.
    DistributedSlices,
    /// Distributed slices of a Service with an IPv6 address to import, except those that are being deleted.
    Ipv6Slices,
    /// Distributed slices of a Service whose names other EndpointSlices of this cluster perhaps have.
    Contested,
}

/// Fact about an object. The view stores since when it is true, because grace periods and latencies begin at this time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// The slices of this Service are exportable.
    Exportable(ObjectName),
    /// No import by the standard API needs the derived Service of this Service any more.
    Unneeded(ObjectName),
    /// This member requests the slices of this Service: its finalizer is on the MergedServiceImport.
    Requested(ObjectName),
    /// This ServiceImport has no exporter.
    Unresolved(ObjectName),
    /// This ServiceImport has a granted claim.
    Fulfilled(ObjectName),
    /// The hub no longer distributes the slice that was imported into the EndpointSlice with this name.
    Orphaned(ObjectName),
    /// No claim lists the exporting cluster of this slice, which was imported for a MultiClusterService.
    Unlisted(ObjectName),
    /// The hub distributes an older state of the source than the imported slice with this name has.
    Outdated(ObjectName),
}

/// Result that the view stores, and that is computed from other values of the view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Computation {
    Fact(Fact),
    Selection(Selected),
}

impl From<Fact> for Computation {
    fn from(fact: Fact) -> Self {
        Self::Fact(fact)
    }
}

view_value!(Value);
