//! EndpointSliceImport: a slice that the hub agent distributes to one importing member, in this member's namespace in
//! the hub.

use super::endpoint_slice_export::EndpointSliceExportSpec;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Content of an EndpointSlice that the hub distributes to a member. It equals the spec of the EndpointSliceExport.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "EndpointSliceImport",
    plural = "endpointsliceimports",
    category = "fleet-networking",
    namespaced,
    derive = "PartialEq",
    doc = "EndpointSliceImport carries one EndpointSlice of an exported Service from the hub to an importing member cluster."
)]
pub struct EndpointSliceImportSpec {
    /// Exported slice, whose fields are in `spec` itself.
    #[serde(flatten)]
    pub slice: EndpointSliceExportSpec,
}
