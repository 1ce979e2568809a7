//! Labels, annotations, finalizers and fixed names of the group. Fleetnet, the Go agents and users rely on them, so
//! none may change.

/// API group of the fleet's kinds.
pub const GROUP: &str = "networking.fleet.azure.com";
/// Version of all kinds except the stored version of ServiceExport.
pub const VERSION: &str = "v1alpha1";
/// Stored version of ServiceExport.
pub const SERVICE_EXPORT_VERSION: &str = "v1beta1";
/// API group of the kinds of a fleet manager (Azure Fleet), which defines the members of a fleet.
pub const MEMBERSHIP_GROUP: &str = "cluster.kubernetes-fleet.io";
/// Version of these kinds.
pub const MEMBERSHIP_VERSION: &str = "v1beta1";

/// API group of the standard API for multi-cluster Services (KEP-1645).
pub const MCS_GROUP: &str = "multicluster.x-k8s.io";
/// Version of its kinds that the agents use.
pub const MCS_VERSION: &str = "v1beta1";
/// Older version of the kinds of the group `multicluster.x-k8s.io`, with the same schema. Servers also serve it, and
/// CoreDNS reads it.
pub const MCS_OLD_VERSION: &str = "v1alpha1";
/// Release of the Go module `sigs.k8s.io/mcs-api` whose schemas the CustomResourceDefinitions of these kinds have.
pub const MCS_RELEASE: &str = "v0.5.2";

/// Default namespace of derived Services and imported EndpointSlices in a member.
pub const FLEET_SYSTEM_NAMESPACE: &str = "fleet-system";

/// Finalizers. Each keeps an object until everything that was made for it in other objects and clusters is removed.
pub mod finalizers {
    /// Finalizer of a ServiceExport, until its InternalServiceExport and EndpointSliceExports in the hub are removed.
    pub const SERVICE_EXPORT: &str = "networking.fleet.azure.com/svc-export-cleanup";
    /// Finalizer of an InternalServiceExport, until the ServiceImport in the hub no longer lists its cluster.
    pub const INTERNAL_SERVICE_EXPORT: &str = "networking.fleet.azure.com/internal-svc-export-cleanup";
    /// Finalizer of a ServiceImport. In a member: until its InternalServiceImport in the hub is removed. In the hub:
    /// until no claim is recorded.
    pub const SERVICE_IMPORT: &str = "networking.fleet.azure.com/serviceimport-cleanup";
    /// Finalizer of an InternalServiceImport, until the ServiceImport in the hub no longer records its claim.
    pub const INTERNAL_SERVICE_IMPORT: &str = "networking.fleet.azure.com/internalsvcimport-cleanup";
    /// Finalizer of an EndpointSliceExport, until the EndpointSliceImports made from it are removed.
    pub const ENDPOINT_SLICE_EXPORT: &str = "networking.fleet.azure.com/endpointsliceexport-cleanup";
    /// Finalizer of an EndpointSliceImport, until the EndpointSlice made from it in the importing member is removed.
    pub const ENDPOINT_SLICE_IMPORT: &str = "networking.fleet.azure.com/endpointsliceimport-cleanup";
    /// Finalizer of a MergedServiceImport, until the importing member has removed what it made from it.
    pub const MERGED_SERVICE_IMPORT: &str = "networking.fleet.azure.com/mergedserviceimport-cleanup";
    /// Finalizer of a MultiClusterService, until its derived Service and its ServiceImport are removed.
    pub const MULTI_CLUSTER_SERVICE: &str = "networking.fleet.azure.com/service-resources-cleanup";
}

/// Labels.
pub mod labels {
    /// Label of a Node, written by its cloud provider: the region of the Node.
    pub const REGION: &str = "topology.kubernetes.io/region";
    /// Label of a Node, written by its cloud provider: the zone of the Node.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// Label of a MultiClusterService: the name of the ServiceImport that it requested.
    pub const SERVICE_IMPORT: &str = "networking.fleet.azure.com/service-import";
    /// Label of a MultiClusterService: the name of its derived Service in the fleet's namespace.
    pub const DERIVED_SERVICE: &str = "networking.fleet.azure.com/derived-service";
    /// Label of a derived Service: the name of its MultiClusterService.
    pub const MULTI_CLUSTER_SERVICE_NAME: &str = "networking.fleet.azure.com/multi-cluster-service-name";
    /// Label of a derived Service: the namespace of its MultiClusterService.
    pub const MULTI_CLUSTER_SERVICE_NAMESPACE: &str = "networking.fleet.azure.com/multi-cluster-service-namespace";
    /// Standard label of an EndpointSlice: the name of its Service.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// Standard label of an EndpointSlice: the controller that manages it.
    pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
    /// Standard label of an EndpointSlice that kube-proxy ignores: of a headless Service, or with routing slices a
    /// standard slice of any Service.
    pub const HEADLESS: &str = "service.kubernetes.io/headless";
    /// Standard labels of an EndpointSlice with which kube-proxy ignores it. An imported slice has none of them, apart
    /// from [`HEADLESS`] on a slice of the standard API that is not bound to a derived Service.
    pub const HIDING: [&str; 2] = [HEADLESS, "service.kubernetes.io/service-proxy-name"];
    /// Value of [`MANAGED_BY`] on imported EndpointSlices.
    pub const MANAGED_BY_IMPORT: &str = "endpointsliceimport-controller.networking.fleet.azure.com";
    /// Label of a namespace in a member, with the value `true`: it imports Services of the standard API.
    pub const IMPORT: &str = "fleetnet/import";
    /// Standard label of a Service or EndpointSlice: the name of the imported Service of the standard API that it
    /// belongs to.
    pub const MCS_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
    /// Standard label of an imported EndpointSlice of the standard API: the exporting cluster.
    pub const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
    /// Standard label of an object in a user's namespace: the program that writes it.
    pub const WRITER: &str = "app.kubernetes.io/managed-by";
    /// Value of [`WRITER`] on the objects that the member agent makes for the standard API.
    pub const WRITER_MEMBER_AGENT: &str = "fleetnet-member-agent";
    /// Standard label of the objects that install fleetnet, with the value `fleetnet`.
    pub const PART_OF: &str = "app.kubernetes.io/part-of";
    /// Label of a CustomResourceDefinition of fleetnet: the revision of its content, a number. A definition with a
    /// lower number than that of the agents is older than the agents.
    pub const CRD_REVISION: &str = "fleetnet/crd-revision";
    /// Standard label of a CustomResourceDefinition of the group `multicluster.x-k8s.io`: the release with its schema.
    pub const MCS_RELEASE: &str = "multicluster.x-k8s.io/release-version";
    /// Standard label of a CustomResourceDefinition of the group `multicluster.x-k8s.io`: the revision of its schema.
    pub const MCS_REVISION: &str = "multicluster.x-k8s.io/crd-schema-revision";
}

/// Annotations.
pub mod annotations {
    /// Annotation of an InternalServiceImport, written by the hub agent: the results of the cluster selectors for the
    /// importer, and the weights of the exporting clusters, as JSON.
    pub const CLUSTER_SELECTION: &str = "fleetnet/cluster-selection";
    /// Annotation of a MultiClusterService or of a ServiceImport of the standard API, set by users of the importer:
    /// weights of the exporting clusters, as a JSON object with a whole number from 0 to 1000 for each cluster.
    pub const WEIGHTS: &str = "networking.fleet.azure.com/weights";
    /// Annotation of a ServiceExport of the standard API or a MultiClusterService, set by users: the cluster selectors
    /// of the Service, as a JSON list of `{"propertySelector": LabelSelector}`. The member agent copies it from the
    /// MultiClusterService to the InternalServiceImport.
    pub const CLUSTER_SELECTORS: &str = "networking.fleet.azure.com/cluster-selectors";
    /// Annotation of a ServiceImport of the standard API: for each cluster selector the exporting clusters that match,
    /// as JSON.
    pub const CLUSTER_SELECTOR_RESULTS: &str = "fleetnet/cluster-selector-results";
    /// Annotation of a ServiceImport of the standard API: its labels and annotations that exports gave to it, as JSON.
    pub const EXPORTED: &str = "fleetnet/exported";
    /// Annotation of a ServiceImport of the standard API: the name of its derived Service. Gateways read it.
    pub const MCS_DERIVED_SERVICE: &str = "multicluster.kubernetes.io/derived-service";
    /// Annotation of a source EndpointSlice, written by Go agents: the name of its EndpointSliceExport.
    pub const FLEET_UNIQUE_NAME: &str = "networking.fleet.azure.com/fleet-unique-name";
    /// Annotation of a source EndpointSlice, written by Go agents: its generation when it was last exported.
    pub const LAST_SEEN_GENERATION: &str = "networking.fleet.azure.com/last-seen-generation";
    /// Annotation of a source EndpointSlice or ServiceExport, written by Go agents: the time of the last export,
    /// RFC 3339.
    pub const LAST_SEEN_TIMESTAMP: &str = "networking.fleet.azure.com/last-seen-timestamp";
    /// Annotation of a ServiceExport, written by Go agents: the resourceVersion of the Service when it was last
    /// exported.
    pub const LAST_SEEN_RESOURCE_VERSION: &str = "networking.fleet.azure.com/last-seen-resource-version";
    /// Annotation of an imported EndpointSlice: the generation of the export whose latency was observed. Go agents
    /// write it on the EndpointSliceImport.
    pub const LAST_OBSERVED_GENERATION: &str = "networking.fleet.azure.com/last-observed-generation";
    /// Annotation of an InternalServiceExport: the resourceVersion of the Service whose export latency was observed.
    pub const LAST_OBSERVED_RESOURCE_VERSION: &str = "networking.fleet.azure.com/last-observed-resource-version";
    /// Annotation of a ServiceImport in the hub: the importers, as
    /// `{"MemberClusters":{"<importer's hub namespace>":"<cluster  ID>"}}`. If there are several, a further key
    /// `"LoadBalancer"` has the hub namespace of the importer of that type; Go agents do not have it.
    pub const SERVICE_IN_USE_BY: &str = "networking.fleet.azure.com/service-in-use-by";
    /// Annotation of a ServiceExport, set by users: the weight of the export, a whole number from 0 to 1000.
    pub const WEIGHT: &str = "networking.fleet.azure.com/weight";
    /// Annotation of a MultiClusterService, set by users: `true` requests an internal load balancer of the derived
    /// Service.
    pub const AZURE_LOAD_BALANCER_INTERNAL: &str = "networking.fleet.azure.com/azure-load-balancer-internal";
    /// Annotation of a derived Service, read by Azure: its load balancer is internal. On a MultiClusterService, users
    /// can write it instead of `networking.fleet.azure.com/azure-load-balancer-internal`.
    pub const SERVICE_AZURE_LOAD_BALANCER_INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

    /// Annotation of a source EndpointSlice, written by Kubernetes: the time of the first change of a pod or of the
    /// Service that led to its last change, RFC 3339.
    pub const LAST_CHANGE_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
    /// Annotation of a slice after a sampled change: the context of the exporter's span (KEP-5915).
    pub const TRACEPARENT: &str = "tracing.k8s.io/traceparent";

    /// Annotation of an InternalServiceImport: the type of the MultiClusterService; absent means LoadBalancer.
    pub const SERVICE_TYPE: &str = "networking.fleet.azure.com/service-type";
    /// Annotation of an InternalServiceExport, written by the hub agent: the time since which the export has its
    /// present ports.
    pub const PORTS_OFFERED_SINCE: &str = "networking.fleet.azure.com/ports-offered-since";
    /// Annotation of a ServiceExport, set by users: `true` exports a headless Service.
    pub const EXPORT_HEADLESS: &str = "networking.fleet.azure.com/export-headless";
    /// Annotation of a namespace in the hub: the ids of the clusters that may export from it, separated by commas.
    /// Without this annotation, all clusters may.
    pub const EXPORTERS: &str = "networking.fleet.azure.com/exporters";
    /// Annotation of a namespace in the hub: the ids of the clusters that may import from it, separated by commas.
    /// Without this annotation, all clusters may.
    pub const IMPORTERS: &str = "networking.fleet.azure.com/importers";
    /// Annotation of a member namespace in the hub: the address ranges of the endpoints that the member may export,
    /// separated by commas.
    pub const SOURCE_RANGES: &str = "networking.fleet.azure.com/source-ranges";
    /// Annotation of a member namespace in the hub: properties of the member as a JSON object of texts. They win over
    /// those that the member announces.
    pub const CLUSTER_PROPERTIES: &str = "networking.fleet.azure.com/cluster-properties";
}
