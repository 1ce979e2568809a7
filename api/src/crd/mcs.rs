//! Kinds of the standard API for multi-cluster Services, `multicluster.x-k8s.io` (KEP-1645). Their schemas equal those
//! of the Go module `sigs.k8s.io/mcs-api`, and versions v1alpha1 and v1beta1 have the same schema. Clusters can have
//! these kinds without fleetnet.
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path")]

use super::shared::{ClusterStatus, ServiceImportType, SessionAffinityConfig, conditions_schema};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Content of a ServiceExport. Users may leave out its spec.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1beta1",
    kind = "ServiceExport",
    plural = "serviceexports",
    shortname = "svcex",
    shortname = "svcexport",
    namespaced,
    no_spec,
    status = "ServiceExportStatus",
    derive = "PartialEq",
    doc = "ServiceExport declares that the Service of the same name is exported to all clusters of the clusterset.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ServiceExportFields {
    /// Labels and annotations that the ServiceImport gets in all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ServiceExportSpec")]
    pub spec: Option<ServiceExportSpec>,
}

/// Labels and annotations that the ServiceImport gets in all clusters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportSpec {
    /// Labels of the ServiceImport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_labels: Option<BTreeMap<String, String>>,
    /// Annotations of the ServiceImport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_annotations: Option<BTreeMap<String, String>>,
}

/// State of the export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ServiceExportStatus {
    /// Conditions of the export. Valid is true if the Service may be exported. Ready is true if the Service is
    /// exported. Conflict is true if exports of several clusters disagree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}

/// Imported Service, merged from the exports of all clusters.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1beta1",
    kind = "ServiceImport",
    plural = "serviceimports",
    shortname = "svcim",
    shortname = "svcimport",
    namespaced,
    status = "ServiceImportStatus",
    derive = "PartialEq",
    doc = "ServiceImport is a Service that clusters of the clusterset export. An agent writes it.",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "IP", type_ = "string", json_path = ".spec.ips"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ServiceImportSpec {
    /// Ports of the imported Service.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<ImportedPort>,
    /// Virtual addresses of the imported Service in this cluster. A headless Service has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2))]
    pub ips: Option<Vec<String>>,
    /// IP families of the imported Service, in the order of its addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2))]
    pub ip_families: Option<Vec<String>>,
    /// Type of the imported Service, with or without a virtual address.
    #[serde(rename = "type")]
    pub type_: ServiceImportType,
    /// Session affinity of the imported Service, None or ClientIP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// Timeout of the session affinity of the imported Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// Traffic policy of the exported Services for clients inside of a cluster, Cluster or Local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<String>,
    /// Preference of the exported Services for near endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<String>,
}

/// Port of an imported Service. It has no target port, because each exporting cluster has its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedPort {
    /// Name of the port. Empty if the Service has one port only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// IP protocol of the port: TCP, UDP or SCTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Application protocol of the port, which is an IANA service name or a prefixed name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
    /// Number of the port.
    pub port: i32,
}

/// State of the import.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportStatus {
    /// Clusters whose exports are part of the imported Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Option<Vec<ClusterStatus>>,
    /// Present if this cluster has EndpointSlices of the imported Service, otherwise Absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EndpointSliceObjects")]
    pub endpoint_slice_objects: Option<EndpointSliceObjects>,
    /// Conditions of the import. Ready is true if the imported Service can be used in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}

/// Existence of EndpointSlices of an imported Service.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum EndpointSliceObjects {
    /// The cluster has EndpointSlices of the imported Service.
    Present,
    /// The cluster has no EndpointSlices of the imported Service.
    Absent,
}
