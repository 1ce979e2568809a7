//! ServiceImport: in the hub, the merged Service of all accepted exports; in a member, the copy of the hub's
//! ServiceImport.
#![expect(unreachable_pub, reason = "the derived schema repeats the struct inside a function")]

use super::shared::{ADDED, ServiceImportStatus, conditions_schema};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of an imported Service.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct HubImportStatus {
    #[serde(flatten)]
    pub import: ServiceImportStatus,
    /// Conditions of the imported Service, in the hub. ExporterSilent is true while the hub agent does not hear from an
    /// exporting cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema", extend("title" = ADDED))]
    pub conditions: Option<Vec<Condition>>,
}

/// ServiceImport has no spec, because its name is that of the imported Service.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "ServiceImport",
    plural = "serviceimports",
    shortname = "svcimport",
    category = "fleet-networking",
    namespaced,
    no_spec,
    status = "HubImportStatus",
    derive = "PartialEq",
    doc = "ServiceImport stands for a Service that is exported by other clusters of the fleet.",
    printcolumn(name = "Type", type_ = "string", json_path = ".status.type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) < 64").message("metadata.name max length is 63")
)]
pub struct ServiceImportFields {}
