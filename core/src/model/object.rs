//! Objects of any kind.

use super::{
    EndpointSlice, HubSlice, InternalMemberCluster, InternalServiceExport, InternalServiceImport, Kind, MemberAgent,
    MemberCluster, MergedServiceImport, Meta, MultiClusterService, Namespace, Service, ServiceExport, ServiceImport,
    StandardServiceExport, StandardServiceImport,
};

/// Object of any watched kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    Service(Service),
    EndpointSlice(EndpointSlice),
    ServiceExport(ServiceExport),
    ServiceImport(ServiceImport),
    MultiClusterService(MultiClusterService),
    InternalServiceExport(InternalServiceExport),
    InternalServiceImport(InternalServiceImport),
    EndpointSliceExport(HubSlice),
    EndpointSliceImport(HubSlice),
    Namespace(Namespace),
    SystemNamespace(Meta),
    MemberAgent(MemberAgent),
    MergedServiceImport(MergedServiceImport),
    StandardServiceExport(StandardServiceExport),
    StandardServiceImport(StandardServiceImport),
    InternalMemberCluster(InternalMemberCluster),
    MemberCluster(MemberCluster),
}

impl Object {
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Service(object) => &object.meta,
            Self::EndpointSlice(object) => &object.meta,
            Self::ServiceExport(object) => &object.meta,
            Self::ServiceImport(object) => &object.meta,
            Self::MultiClusterService(object) => &object.meta,
            Self::InternalServiceExport(object) => &object.meta,
            Self::InternalServiceImport(object) => &object.meta,
            Self::EndpointSliceExport(object) | Self::EndpointSliceImport(object) => &object.meta,
            Self::Namespace(object) => &object.meta,
            Self::SystemNamespace(meta) => meta,
            Self::MemberAgent(object) => &object.meta,
            Self::MergedServiceImport(object) => &object.meta,
            Self::StandardServiceExport(object) => &object.meta,
            Self::StandardServiceImport(object) => &object.meta,
            Self::InternalMemberCluster(object) => &object.meta,
            Self::MemberCluster(object) => &object.meta,
        }
    }

    pub fn meta_mut(&mut self) -> &mut Meta {
        match self {
            Self::Service(object) => &mut object.meta,
            Self::EndpointSlice(object) => &mut object.meta,
            Self::ServiceExport(object) => &mut object.meta,
            Self::ServiceImport(object) => &mut object.meta,
            Self::MultiClusterService(object) => &mut object.meta,
            Self::InternalServiceExport(object) => &mut object.meta,
            Self::InternalServiceImport(object) => &mut object.meta,
            Self::EndpointSliceExport(object) | Self::EndpointSliceImport(object) => &mut object.meta,
            Self::Namespace(object) => &mut object.meta,
            Self::SystemNamespace(meta) => meta,
            Self::MemberAgent(object) => &mut object.meta,
            Self::MergedServiceImport(object) => &mut object.meta,
            Self::StandardServiceExport(object) => &mut object.meta,
            Self::StandardServiceImport(object) => &mut object.meta,
            Self::InternalMemberCluster(object) => &mut object.meta,
            Self::MemberCluster(object) => &mut object.meta,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Service(_) => Kind::Service,
            Self::EndpointSlice(_) => Kind::EndpointSlice,
            Self::ServiceExport(_) => Kind::ServiceExport,
            Self::ServiceImport(_) => Kind::ServiceImport,
            Self::MultiClusterService(_) => Kind::MultiClusterService,
            Self::InternalServiceExport(_) => Kind::InternalServiceExport,
            Self::InternalServiceImport(_) => Kind::InternalServiceImport,
            Self::EndpointSliceExport(_) => Kind::EndpointSliceExport,
            Self::EndpointSliceImport(_) => Kind::EndpointSliceImport,
            Self::Namespace(_) => Kind::Namespace,
            Self::SystemNamespace(_) => Kind::SystemNamespace,
            Self::MemberAgent(_) => Kind::MemberAgent,
            Self::MergedServiceImport(_) => Kind::MergedServiceImport,
            Self::StandardServiceExport(_) => Kind::StandardServiceExport,
            Self::StandardServiceImport(_) => Kind::StandardServiceImport,
            Self::InternalMemberCluster(_) => Kind::InternalMemberCluster,
            Self::MemberCluster(_) => Kind::MemberCluster,
        }
    }
}
