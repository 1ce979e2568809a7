//! Full names of the annotations that users write, for messages. A short name in a remedy would be an annotation that
//! does nothing.

/// Share of the traffic of a ServiceExport.
pub const WEIGHT: &str = "networking.fleet.azure.com/weight";
/// Cluster selectors, on a ServiceExport of the standard API or a MultiClusterService.
pub const CLUSTER_SELECTORS: &str = "networking.fleet.azure.com/cluster-selectors";
/// Request to export a headless Service, on its ServiceExport.
pub const EXPORT_HEADLESS: &str = "networking.fleet.azure.com/export-headless";
/// Clusters that may export the Services of a namespace of the hub.
pub const EXPORTERS: &str = "networking.fleet.azure.com/exporters";
/// Clusters that may import the Services of a namespace of the hub.
pub const IMPORTERS: &str = "networking.fleet.azure.com/importers";
/// Properties of a cluster, on its member namespace of the hub.
pub const CLUSTER_PROPERTIES: &str = "networking.fleet.azure.com/cluster-properties";
/// Weights of exporting clusters, on the object of the importer that imports their Service.
pub const WEIGHTS: &str = "networking.fleet.azure.com/weights";
/// Request for an internal load balancer, on its MultiClusterService.
pub const AZURE_LOAD_BALANCER_INTERNAL: &str = "networking.fleet.azure.com/azure-load-balancer-internal";
