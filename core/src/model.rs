//! What the agents know of each object: compact values, one struct per kind.
//!
//! They hold only what a rule reads. Fields that others own are left out on purpose: every change is a merge patch of
//! owned fields, so what is not held is not lost.

mod hub;
mod object;
mod slice;

use crate::ids::{ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

pub use hub::{
    Announcement, HubSlice, HubSliceSpec, InternalServiceExport, InternalServiceImport, MemberAgent, MemberCounts,
    PortsOffered, Reference, Renewal,
};
pub use object::Object;
pub use slice::{AddressType, Endpoint, EndpointPort, EndpointSlice, SliceContent};

/// The kinds that the agents watch and write. In one agent each kind is watched in one cluster only.
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

/// What every object has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Where it is.
    pub name: ObjectName,
    /// Its identity: a new object under an old name has another.
    pub uid: Text,
    /// The version held, for preconditions. Two objects that differ in it only are the same to every rule but one: it orders
    /// new claims of one second ([`crate::claims`]).
    pub resource_version: u64,
    /// Counts changes of the specification; 0 where the kind has none (Service).
    pub generation: i64,
    /// When it was made, whole seconds.
    pub created: Timestamp,
    /// It has a deletionTimestamp and waits for its finalizers.
    pub deleting: bool,
    /// Who waits to clean up behind it.
    pub finalizers: Finalizers,
}

/// The finalizers of an object: the one of fleet-networking for this kind, and those of others, kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finalizers {
    /// Whether the cleanup finalizer of this kind (spec 2.1) is there.
    pub ours: bool,
    /// All others, in their order.
    pub others: Vec<Text>,
}

impl Finalizers {
    /// The same with ours added or removed.
    #[must_use]
    pub fn with_ours(&self, ours: bool) -> Self {
        Self { ours, others: self.others.clone() }
    }
}

/// A port of a Service, an import or an internal export.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// Empty where the only port has no name.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    /// Application protocol hint.
    pub app_protocol: Option<Text>,
    /// 1 to 65535.
    pub port: i32,
    /// Where the pods listen.
    pub target_port: Option<TargetPort>,
}

/// A target port: number or name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetPort {
    Number(i32),
    Name(Text),
}

/// Whether one client of a Service keeps to one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAffinity {
    /// Any connection goes to any endpoint.
    #[default]
    None,
    /// Connections from one client address go to one endpoint.
    ClientIp {
        /// How long an idle client keeps its endpoint, in seconds.
        timeout_seconds: i32,
    },
}

/// Type of a core Service.
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
    /// Its addresses.
    pub ingress: Vec<LoadBalancerIngress>,
}

/// One address of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadBalancerIngress {
    pub ip: Option<Text>,
    pub hostname: Option<Text>,
    pub ip_mode: Option<Text>,
    pub ports: Vec<LoadBalancerPort>,
}

/// A port of a load balancer address, with its error if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerPort {
    pub port: i32,
    pub protocol: Text,
    pub error: Option<Text>,
}

/// A core Service: one that may be exported, or one that we derived for an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Metadata.
    pub meta: Meta,
    /// `spec.type`.
    pub service_type: ServiceType,
    /// `spec.clusterIP` is `None`.
    pub headless: bool,
    /// `spec.ports`, in order.
    pub ports: Vec<ServicePort>,
    /// `spec.sessionAffinity` with its timeout.
    pub session_affinity: SessionAffinity,
    /// `spec.ipFamilyPolicy` asks for both address families.
    pub dual_stack: bool,
    /// The MultiClusterService that it is derived from, from its two labels.
    pub derived_from: Option<ObjectName>,
    /// The labels say otherwise than they did: somebody edited them. [`crate::member::View`] finds that out.
    pub relabelled: bool,
    /// It carries the cloud annotation for an internal load balancer.
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

/// A user's wish to export the Service of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceExport {
    /// Metadata.
    pub meta: Meta,
    /// The weight annotation, as written.
    pub weight: Option<Text>,
    /// Its annotation asks that a headless Service be exported too.
    pub headless: bool,
    /// All conditions, in their order: `Valid`, `Conflict` and those of others.
    pub conditions: Vec<Condition>,
}

/// A reference to an owner in `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Text,
    pub controller: bool,
    pub block_owner_deletion: bool,
}

/// Type of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportType {
    ClusterSetIp,
    Headless,
}

/// Status of ServiceImport and InternalServiceImport: what the exports of a Service were resolved to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportStatus {
    /// Absent until resolved.
    pub import_type: Option<ImportType>,
    /// The winner's ports.
    pub ports: Vec<ServicePort>,
    /// The winner's session affinity.
    pub session_affinity: SessionAffinity,
    /// Accepted exporters, in the order in which they were accepted.
    pub clusters: Vec<Text>,
}

impl ImportStatus {
    /// The imported Service stands for its endpoints only.
    pub fn is_headless(&self) -> bool {
        self.import_type == Some(ImportType::Headless)
    }
}

/// Who imports a Service: the `service-in-use-by` annotation of the hub's ServiceImport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The annotation is there, readable or not.
    pub present: bool,
    /// Hub namespace of the importer to its cluster id; empty where the annotation cannot be read.
    pub importers: BTreeMap<Text, Text>,
    /// Hub namespace of the one that imports it with type LoadBalancer, where there are others beside it: their claims say of
    /// what type they are, and stand where their members may write.
    pub load_balancer: Option<Text>,
}

/// A ServiceImport, in a member (made for a MultiClusterService) or in the hub (made for exports).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceImport {
    /// Metadata.
    pub meta: Meta,
    /// All owners, in order; the controlling one is a MultiClusterService (member only).
    pub owners: Vec<Owner>,
    /// Who imports it (hub only).
    pub claims: Claims,
    /// What the exports were resolved to.
    pub status: ImportStatus,
}

impl ServiceImport {
    /// The controlling owner.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

/// How an import is to be consumed (`MultiClusterService.spec.type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsumerType {
    /// Unset or `LoadBalancer`: one claimer in the fleet.
    #[default]
    LoadBalancer,
    /// `ClusterIP`: east-west, any number of claimers.
    ClusterIp,
}

/// A user's wish to import a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiClusterService {
    /// Metadata.
    pub meta: Meta,
    /// `spec.serviceImport.name`; empty where it was left out (the schema admits that).
    pub import_name: Text,
    /// `spec.type`.
    pub consumer_type: ConsumerType,
    /// The derived Service is to get an internal load balancer.
    pub internal_load_balancer: bool,
    /// Label that remembers the imported name.
    pub import_label: Option<Text>,
    /// Label that names the derived Service.
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
    /// The clusters that may export from it, from its annotation; absent: all.
    pub exporters: Option<BTreeSet<Text>>,
    /// The clusters that may import from it, from its annotation; absent: all.
    pub importers: Option<BTreeSet<Text>>,
}

impl Namespace {
    /// Reads one of the two annotations: cluster ids, separated by commas. One that is there and names nobody means nobody.
    pub fn clusters(annotation: &str) -> BTreeSet<Text> {
        // fault T9.1: .filter(|cluster| !cluster.is_empty()) ~>
        annotation.split(',').map(str::trim).filter(|cluster| !cluster.is_empty()).map(Text::from).collect()
    }
}
