//! Types of the nine kinds of the API group `networking.fleet.azure.com`, with one module for each kind, and of the two
//! kinds of the API group `multicluster.x-k8s.io`. The CustomResourceDefinitions are generated from these types. Tests
//! and command line tools use the types too. The agents use the decoders in [`crate::decode`], which need less memory.

pub mod endpoint_slice_export;
pub mod endpoint_slice_import;
pub mod internal_service_export;
pub mod internal_service_import;
pub mod mcs;
pub mod member_agent;
pub mod merged_service_import;
pub mod multi_cluster_service;
pub mod service_export;
pub mod service_import;
pub mod shared;

pub use endpoint_slice_export::{AddressType, EndpointSliceExport, EndpointSliceExportSpec};
pub use endpoint_slice_import::{EndpointSliceImport, EndpointSliceImportSpec};
pub use internal_service_export::{InternalServiceExport, InternalServiceExportSpec, InternalServiceExportStatus};
pub use internal_service_import::{InternalServiceImport, InternalServiceImportSpec};
pub use member_agent::{LatencySummary, MemberAgent, MemberAgentSpec, MemberAgentStatus, Name, OriginLatency};
pub use merged_service_import::{MergedServiceImport, MergedServiceImportSpec};
pub use multi_cluster_service::{
    MultiClusterService, MultiClusterServiceSpec, MultiClusterServiceStatus, MultiClusterServiceType, ServiceImportRef,
};
pub use service_export::{ServiceExport, ServiceExportStatus};
pub use service_import::ServiceImport;
pub use shared::{IpFamily, ServiceImportType};
