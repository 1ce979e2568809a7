//! MergedServiceImport: a Service of the API group multicluster.x-k8s.io for one importing member, in its namespace in
//! the hub. The Go agents do not have this kind.
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path")]

use super::shared::{
    Label, McsProperties, Name, OwnerServiceReference, ServiceImportType, ServicePort, SessionAffinityConfig,
};
use crate::lenient::Few;
use crate::limits::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use crate::wire::{Maybe, Needed, Plain, record};
use fleetnet_core::limits::{CLUSTER_SELECTORS_MAX, MERGED_CLUSTERS_MAX, PORTS_MAX, WEIGHT_MAX};
use fleetnet_core::model;
use fleetnet_types::ClusterId;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Service that clusters export, merged from all exports. Where exports disagree, the oldest export decides.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "MergedServiceImport",
    plural = "mergedserviceimports",
    category = "fleet-networking",
    namespaced,
    derive = "PartialEq",
    doc = "MergedServiceImport carries a merged Service of the API group multicluster.x-k8s.io from the hub to a member cluster.",
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.serviceReference.namespacedName"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Clusters", type_ = "string", json_path = ".spec.clusters[*].cluster"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct MergedServiceImportSpec {
    /// Reference to the exported Service.
    pub service_reference: OwnerServiceReference,
    /// Type of the imported Service, with or without a virtual address.
    #[serde(rename = "type")]
    pub type_: ServiceImportType,
    /// Union of the ports of all exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
    pub ports: Option<Vec<ServicePort>>,
    /// Session affinity of the oldest export, None or ClientIP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL_BYTES_MAX))]
    pub session_affinity: Option<String>,
    /// Timeout of the session affinity of the oldest export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    #[serde(flatten)]
    pub properties: McsProperties,
    /// Exporting clusters. The oldest export comes first.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = MERGED_CLUSTERS_MAX))]
    pub clusters: Vec<MergedCluster>,
    /// Result of each cluster selector for the importing cluster. The most preferred result comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = CLUSTER_SELECTORS_MAX))]
    pub cluster_selector_results: Option<Vec<ClusterSelectorResult>>,
}

/// Result of a cluster selector.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ClusterSelectorResult {
    /// Exporting clusters that match the selector.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = MERGED_CLUSTERS_MAX))]
    pub clusters: Vec<String>,
}

record! {
    /// Exporting cluster of a merged Service.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct MergedCluster: RawMergedCluster => model::MergedCluster {
        /// ID of the exporting cluster.
        #[schemars(length(max = NAME_BYTES_MAX))]
        cluster: String = cluster "cluster" as Needed<Name<ClusterId>>,
        /// Ports of the merged Service that the endpoints of this cluster serve. Absent if they serve all ports of the
        /// cluster's own Service, under their own names.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = PORTS_MAX))]
        ports(default): Option<Vec<ServedPort>> = ports "ports" as Maybe<Few<RawServedPort, PORTS_MAX>>,
    }
    definition {
        /// Weight of the ServiceExport of this cluster. Absent if it is 1, or if no cluster selection needs it.
        #[schemars(range(min = 0, max = WEIGHT_MAX))]
        weight(default): Option<i64>,
    }
    // The weight is part of the selection for the importer, and not of the import that all importers share.
    raw { weight: i64 = "weight", }
}

record! {
    /// Port of a merged Service that a cluster serves.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct ServedPort: RawServedPort => model::ServedPort {
        /// Name of the port in the merged Service.
        #[schemars(length(max = LABEL_BYTES_MAX))]
        name(default): Option<String> = name "name" as Plain<Label>,
        /// Name of the port in the cluster's own Service.
        #[schemars(length(max = LABEL_BYTES_MAX))]
        own_name(default): Option<String> = own_name "ownName" as Plain<Label>,
    }
}
