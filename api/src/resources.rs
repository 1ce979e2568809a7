//! API groups, versions, names and finalizers of the kinds that the agents watch and write.

use crate::names::{
    GROUP, MCS_GROUP, MCS_VERSION, MEMBERSHIP_GROUP, MEMBERSHIP_VERSION, SERVICE_EXPORT_VERSION, VERSION, finalizers,
};
use fleetnet_core::model::Kind;
use fleetnet_types::Resource;

/// Returns the resource of a kind, in the version that the agents use.
pub const fn resource(kind: Kind) -> Resource {
    let (group, version, kind, plural) = match kind {
        Kind::Service => ("", "v1", "Service", "services"),
        Kind::Namespace | Kind::SystemNamespace => ("", "v1", "Namespace", "namespaces"),
        Kind::Node => ("", "v1", "Node", "nodes"),
        Kind::ClusterProperty => ("about.k8s.io", "v1alpha1", "ClusterProperty", "clusterproperties"),
        Kind::EndpointSlice => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
        Kind::ServiceExport => (GROUP, SERVICE_EXPORT_VERSION, "ServiceExport", "serviceexports"),
        Kind::ServiceImport => (GROUP, VERSION, "ServiceImport", "serviceimports"),
        Kind::MultiClusterService => (GROUP, VERSION, "MultiClusterService", "multiclusterservices"),
        Kind::InternalServiceExport => (GROUP, VERSION, "InternalServiceExport", "internalserviceexports"),
        Kind::InternalServiceImport => (GROUP, VERSION, "InternalServiceImport", "internalserviceimports"),
        Kind::EndpointSliceExport => (GROUP, VERSION, "EndpointSliceExport", "endpointsliceexports"),
        Kind::EndpointSliceImport => (GROUP, VERSION, "EndpointSliceImport", "endpointsliceimports"),
        Kind::MemberAgent => (GROUP, VERSION, "MemberAgent", "memberagents"),
        Kind::MergedServiceImport => (GROUP, VERSION, "MergedServiceImport", "mergedserviceimports"),
        Kind::McsServiceExport => (MCS_GROUP, MCS_VERSION, "ServiceExport", "serviceexports"),
        Kind::McsServiceImport => (MCS_GROUP, MCS_VERSION, "ServiceImport", "serviceimports"),
        Kind::InternalMemberCluster => {
            (MEMBERSHIP_GROUP, MEMBERSHIP_VERSION, "InternalMemberCluster", "internalmemberclusters")
        }
        Kind::MemberCluster => (MEMBERSHIP_GROUP, MEMBERSHIP_VERSION, "MemberCluster", "memberclusters"),
    };
    Resource { group, version, kind, plural }
}

/// Returns the name of the watch of a kind in metrics. Each kind has another one, although some have the same name in
/// Kubernetes.
pub const fn watch_label(kind: Kind) -> &'static str {
    match kind {
        Kind::SystemNamespace => "Namespace/kube-system",
        Kind::McsServiceExport => "ServiceExport.multicluster.x-k8s.io",
        Kind::McsServiceImport => "ServiceImport.multicluster.x-k8s.io",
        other => resource(other).kind,
    }
}

/// Returns fleet-networking's finalizer for a kind. [`fleetnet_core::model::Finalizers::ours`] is true if an object has
/// this finalizer.
pub(crate) const fn finalizer(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::ServiceExport => Some(finalizers::SERVICE_EXPORT),
        Kind::ServiceImport => Some(finalizers::SERVICE_IMPORT),
        Kind::MultiClusterService => Some(finalizers::MULTI_CLUSTER_SERVICE),
        Kind::InternalServiceExport => Some(finalizers::INTERNAL_SERVICE_EXPORT),
        Kind::InternalServiceImport => Some(finalizers::INTERNAL_SERVICE_IMPORT),
        Kind::EndpointSliceExport => Some(finalizers::ENDPOINT_SLICE_EXPORT),
        Kind::EndpointSliceImport => Some(finalizers::ENDPOINT_SLICE_IMPORT),
        Kind::MergedServiceImport => Some(finalizers::MERGED_SERVICE_IMPORT),
        Kind::Service
        | Kind::EndpointSlice
        | Kind::Namespace
        | Kind::SystemNamespace
        | Kind::MemberAgent
        | Kind::McsServiceExport
        | Kind::McsServiceImport
        | Kind::InternalMemberCluster
        | Kind::MemberCluster
        | Kind::ClusterProperty
        | Kind::Node => None,
    }
}
