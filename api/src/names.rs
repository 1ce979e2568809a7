//! Labels, annotations, finalizers and fixed names of the group. Fleetnet, the Go agents and users rely on them, so none may
//! change.

/// API group of the fleet's kinds.
pub const GROUP: &str = "networking.fleet.azure.com";
/// Version of all kinds except the stored version of ServiceExport.
pub const VERSION: &str = "v1alpha1";
/// Stored version of ServiceExport.
pub const SERVICE_EXPORT_VERSION: &str = "v1beta1";

/// Default namespace of derived Services and imported EndpointSlices in a member.
pub const FLEET_SYSTEM_NAMESPACE: &str = "fleet-system";

/// Finalizers. Each keeps an object until the objects and entries made for it elsewhere are gone.
pub mod finalizers {
    /// On ServiceExport: its InternalServiceExport and EndpointSliceExports on the hub.
    pub const SERVICE_EXPORT: &str = "networking.fleet.azure.com/svc-export-cleanup";
    /// On InternalServiceExport: its cluster in the ServiceImport on the hub.
    pub const INTERNAL_SERVICE_EXPORT: &str = "networking.fleet.azure.com/internal-svc-export-cleanup";
    /// On ServiceImport, in a member: its InternalServiceImport on the hub; on the hub: the claims of importers.
    pub const SERVICE_IMPORT: &str = "networking.fleet.azure.com/serviceimport-cleanup";
    /// On InternalServiceImport: its claim on the ServiceImport on the hub.
    pub const INTERNAL_SERVICE_IMPORT: &str = "networking.fleet.azure.com/internalsvcimport-cleanup";
    /// On EndpointSliceExport: the EndpointSliceImports made from it.
    pub const ENDPOINT_SLICE_EXPORT: &str = "networking.fleet.azure.com/endpointsliceexport-cleanup";
    /// On EndpointSliceImport: the EndpointSlice made from it in the importing member.
    pub const ENDPOINT_SLICE_IMPORT: &str = "networking.fleet.azure.com/endpointsliceimport-cleanup";
    /// On MultiClusterService: its derived Service and its ServiceImport.
    pub const MULTI_CLUSTER_SERVICE: &str = "networking.fleet.azure.com/service-resources-cleanup";
}

/// Labels.
pub mod labels {
    /// On MultiClusterService: the name of the ServiceImport that it made.
    pub const SERVICE_IMPORT: &str = "networking.fleet.azure.com/service-import";
    /// On MultiClusterService: the name of its derived Service in the fleet's namespace.
    pub const DERIVED_SERVICE: &str = "networking.fleet.azure.com/derived-service";
    /// On a derived Service: the name of its MultiClusterService.
    pub const MULTI_CLUSTER_SERVICE_NAME: &str = "networking.fleet.azure.com/multi-cluster-service-name";
    /// On a derived Service: the namespace of its MultiClusterService.
    pub const MULTI_CLUSTER_SERVICE_NAMESPACE: &str = "networking.fleet.azure.com/multi-cluster-service-namespace";
    /// Standard label of Kubernetes on EndpointSlice: the name of its Service.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// Standard label of Kubernetes on EndpointSlice: the controller that manages it.
    pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
    /// Standard labels of Kubernetes on EndpointSlice. kube-proxy ignores a slice with one of them, so an imported slice has
    /// none.
    pub const HIDING: [&str; 2] = ["service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name"];
    /// Value of [`MANAGED_BY`] on imported EndpointSlices.
    pub const MANAGED_BY_IMPORT: &str = "endpointsliceimport-controller.networking.fleet.azure.com";
}

/// Annotations.
pub mod annotations {
    /// On a source EndpointSlice, written by Go agents: the name that it is exported under.
    pub const FLEET_UNIQUE_NAME: &str = "networking.fleet.azure.com/fleet-unique-name";
    /// On a source EndpointSlice, written by Go agents: its generation when it was last exported.
    pub const LAST_SEEN_GENERATION: &str = "networking.fleet.azure.com/last-seen-generation";
    /// On a source EndpointSlice or ServiceExport, written by Go agents: the time of the last export, RFC 3339.
    pub const LAST_SEEN_TIMESTAMP: &str = "networking.fleet.azure.com/last-seen-timestamp";
    /// On ServiceExport, written by Go agents: the resource version of the Service when it was last exported.
    pub const LAST_SEEN_RESOURCE_VERSION: &str = "networking.fleet.azure.com/last-seen-resource-version";
    /// On the imported EndpointSlice: the generation of the export whose latency was observed. Go agents write it on the
    /// EndpointSliceImport.
    pub const LAST_OBSERVED_GENERATION: &str = "networking.fleet.azure.com/last-observed-generation";
    /// On InternalServiceExport: the resource version of the Service whose export latency was observed.
    pub const LAST_OBSERVED_RESOURCE_VERSION: &str = "networking.fleet.azure.com/last-observed-resource-version";
    /// On ServiceImport on the hub: the importers, as `{"MemberClusters":{"<importer's hub namespace>":"<cluster ID>"}}`. If
    /// there are several, the further key `"LoadBalancer"` has the hub namespace of the importer of that type; Go agents do not
    /// have it.
    pub const SERVICE_IN_USE_BY: &str = "networking.fleet.azure.com/service-in-use-by";
    /// On ServiceExport, set by users: the weight of the export, a whole number from 0 to 1000.
    pub const WEIGHT: &str = "networking.fleet.azure.com/weight";
    /// On MultiClusterService, set by users: `true` asks for an internal load balancer of the derived Service.
    pub const AZURE_LOAD_BALANCER_INTERNAL: &str = "networking.fleet.azure.com/azure-load-balancer-internal";
    /// On a derived Service, read by Azure: its load balancer is internal.
    pub const SERVICE_AZURE_LOAD_BALANCER_INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

    /// On InternalServiceImport: the type of the MultiClusterService; absent means LoadBalancer.
    pub const SERVICE_TYPE: &str = "networking.fleet.azure.com/service-type";
    /// On InternalServiceExport, stamped by the hub: time since which the export has its current ports.
    pub const PORTS_OFFERED_SINCE: &str = "networking.fleet.azure.com/ports-offered-since";
    /// On ServiceExport, set by users: `true` exports a headless Service.
    pub const EXPORT_HEADLESS: &str = "networking.fleet.azure.com/export-headless";
    /// On a namespace of the hub: the IDs of the clusters that may export from it, separated by commas; absent: all.
    pub const EXPORTERS: &str = "networking.fleet.azure.com/exporters";
    /// On a namespace of the hub: the IDs of the clusters that may import from it, separated by commas; absent: all.
    pub const IMPORTERS: &str = "networking.fleet.azure.com/importers";
}
