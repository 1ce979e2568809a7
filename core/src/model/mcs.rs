//! Standard API `multicluster.x-k8s.io`: what an InternalServiceExport carries for it, and the merged import of all
//! exports of a Service.

use super::{
    ClusterSelection, ClusterSelector, Condition, ImportType, IpFamily, Meta, ServicePort, SessionAffinity, Weights,
    WrittenSelectors,
};
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// API that requests the export of a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportedBy {
    /// Both the fleet's ServiceExport and the standard ServiceExport.
    #[default]
    Both,
    /// Only the standard ServiceExport. The export takes no part in the conflict resolution of the fleet's API.
    McsApi,
}

/// Properties of a Service that only the standard API carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McsProperties {
    /// Address families, in the order of the Service. Empty if the exporter does not say.
    pub families: Vec<IpFamily>,
    /// `spec.internalTrafficPolicy` of the Service.
    pub internal_traffic_policy: Option<Text>,
    /// `spec.trafficDistribution` of the Service.
    pub traffic_distribution: Option<Text>,
    /// Labels that the ServiceImport gets in all clusters.
    pub labels: BTreeMap<Text, Text>,
    /// Annotations that the ServiceImport gets in all clusters.
    pub annotations: BTreeMap<Text, Text>,
}

/// User's request to export the Service with the same name by the standard API. It has no finalizer of the agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McsServiceExport {
    pub meta: Meta,
    /// `spec.exportedLabels`.
    pub labels: BTreeMap<Text, Text>,
    /// `spec.exportedAnnotations`.
    pub annotations: BTreeMap<Text, Text>,
    /// Cluster selectors of the user, in an annotation.
    pub cluster_selectors: WrittenSelectors,
    /// Value of the weight annotation, unparsed.
    pub weight: Option<Text>,
    pub conditions: Vec<Condition>,
}

/// ServiceImport of the standard API, in an importing member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McsServiceImport {
    pub meta: Meta,
    /// True if its label names the member agent as its writer.
    pub is_ours: bool,
    /// True if another writer removed this label. [`crate::member::View`] sets this field.
    pub relabelled: bool,
    /// Weights of the exporting clusters for this importer, by the annotation `networking.fleet.azure.com/weights`.
    pub weights: Weights,
    pub spec: McsImportSpec,
    pub status: McsImportStatus,
}

/// Fields of a ServiceImport of the standard API that the member agent writes, apart from the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McsImportSpec {
    pub import_type: ImportType,
    pub ports: Vec<ServicePort>,
    pub session_affinity: SessionAffinity,
    /// Properties of the merged import, with the families of the addresses. An annotation records the exported labels
    /// and annotations.
    pub properties: McsProperties,
    /// Addresses of the derived Service that clients can use. Empty for a headless Service.
    pub ips: Vec<Text>,
    /// Name of the derived Service, in an annotation. `None` for a headless Service.
    pub derived: Option<Text>,
    /// Results of the cluster selectors, in an annotation for users.
    pub selector_results: Vec<Vec<ClusterId>>,
}

/// Status of a ServiceImport of the standard API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McsImportStatus {
    /// Exporting clusters, sorted.
    pub clusters: Vec<ClusterId>,
    /// True if `status.endpointSliceObjects` is `Present`.
    pub has_slices: bool,
    pub conditions: Vec<Condition>,
}

/// Labels of the standard API on an imported slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McsLabels {
    /// Name of the imported Service, in the namespace of the slice.
    pub service: Text,
    /// Exporting cluster.
    pub cluster: ClusterId,
    /// True if the label for headless Services hides the slice from kube-proxy.
    pub headless: bool,
}

/// Part of an exported Service that only the standard API uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McsExport {
    pub exported_by: ExportedBy,
    pub properties: McsProperties,
    /// creationTimestamp of the ServiceExport, on the clock of the exporting cluster. `None` if an earlier version
    /// wrote the export.
    pub export_created: Option<Timestamp>,
    /// True if the hub agent had merged the export before the InternalServiceExport was created: the hub has lost it
    /// since.
    pub is_recreated: bool,
    /// Cluster selectors of the Service. Empty without cluster selection.
    pub cluster_selectors: Vec<ClusterSelector>,
}

/// Place of an export in the order of the exports of a Service, as the hub agent records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub cluster: ClusterId,
    /// creationTimestamp of the ServiceExport that the place belongs to.
    pub export_created: Timestamp,
    /// Age of the export, which decides its place.
    pub since: Timestamp,
}

/// Import of a Service by the standard API, merged from the exports of all clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedImport {
    pub import_type: ImportType,
    /// Union of the ports of all exports, without target ports.
    pub ports: Vec<ServicePort>,
    pub session_affinity: SessionAffinity,
    /// Properties of the oldest export. The families are those that all exports have in common; of a headless Service,
    /// all families.
    pub properties: McsProperties,
    /// Exporting clusters. The oldest export comes first.
    pub clusters: Vec<MergedCluster>,
}

/// Merged import for one importing member, in its member namespace of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedServiceImport {
    pub meta: Meta,
    /// Exported Service.
    pub service: ObjectName,
    /// All importers of a Service have the same import, so they share it.
    pub import: Arc<MergedImport>,
    /// Selection for this importer. Empty without cluster selectors and weights.
    pub selection: ClusterSelection,
}

/// Cluster whose export is part of a merged import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedCluster {
    pub cluster: ClusterId,
    /// Ports of the merged import that this cluster serves. `None` if it serves all of its own ports under their own
    /// names.
    pub ports: Option<Vec<ServedPort>>,
}

/// Port of a merged import that a cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedPort {
    /// Name of the port in the merged import.
    pub name: Text,
    /// Name of the port in the cluster's own Service.
    pub own_name: Text,
}
