//! Objects as the agents know them: compact values, one struct for each kind.
//!
//! They have only the fields that a rule reads. Fields of other writers are omitted on purpose: every change is a merge patch
//! of our own fields, so omitted fields are not lost.

mod hub;
mod object;
mod slice;

use fleetnet_types::{ObjectName, Text, Timestamp, Uid};
use std::collections::{BTreeMap, BTreeSet};

pub use hub::{
    Announcement, HubSlice, HubSliceSpec, InternalServiceExport, InternalServiceImport, MemberAgent, MemberCounts,
    PortsOffered, Reference, Renewal,
};
pub use object::Object;
pub use slice::{AddressType, Endpoint, EndpointPort, EndpointSlice, SliceContent};

/// Kinds that the agents watch and write. Each agent watches a kind in one cluster only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Service,
    EndpointSlice,
    ServiceExport,
    ServiceImport,
    MultiClusterService,
    InternalServiceExport,
    InternalServiceImport,
    EndpointSliceExport,
    EndpointSliceImport,
    Namespace,
    MemberAgent,
}

/// Metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub name: ObjectName,
    /// UID; an object that was created again under an old name has another.
    pub uid: Uid,
    /// Version for preconditions. It is ignored by all rules except one: the order of claims that are created in one second
    /// ([`crate::hub::claims`]).
    pub resource_version: u64,
    /// Number of changes of the specification; 0 for kinds without it (Service).
    pub generation: i64,
    /// creationTimestamp, in whole seconds.
    pub created: Timestamp,
    /// True if it has a deletionTimestamp and waits for its finalizers.
    pub deleting: bool,
    pub finalizers: Finalizers,
}

/// Finalizers of an object: the one of fleet-networking for this kind, and those of others, which stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finalizers {
    /// True if the cleanup finalizer of this kind is present.
    pub ours: bool,
    /// All other finalizers, in order.
    pub others: Vec<Text>,
}

impl Finalizers {
    /// Returns the list with our finalizer added or removed.
    #[must_use]
    pub fn with_ours(&self, ours: bool) -> Self {
        Self { ours, others: self.others.clone() }
    }
}

/// Port of a Service, a ServiceImport or an InternalServiceExport.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// Empty if the only port has no name.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    pub app_protocol: Option<Text>,
    /// 1 to 65535.
    pub port: i32,
    /// Port of the pods.
    pub target_port: Option<TargetPort>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetPort {
    Number(i32),
    Name(Text),
}

/// Session affinity of a Service.
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
    pub port: i32,
    pub protocol: Text,
    pub error: Option<Text>,
}

/// A core Service: one that may be exported, or a derived Service.
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
    /// True if `spec.ipFamilyPolicy` asks for both address families.
    pub dual_stack: bool,
    /// MultiClusterService that it is derived from, from its two labels.
    pub derived_from: Option<ObjectName>,
    /// True if another writer edited its labels; [`crate::member::View`] sets it.
    pub relabelled: bool,
    /// True if it has the cloud's annotation for an internal load balancer.
    pub internal_load_balancer: bool,
    /// `status.loadBalancer`.
    pub load_balancer: LoadBalancerStatus,
}

/// A `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub condition_type: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    pub reason: Text,
    pub message: Text,
    pub observed_generation: i64,
    pub last_transition: Timestamp,
}

/// User's request to export the Service with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceExport {
    pub meta: Meta,
    /// Weight annotation, unparsed.
    pub weight: Option<Text>,
    /// True if its annotation asks to export a headless Service.
    pub headless: bool,
    /// All conditions, in their order: `Valid`, `Conflict` and those of others.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportType {
    ClusterSetIp,
    Headless,
}

/// Status of ServiceImport and InternalServiceImport: the outcome of conflict resolution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportStatus {
    /// `None` until resolved.
    pub import_type: Option<ImportType>,
    /// Ports of the winner.
    pub ports: Vec<ServicePort>,
    /// Session affinity of the winner.
    pub session_affinity: SessionAffinity,
    /// Clusters of the accepted exports, in order of acceptance.
    pub clusters: Vec<Text>,
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
    /// Member namespace of each importer to its cluster id; empty if the annotation is malformed.
    pub importers: BTreeMap<Text, Text>,
    /// Member namespace of the exclusive claim, if there are other claims. The claims themselves do not prove their type, since
    /// their members can write them.
    pub load_balancer: Option<Text>,
}

/// A ServiceImport: in a member for a MultiClusterService, in the hub for exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceImport {
    pub meta: Meta,
    /// All owners, in order. The controller is a MultiClusterService, in members only.
    pub owners: Vec<Owner>,
    /// Importers, in the hub only.
    pub claims: Claims,
    /// Outcome of conflict resolution.
    pub status: ImportStatus,
}

impl ServiceImport {
    /// Returns the controlling owner.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

/// Type of consumption of an import (`MultiClusterService.spec.type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsumerType {
    /// Unset or `LoadBalancer`: an exclusive claim.
    #[default]
    LoadBalancer,
    /// `ClusterIP`: a shared claim.
    ClusterIp,
}

/// User's request to import a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiClusterService {
    pub meta: Meta,
    /// `spec.serviceImport.name`; empty if omitted, which the schema allows.
    pub import_name: Text,
    /// `spec.type`.
    pub consumer_type: ConsumerType,
    /// True if the derived Service must have an internal load balancer.
    pub internal_load_balancer: bool,
    /// Label with the name of the import.
    pub import_label: Option<Text>,
    /// Label with the name of the derived Service.
    pub derived_label: Option<Text>,
    /// All conditions, in their order.
    pub conditions: Vec<Condition>,
    /// `status.loadBalancer`.
    pub load_balancer: LoadBalancerStatus,
}

/// A Namespace of the hub, metadata only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Metadata; `name.namespace` is empty.
    pub meta: Meta,
    /// Clusters that may export from it, from its annotation; `None`: all.
    pub exporters: Option<BTreeSet<Text>>,
    /// Clusters that may import from it, from its annotation; `None`: all.
    pub importers: Option<BTreeSet<Text>>,
}

impl Namespace {
    /// Parses one of the two annotations: cluster ids, separated by commas. An empty list allows no cluster.
    pub fn clusters(annotation: &str) -> BTreeSet<Text> {
        // fault T9.1: .filter(|cluster| !cluster.is_empty()) ~>
        annotation.split(',').map(str::trim).filter(|cluster| !cluster.is_empty()).map(Text::from).collect()
    }
}
