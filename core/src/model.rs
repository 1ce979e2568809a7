//! Objects as the agents' views keep them: compact values, one struct for each kind.
//!
//! A struct has only the fields that a rule reads. Other fields are not lost: each change is a merge patch of the
//! fields that the agent owns.

mod address;
mod hub;
mod mcs;
mod membership;
mod object;
mod port;
mod selection;
mod silence;
mod slice;

use crate::ranges::SourceRanges;
use fleetnet_types::{ClusterId, ConditionStatus, MemberNamespace, ObjectName, Text, Timestamp, Uid};
use std::collections::{BTreeMap, BTreeSet};

pub use address::Address;
pub use hub::{
    Announcement, ClaimState, ExportState, HubSlice, HubSliceSpec, InternalServiceExport, InternalServiceImport,
    LatencyChange, LatencyReport, MemberAgent, MemberCounts, MemberStatus, OriginLatency, PortSetStamp, Reference,
    Renewal, SliceStreamOffer, SliceStreamReport,
};
pub use mcs::{
    ExportedBy, McsExport, McsImportSpec, McsImportStatus, McsLabels, McsProperties, McsServiceExport,
    McsServiceImport, MergedCluster, MergedImport, MergedServiceImport, Place, ServedPort,
};
pub use membership::{AgentStatus, InternalMemberCluster, MemberCluster, MembershipAgent, MembershipState};
pub use object::{Kind, Object, Stored};
pub use port::PortNumber;
pub use selection::{
    ClusterSelection, ClusterSelector, Operator, Requirement, SAME_AS_IMPORTER, Weights, WrittenSelectors,
};
pub use silence::{Silence, SilencePhase, SilentMember, Treatment};
pub use slice::{AddressType, Endpoint, EndpointPort, EndpointSlice, SliceContent};

/// Metadata that the rules read, of an object of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub name: ObjectName,
    /// UID. An object that was deleted and created again under the same name has a new UID.
    pub uid: Uid,
    /// resourceVersion, used as the precondition of writes. Only one rule reads this number: the order of claims that
    /// were created in the same second ([`crate::hub::claims`]).
    pub resource_version: u64,
    /// `metadata.generation`; 0 for kinds without a generation, such as Service.
    pub generation: i64,
    /// creationTimestamp, in whole seconds.
    pub created: Timestamp,
    /// True if the object has a deletionTimestamp, so that only its finalizers keep it.
    pub deleting: bool,
    pub finalizers: Finalizers,
}

/// Finalizers of an object. fleetnet adds and removes only its own finalizer for this kind, and never changes other
/// finalizers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finalizers {
    /// True if fleetnet's cleanup finalizer for this kind is present.
    pub ours: bool,
    /// All other finalizers, in order.
    pub others: Vec<Text>,
}

impl Finalizers {
    /// Returns the list with our finalizer.
    #[must_use]
    pub fn with_ours(&self) -> Self {
        Self { ours: true, others: self.others.clone() }
    }

    /// Returns the list without our finalizer.
    #[must_use]
    pub fn without_ours(&self) -> Self {
        Self { ours: false, others: self.others.clone() }
    }
}

/// Port of a Service, a ServiceImport or an InternalServiceExport.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// Name of the port; empty if the only port has no name.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    pub app_protocol: Option<Text>,
    pub port: PortNumber,
    /// Target port of the Service (port of the pods).
    pub target_port: Option<TargetPort>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetPort {
    Number(PortNumber),
    Name(Text),
}

/// Address family of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpFamily {
    IPv4,
    IPv6,
}

/// `spec.sessionAffinity` of a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAffinity {
    /// Connections go to any endpoint.
    #[default]
    None,
    /// Connections from one client address go to one endpoint.
    ClientIp {
        /// Time that an idle client keeps its endpoint, in seconds.
        timeout_seconds: i32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceType {
    ClusterIp,
    NodePort,
    LoadBalancer,
    ExternalName,
}

/// `status.loadBalancer` of a Service or MultiClusterService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerStatus {
    pub ingress: Vec<LoadBalancerIngress>,
}

/// Address of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerIngress {
    pub ip: Option<Text>,
    pub hostname: Option<Text>,
    pub ip_mode: Option<Text>,
    pub ports: Vec<LoadBalancerPort>,
}

/// Port of a load balancer's address, with its error if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerPort {
    pub port: PortNumber,
    pub protocol: Text,
    pub error: Option<Text>,
}

/// Service (core/v1): a Service of a user, or a derived Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub meta: Meta,
    /// `spec.type`.
    pub service_type: ServiceType,
    /// True if `spec.clusterIP` is `None`.
    pub headless: bool,
    /// `spec.ports`, in order.
    pub ports: Vec<ServicePort>,
    /// `spec.sessionAffinity` with its timeout.
    pub session_affinity: SessionAffinity,
    /// True if `spec.ipFamilyPolicy` requests both address families.
    pub dual_stack: bool,
    /// `spec.ipFamilies`.
    pub families: Vec<IpFamily>,
    /// True if it has `spec.selector` or `spec.externalIPs`.
    pub has_selector_or_external_ips: bool,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: Option<Text>,
    /// True if `spec.externalTrafficPolicy` is `Local`.
    pub is_external_policy_local: bool,
    /// `spec.trafficDistribution`.
    pub traffic_distribution: Option<Text>,
    /// Name of the Service of the standard API that the member agent derived this Service for, by its labels.
    pub imports: Option<Text>,
    /// `spec.clusterIPs`.
    pub cluster_ips: Vec<Text>,
    /// MultiClusterService that this Service is derived from, according to its two labels.
    pub derived_from: Option<ObjectName>,
    /// True if another writer edited the labels of this derived Service. [`crate::member::View`] sets this field.
    pub relabelled: bool,
    /// True if an annotation of a cloud provider requests an internal load balancer for the Service.
    pub internal_load_balancer: bool,
    /// `status.loadBalancer`.
    pub load_balancer: LoadBalancerStatus,
}

/// A `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub condition_type: Text,
    pub status: ConditionStatus,
    pub reason: Text,
    pub message: Text,
    pub observed_generation: i64,
    pub last_transition: Timestamp,
}

/// User's request to export the Service with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceExport {
    pub meta: Meta,
    /// Value of the weight annotation, unparsed.
    pub weight: Option<Text>,
    /// True if an annotation requests the export although the Service is headless.
    pub headless: bool,
    /// All conditions, in their order: the agent's conditions, such as `Valid` and `Conflict`, and conditions of other
    /// writers.
    pub conditions: Vec<Condition>,
}

/// Entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Uid,
    pub controller: bool,
    pub block_owner_deletion: bool,
}

/// Type of an imported Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportType {
    #[default]
    ClusterSetIp,
    Headless,
}

/// Status of a ServiceImport or InternalServiceImport: the outcome of conflict resolution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportStatus {
    /// Type of the import; `None` until conflicts are resolved.
    pub import_type: Option<ImportType>,
    /// Ports of the winning export.
    pub ports: Vec<ServicePort>,
    /// Session affinity of the winning export.
    pub session_affinity: SessionAffinity,
    /// Clusters of the accepted exports. The cluster of the winning export comes first.
    pub clusters: Vec<ClusterId>,
}

impl ImportStatus {
    /// True if the imported Service is headless.
    pub fn is_headless(&self) -> bool {
        self.import_type == Some(ImportType::Headless)
    }
}

/// Importers of a Service: the `service-in-use-by` annotation of the hub's ServiceImport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// True if the annotation is present, also if it is malformed.
    pub present: bool,
    /// Map from the member namespace of each importer to the importer's cluster id. Empty if the annotation is
    /// malformed.
    pub importers: BTreeMap<MemberNamespace, ClusterId>,
    /// Member namespace of the granted exclusive claim. Not written if this claim is the only granted claim. The type
    /// in a claim does not prove that the claim is the exclusive claim, because the importing member can change the
    /// type.
    pub load_balancer: Option<MemberNamespace>,
}

/// ServiceImport. In the hub: the result of merging all accepted exports of a Service. In a member: the copy of the
/// hub's ServiceImport for a MultiClusterService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceImport {
    pub meta: Meta,
    /// All owner references, in order. In a member, the controlling owner is the MultiClusterService.
    pub owners: Vec<Owner>,
    /// Importers with a granted claim. Empty in members, because only the hub's ServiceImport records claims.
    pub claims: Claims,
    /// Outcome of conflict resolution.
    pub status: ImportStatus,
    /// Conditions in the status of the hub's ServiceImport.
    pub conditions: Vec<Condition>,
}

impl ServiceImport {
    /// Returns the owner reference that is marked as the controller.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

/// Type of an import (`MultiClusterService.spec.type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsumerType {
    /// `LoadBalancer` or unset: an exclusive claim.
    #[default]
    LoadBalancer,
    /// `ClusterIP`: a shared claim.
    ClusterIp,
}

/// User's request for an internal load balancer. The greatest of several requests is used: a load balancer is public
/// only if no annotation asks for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InternalLoadBalancer {
    #[default]
    NotRequested,
    /// The value of the annotation is neither true nor false, so the request is not known.
    Malformed,
    Requested,
}

/// User's request to import a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiClusterService {
    pub meta: Meta,
    /// `spec.serviceImport.name`; empty if omitted, which the CRD's schema allows.
    pub import_name: Text,
    /// `spec.type`.
    pub consumer_type: ConsumerType,
    /// Request of the user for an internal load balancer of the derived Service.
    pub internal_load_balancer: InternalLoadBalancer,
    /// Value of the label that contains the name of the ServiceImport; `None` without the label.
    pub import_label: Option<Text>,
    /// Value of the label that contains the name of the derived Service; `None` without the label.
    pub derived_label: Option<Text>,
    /// Weights of the exporting clusters for this importer, by the annotation `networking.fleet.azure.com/weights`.
    pub weights: Weights,
    /// All conditions, in their order.
    pub conditions: Vec<Condition>,
    /// `status.loadBalancer`.
    pub load_balancer: LoadBalancerStatus,
    /// Cluster selectors of the user, in an annotation.
    pub cluster_selectors: WrittenSelectors,
}

impl MultiClusterService {
    /// Returns the creation time of a MultiClusterService that requests a load balancer; `None` if it requests none.
    pub fn load_balancer_requested_since(&self) -> Option<Timestamp> {
        let is_request = !self.meta.deleting && !self.import_name.is_empty();
        (is_request && self.consumer_type == ConsumerType::LoadBalancer).then_some(self.meta.created)
    }

    /// Returns the name of the ServiceImport that the user requests.
    pub fn import(&self) -> ObjectName {
        ObjectName::new(self.meta.name.namespace.clone(), self.import_name.clone())
    }
}

/// Properties of a cluster: names with values, as the ClusterProperties of KEP-2149 are. Selectors choose clusters by
/// them.
pub type Properties = BTreeMap<Text, Text>;

/// Property of this cluster as an object (KEP-2149). Its name is that of the property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterProperty {
    pub meta: Meta,
    pub value: Text,
}

/// Node of this cluster, metadata only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub meta: Meta,
    pub region: Option<Text>,
    pub zone: Option<Text>,
}

/// A Namespace of the hub, metadata only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Metadata; `name.namespace` is empty.
    pub meta: Meta,
    /// Cluster ids that may export from this namespace, according to its annotation. `None` allows all members.
    pub exporters: Option<BTreeSet<ClusterId>>,
    /// Cluster ids that may import from this namespace, according to its annotation. `None` allows all members.
    pub importers: Option<BTreeSet<ClusterId>>,
    /// Addresses that the member of this namespace may export, according to its annotation.
    pub source_ranges: SourceRanges,
    /// Properties that the operator sets for the member of this namespace, according to its annotation; or why the
    /// annotation is malformed.
    pub properties: Result<Properties, Text>,
    /// True if the label `fleetnet/import` of a member's namespace lets it import Services of the standard API.
    pub is_importing: bool,
}

impl Namespace {
    /// Returns the cluster ids in an annotation that lists exporters or importers, separated by commas. An empty list
    /// allows no cluster.
    pub fn clusters(annotation: &str) -> BTreeSet<ClusterId> {
        annotation.split(',').map(str::trim).filter(|cluster| !cluster.is_empty()).map(ClusterId::from).collect()
    }
}
