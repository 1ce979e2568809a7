//! InternalServiceImport: a member's claim to import a Service, in the importing member's namespace in the hub.

use super::shared::{ExportedObjectReference, ServiceImportStatus};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Request of a member to import a Service.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "InternalServiceImport",
    plural = "internalserviceimports",
    shortname = "internalsvcimport",
    category = "fleet-networking",
    namespaced,
    status = "ServiceImportStatus",
    derive = "PartialEq",
    doc = "InternalServiceImport asks the hub to import a Service into a member cluster and carries the answer back."
)]
pub struct InternalServiceImportSpec {
    /// Reference to the ServiceImport in the member cluster that this object was made for.
    pub service_import_reference: ExportedObjectReference,
}
