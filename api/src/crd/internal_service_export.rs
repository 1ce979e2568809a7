//! InternalServiceExport: a Service that a member exports, in its member's namespace of the hub.

use super::shared::{ExportedObjectReference, ServicePort, SessionAffinityConfig, conditions_schema};
use fleetnet_core::limits::PORTS_MAX;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a member tells the hub about a Service that it exports.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "InternalServiceExport",
    plural = "internalserviceexports",
    shortname = "internalsvcexport",
    category = "fleet-networking",
    namespaced,
    status = "InternalServiceExportStatus",
    derive = "PartialEq",
    doc = "InternalServiceExport carries an exported Service from a member cluster to the hub."
)]
pub struct InternalServiceExportSpec {
    /// The ports of the exported Service, in its order.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
    pub ports: Vec<ServicePort>,
    /// The exported Service.
    pub service_reference: ExportedObjectReference,
    /// The type of the exported Service. Set for Traffic Manager only.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Whether the exported Service's public address has a DNS label. Set for Traffic Manager only.
    #[serde(default, rename = "isDNSLabelConfigured", skip_serializing_if = "Option::is_none")]
    pub is_dns_label_configured: Option<bool>,
    /// Whether the exported Service has an internal load balancer. Set for Traffic Manager only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_internal_load_balancer: Option<bool>,
    /// The Azure resource of the exported Service's public address. Set for Traffic Manager only.
    #[serde(default, rename = "publicIPResourceID", skip_serializing_if = "Option::is_none")]
    pub public_ip_resource_id: Option<String>,
    /// The share of traffic that this export asks for. Set for Traffic Manager only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Whether one client of the exported Service keeps to one endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SessionAffinity")]
    pub session_affinity: Option<SessionAffinity>,
    /// How long one client of the exported Service keeps to one endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// Whether the exported Service has no address of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
}

/// Whether one client of a Service keeps to one endpoint.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum SessionAffinity {
    /// Any connection goes to any endpoint.
    #[default]
    None,
    /// Connections from one client address go to one endpoint.
    ClientIP,
}

/// What the hub tells the exporting member.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct InternalServiceExportStatus {
    /// The condition Conflict: whether this export agrees with those of other clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}
