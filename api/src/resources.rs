//! Addresses in the API server of the kinds that the agents watch and write.

use crate::names::{GROUP, SERVICE_EXPORT_VERSION, VERSION};
use fleetnet_core::model::Kind;

/// Kind as the API server addresses it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Resource {
    /// API group; empty for core/v1.
    pub group: &'static str,
    /// Version, such as `v1`.
    pub version: &'static str,
    /// Kind, such as `EndpointSlice`.
    pub kind: &'static str,
    /// Plural in lower case, such as `endpointslices`.
    pub plural: &'static str,
}

impl Resource {
    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Returns the resource of a kind, in the version that the agents use.
pub const fn resource(kind: Kind) -> Resource {
    let (group, version, kind, plural) = match kind {
        Kind::Service => ("", "v1", "Service", "services"),
        Kind::Namespace => ("", "v1", "Namespace", "namespaces"),
        Kind::EndpointSlice => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
        Kind::ServiceExport => (GROUP, SERVICE_EXPORT_VERSION, "ServiceExport", "serviceexports"),
        Kind::ServiceImport => (GROUP, VERSION, "ServiceImport", "serviceimports"),
        Kind::MultiClusterService => (GROUP, VERSION, "MultiClusterService", "multiclusterservices"),
        Kind::InternalServiceExport => (GROUP, VERSION, "InternalServiceExport", "internalserviceexports"),
        Kind::InternalServiceImport => (GROUP, VERSION, "InternalServiceImport", "internalserviceimports"),
        Kind::EndpointSliceExport => (GROUP, VERSION, "EndpointSliceExport", "endpointsliceexports"),
        Kind::EndpointSliceImport => (GROUP, VERSION, "EndpointSliceImport", "endpointsliceimports"),
        Kind::MemberAgent => (GROUP, VERSION, "MemberAgent", "memberagents"),
    };
    Resource { group, version, kind, plural }
}
