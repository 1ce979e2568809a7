//! API groups, versions and names of the kinds that the agents watch and write.

use crate::names::{
    GROUP, MEMBERSHIP_GROUP, MEMBERSHIP_VERSION, SERVICE_EXPORT_VERSION, STANDARD_GROUP, STANDARD_VERSION, VERSION,
};
use fleetnet_core::model::Kind;
use fleetnet_types::Resource;

/// Returns the resource of a kind, in the version that the agents use.
pub const fn resource(kind: Kind) -> Resource {
    let (group, version, kind, plural) = match kind {
        Kind::Service => ("", "v1", "Service", "services"),
        Kind::Namespace | Kind::SystemNamespace => ("", "v1", "Namespace", "namespaces"),
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
        Kind::StandardServiceExport => (STANDARD_GROUP, STANDARD_VERSION, "ServiceExport", "serviceexports"),
        Kind::StandardServiceImport => (STANDARD_GROUP, STANDARD_VERSION, "ServiceImport", "serviceimports"),
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
        Kind::StandardServiceExport => "ServiceExport.multicluster.x-k8s.io",
        Kind::StandardServiceImport => "ServiceImport.multicluster.x-k8s.io",
        other => resource(other).kind,
    }
}
