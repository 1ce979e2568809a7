//! Types of the group's eight kinds, one module each. The CustomResourceDefinitions are generated from them. Tests and command
//! line tools use them too; the agents use the leaner decoders in [`crate::decode`].

pub mod endpoint_slice_export;
pub mod endpoint_slice_import;
pub mod internal_service_export;
pub mod internal_service_import;
pub mod member_agent;
pub mod multi_cluster_service;
pub mod service_export;
pub mod service_import;
pub mod shared;

pub use endpoint_slice_export::{EndpointSliceExport, EndpointSliceExportSpec};
pub use endpoint_slice_import::{EndpointSliceImport, EndpointSliceImportSpec};
pub use internal_service_export::{InternalServiceExport, InternalServiceExportSpec, InternalServiceExportStatus};
pub use internal_service_import::{InternalServiceImport, InternalServiceImportSpec};
pub use member_agent::{MemberAgent, MemberAgentSpec, MemberAgentStatus};
pub use multi_cluster_service::{
    MultiClusterService, MultiClusterServiceSpec, MultiClusterServiceStatus, MultiClusterServiceType, ServiceImportRef,
};
pub use service_export::{ServiceExport, ServiceExportStatus};
pub use service_import::ServiceImport;
