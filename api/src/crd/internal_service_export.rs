//! InternalServiceExport: a Service that a member exports, in the exporting member's namespace in the hub.

use super::shared::{
    ADDED, ExportedObjectReference, McsProperties, Name, ServicePort, SessionAffinityConfig, conditions_schema,
};
use crate::lenient::{Few, Short};
use crate::limits::NAMESPACED_NAME_BYTES_MAX;
use crate::wire::{Micros, Needed, Plain, Sparse, Strict, record};
use fleetnet_core::limits::{CLUSTER_SELECTORS_MAX, PLACES_MAX, PORTS_MAX, PROPERTY_BYTES_MAX, SELECTOR_PARTS_MAX};
use fleetnet_core::model;
use fleetnet_types::{ClusterId, Text};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Content of a Service that a member exports.
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
    /// Ports of the exported Service, in the order of the Service.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
    pub ports: Vec<ServicePort>,
    /// Reference to the exported Service.
    pub service_reference: ExportedObjectReference,
    /// Type of the exported Service. Set for Traffic Manager only.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// True if the public address of the exported Service has a DNS label. Set for Traffic Manager only.
    #[serde(default, rename = "isDNSLabelConfigured", skip_serializing_if = "Option::is_none")]
    pub is_dns_label_configured: Option<bool>,
    /// True if the exported Service has an internal load balancer. Set for Traffic Manager only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_internal_load_balancer: Option<bool>,
    /// Azure resource of the public address of the exported Service. Set for Traffic Manager only.
    #[serde(default, rename = "publicIPResourceID", skip_serializing_if = "Option::is_none")]
    pub public_ip_resource_id: Option<String>,
    /// Share of traffic that this export requests. The member agent sets it with cluster selection, unless it is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Session affinity of the exported Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SessionAffinity", extend("title" = ADDED))]
    pub session_affinity: Option<SessionAffinity>,
    /// Timeout of the session affinity of the exported Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("title" = ADDED))]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// True if the exported Service is headless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("title" = ADDED))]
    pub headless: Option<bool>,
    /// Part of the exported Service for the API group multicluster.x-k8s.io. Absent if no ServiceExport of that group
    /// exports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("title" = ADDED))]
    pub multicluster: Option<McsExport>,
}

/// Part of an exported Service that only the API group multicluster.x-k8s.io uses.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct McsExport {
    /// True if only the ServiceExport of multicluster.x-k8s.io exports the Service, and none of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<bool>,
    /// creationTimestamp of the ServiceExport, by the clock of the exporting cluster. The oldest ServiceExport decides
    /// in a conflict, among exports that the hub does not know from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_creation_timestamp: Option<Time>,
    /// True if the hub agent had merged the export before this object was created: the hub has lost the export since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreated: Option<bool>,
    /// Cluster selectors of the Service, the most preferred first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = CLUSTER_SELECTORS_MAX))]
    pub cluster_selectors: Option<Vec<ClusterSelector>>,
    #[serde(flatten)]
    pub properties: McsProperties,
}

record! {
    /// Selector of clusters by their properties. A cluster must meet all requirements.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct ClusterSelector: RawSelector => model::ClusterSelector {
        /// Requirements of the selector.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = SELECTOR_PARTS_MAX))]
        match_expressions: Vec<Requirement>
            = requirements "matchExpressions" as Strict<Plain<Few<RawRequirement, SELECTOR_PARTS_MAX>>>,
    }
}

record! {
    /// Requirement of a property of a cluster.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct Requirement: RawRequirement => model::Requirement {
        /// Name of the property.
        #[schemars(length(max = NAMESPACED_NAME_BYTES_MAX))]
        key: String = key "key" as Needed<Short<Text, NAMESPACED_NAME_BYTES_MAX>>,
        /// Relation of the property and the values.
        operator: Operator = operator "operator" as Needed<model::Operator>,
        /// Values for In and NotIn. `@SameAsImporter@` stands for the value of the importing cluster.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = SELECTOR_PARTS_MAX), inner(length(max = PROPERTY_BYTES_MAX)))]
        values(default): Option<Vec<String>>
            = values "values" as Sparse<Few<Short<Text, PROPERTY_BYTES_MAX>, SELECTOR_PARTS_MAX>>,
    }
}

/// Relation of a property and the values of a requirement.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum Operator {
    /// The property has one of the values.
    #[default]
    In,
    /// The property has none of the values.
    NotIn,
    /// The cluster has the property.
    Exists,
    /// The cluster does not have the property.
    DoesNotExist,
}

/// Session affinity of a Service.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum SessionAffinity {
    /// Connections go to any endpoint.
    #[default]
    None,
    /// Connections from one client address go to one endpoint.
    ClientIP,
}

/// Answer of the hub agent to the exporting member.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct InternalServiceExportStatus {
    /// Conditions of the export. Conflict is true if it disagrees with the exports of other clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// Places of the oldest exports of the Service by the API group multicluster.x-k8s.io, up to this export. The
    /// oldest comes first. So the order survives if an export is created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "title" = ADDED), length(max = PLACES_MAX))]
    pub precedence: Option<Vec<Place>>,
}

record! {
    /// Place of an export in the order of the exports of a Service.
    #[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct Place: RawPlace => model::Place {
        /// ID of the exporting cluster.
        #[schemars(length(min = 1, max = 63))]
        cluster: String = cluster "cluster" as Needed<Name<ClusterId>>,
        /// creationTimestamp of the ServiceExport that has the place.
        export_creation_timestamp: MicroTime = export_created "exportCreationTimestamp" as Needed<Micros>,
        /// Age of the export, which decides its place.
        since: MicroTime = since "since" as Needed<Micros>,
    }
}
