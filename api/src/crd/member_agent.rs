//! MemberAgent: heartbeat and announcement of a member, in its namespace of the hub. The Go agents do not have this kind.
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the member says.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "MemberAgent",
    plural = "memberagents",
    category = "fleet-networking",
    namespaced,
    status = "MemberAgentStatus",
    derive = "PartialEq",
    doc = "MemberAgent tells that a member's agent is there, and what member and hub understand of each other. The member \
           agent makes it, under the ID of its cluster.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Hub-Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Renewed", type_ = "date", json_path = ".spec.renewTime"),
    printcolumn(name = "Stopped", type_ = "date", json_path = ".spec.plannedStopTime"),
    printcolumn(name = "Exports", type_ = "integer", json_path = ".status.exportedServices"),
    printcolumn(name = "Endpoints", type_ = "integer", json_path = ".status.exportedEndpoints"),
    printcolumn(name = "Imports", type_ = "integer", json_path = ".status.importedServices"),
    printcolumn(name = "Exported-Slices", type_ = "integer", json_path = ".status.exportedSlices", priority = 1),
    printcolumn(name = "Imported-Slices", type_ = "integer", json_path = ".status.importedSlices", priority = 1),
    printcolumn(name = "Understands", type_ = "string", json_path = ".spec.features", priority = 1),
    printcolumn(name = "Cluster-UID", type_ = "string", json_path = ".spec.clusterUid", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct MemberAgentSpec {
    /// The version of the member agent.
    pub version: String,
    /// What the member agent understands beside what every agent of this group does. What is not named here is not sent to
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "set"), length(max = 64))]
    pub features: Option<Vec<Name>>,
    /// The cluster that owns this ID: the UID of its namespace kube-system. An agent of another cluster with the same ID does
    /// nothing in the hub until it takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub cluster_uid: Option<String>,
    /// The process that wrote the last renewal, as it names itself in its Leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub leader_identity: Option<String>,
    /// When the member agent last said that it follows its cluster's EndpointSlices, by its own clock: every 10 seconds.
    pub renew_time: MicroTime,
    /// When the member agent stopped as planned, by its own clock; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_stop_time: Option<MicroTime>,
}

/// The name of something that an agent understands.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Name(#[schemars(length(min = 1, max = 63))] pub String);

/// What the hub says.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberAgentStatus {
    /// The version of the hub agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the hub agent understands beside what every agent of this group does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "set"), length(max = 64))]
    pub features: Option<Vec<Name>>,
    /// How many Services the member exports. All counts are as of its last renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_services: Option<i64>,
    /// How many EndpointSlices the member exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_slices: Option<i64>,
    /// How many ready endpoints these have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_endpoints: Option<i64>,
    /// How many Services the member imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_services: Option<i64>,
    /// How many EndpointSlices the member is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_slices: Option<i64>,
}
