//! EndpointSliceImport: a slice that the hub distributes to one importing member, in that member's namespace of the hub.

use super::endpoint_slice_export::EndpointSliceExportSpec;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the hub tells a member about one EndpointSlice that it imports: the spec of the export, unchanged.
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
    /// The exported slice; its fields stand in the spec itself.
    #[serde(flatten)]
    pub slice: EndpointSliceExportSpec,
}
