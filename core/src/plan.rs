//! Plans: data that describes writes, their preconditions, and the time of the next plan of the same key.

mod event;
mod sample;

use crate::model::{
    AgentStatus, ClusterSelection, ClusterSelector, Condition, ConsumerType, Finalizers, HubSliceSpec, ImportStatus,
    Kind, LoadBalancerStatus, McsExport, McsImportSpec, McsImportStatus, McsLabels, McsProperties, MemberStatus,
    MergedImport, Meta, Owner, Place, PortSetStamp, Reference, Renewal, ServicePort, SessionAffinity, SliceContent,
};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text, Timestamp, Uid};
use std::sync::Arc;

pub(crate) use event::event;
pub use event::{Event, event_about};
pub use sample::Sample;

/// Plan of one key.
///
/// The writes of a plan do not depend on each other: the agent may make them in any order, at once, or only in part. A
/// write that depends on the result of another write is in a later plan, made when this result is in the view. So after
/// a crash between two writes, the next plan completes or reverts the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub writes: Vec<Write>,
    /// Time of the next plan of this key, even if no object changes until then.
    pub again: Option<Timestamp>,
    /// Blocking reasons: what stops progress until a user acts. For the log and a metric.
    pub blocking_reasons: Vec<BlockingReason>,
    /// Message of the hub agent about the distributed slice of the key, to its importer over the slice stream.
    pub preview: Option<Preview>,
    /// Generation of the source slice whose preview the importer has imported. The member agent acknowledges it over
    /// the slice stream.
    pub acknowledged: Option<i64>,
    /// Result of a check of the member of the key, to remember for the next check.
    pub check: Option<Check>,
}

/// Result of a check of a member that is overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The first check. The hub agent checks twice before it judges.
    First,
    /// The plan writes a judgement.
    Judged,
    /// The silence of most members has ended, so each member has its full time again.
    Forgiven,
}

/// Message about a distributed slice over the slice stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preview {
    /// New content. The hub agent writes it to the object later.
    Show(HubSliceSpec),
    /// The importer has a preview with a newer generation of the source slice than is valid now. The end of its stream
    /// drops it.
    EndStream,
}

impl Plan {
    pub fn one(write: Write) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }

    /// Returns a plan with these writes, perhaps none.
    pub(crate) fn of(writes: impl IntoIterator<Item = Write>) -> Self {
        Self { writes: writes.into_iter().collect(), ..Self::default() }
    }

    /// Returns a plan without writes that only reports a blocking reason.
    pub fn blocked(reason: Reason, message: String) -> Self {
        Self { blocking_reasons: vec![BlockingReason { reason, message }], ..Self::default() }
    }

    #[must_use]
    pub(crate) fn blocked_by(mut self, blocking_reasons: impl IntoIterator<Item = BlockingReason>) -> Self {
        self.blocking_reasons.extend(blocking_reasons);
        self
    }

    /// Returns the plan of an object that is being deleted and keeps its finalizer: `undecodable` may be the object
    /// that the agent created for it. The plan has no writes, only a blocking reason.
    pub(crate) fn blocked_by_undecodable(kind: Kind, name: &ObjectName, by: Kind, undecodable: &ObjectName) -> Self {
        let message = format!(
            "{kind:?} {name} is being deleted and keeps its finalizer, because {by:?} {undecodable} was created for \
             it and is undecodable. Repair or delete that object"
        );
        Self::blocked(Reason::ObjectUnreadable, message)
    }

    pub fn push(&mut self, write: Write) {
        self.writes.push(write);
    }

    /// Requests that the key is planned again at this time, or at an earlier time that was already requested. `None`
    /// requests nothing.
    pub fn plan_again_at(&mut self, at: impl Into<Option<Timestamp>>) {
        self.again = [self.again, at.into()].into_iter().flatten().min();
    }

    /// Adds the writes, blocking reasons and messages of another plan of the same key. Of the two times of the next
    /// plan, the earlier stays.
    pub fn join(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.plan_again_at(other.again);
        self.blocking_reasons.extend(other.blocking_reasons);
        self.preview = self.preview.take().or(other.preview);
        self.acknowledged = self.acknowledged.or(other.acknowledged);
        self.check = self.check.or(other.check);
    }

    /// Returns this plan joined with another plan of the same key.
    #[must_use]
    pub(crate) fn joined(mut self, other: Self) -> Self {
        self.join(other);
        self
    }
}

/// Blocking reason: what stops progress until a user acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingReason {
    pub reason: Reason,
    /// Message for the operator: the object, the cause and the next step.
    pub message: String,
}

/// Write to one object: create, patch or delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub at: ObjectName,
    /// Action, which also determines the kind of the object.
    pub action: Action,
    /// Events to emit after the write, if the write changed the object.
    pub events: Vec<Event>,
    /// Latency sample to observe after the write.
    pub sample: Option<Sample>,
}

impl Write {
    fn new(at: ObjectName, action: Action) -> Self {
        Self { at, action, events: Vec::new(), sample: None }
    }

    pub fn create(at: ObjectName, desired: Desired) -> Self {
        Self::new(at, Action::Create(desired))
    }

    /// Returns a write that changes the agent's fields of an object, with the known resourceVersion as the
    /// precondition.
    pub fn patch(meta: &Meta, patch: Patch) -> Self {
        Self::new(meta.name.clone(), Action::Patch { resource_version: meta.resource_version, patch })
    }

    /// Returns a write that deletes an object, with its known UID as the precondition.
    pub fn delete(kind: Kind, meta: &Meta) -> Self {
        Self::new(meta.name.clone(), Action::Delete { kind, uid: meta.uid.clone() })
    }

    /// Returns a write that adds our cleanup finalizer to an object.
    pub fn add_finalizer(kind: Kind, meta: &Meta) -> Self {
        Self::patch(meta, Patch::Finalizers { kind, finalizers: meta.finalizers.with_ours() })
    }

    /// Returns a write that removes our cleanup finalizer from an object.
    pub fn remove_finalizer(kind: Kind, meta: &Meta) -> Self {
        Self::patch(meta, Patch::Finalizers { kind, finalizers: meta.finalizers.without_ours() })
    }

    /// Returns the kind of the object, which also determines the cluster (hub or member).
    pub fn kind(&self) -> Kind {
        match &self.action {
            Action::Create(desired) => desired.kind(),
            Action::Patch { patch, resource_version: _ } => patch.kind(),
            Action::Delete { kind, uid: _ } => *kind,
        }
    }

    /// Adds Events to emit with this write.
    #[must_use]
    pub fn with_events(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.events.extend(events);
        self
    }

    /// Adds a latency sample to observe with this write.
    #[must_use]
    pub fn measured(mut self, sample: Option<Sample>) -> Self {
        self.sample = sample;
        self
    }
}

/// Operation of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// POST. The response AlreadyExists is no failure: it shows that another object has the name.
    Create(Desired),
    /// Merge patch with the known resourceVersion as the precondition.
    Patch {
        resource_version: u64,
        /// Fields to change. The agent owns all of these fields.
        patch: Patch,
    },
    /// DELETE with the UID as precondition.
    Delete { kind: Kind, uid: Uid },
}

/// Content of an object to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Desired {
    InternalServiceExport {
        /// Reference to the source Service. Its resourceVersion is also written to the last-observed annotation.
        reference: Reference,
        content: ExportContent,
    },
    EndpointSliceExport(HubSliceSpec),
    EndpointSliceImport(HubSliceSpec),
    /// ServiceImport. A ServiceImport of a member is created with a controller and the cleanup finalizer. The
    /// ServiceImport of the hub is created without both.
    ServiceImport {
        /// MultiClusterService that controls the ServiceImport.
        controller: Option<Controller>,
        /// True if the object is created with our cleanup finalizer.
        finalizer: bool,
    },
    InternalServiceImport {
        /// Reference to the member's ServiceImport.
        reference: Reference,
        /// Type of the claim, written as an annotation unless it is LoadBalancer.
        consumer_type: ConsumerType,
    },
    Service(DerivedService),
    EndpointSlice(ImportedSlice),
    MemberAgent(Renewal),
    MergedServiceImport {
        /// Exported Service.
        service: ObjectName,
        import: Arc<MergedImport>,
        selection: ClusterSelection,
    },
    /// Service that the member agent derives for an imported Service of the standard API.
    McsService(McsDerivedService),
    McsServiceImport(McsImportSpec),
}

impl Desired {
    /// Returns the kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            Self::InternalServiceExport { .. } => Kind::InternalServiceExport,
            Self::EndpointSliceExport(_) => Kind::EndpointSliceExport,
            Self::EndpointSliceImport(_) => Kind::EndpointSliceImport,
            Self::ServiceImport { .. } => Kind::ServiceImport,
            Self::InternalServiceImport { .. } => Kind::InternalServiceImport,
            Self::Service(_) | Self::McsService(_) => Kind::Service,
            Self::McsServiceImport(_) => Kind::McsServiceImport,
            Self::EndpointSlice(_) => Kind::EndpointSlice,
            Self::MemberAgent(_) => Kind::MemberAgent,
            Self::MergedServiceImport { .. } => Kind::MergedServiceImport,
        }
    }
}

/// Content of a Service that is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportContent {
    /// Ports in the order of the Service.
    pub ports: Vec<ServicePort>,
    /// True if the Service is headless.
    pub headless: bool,
    pub session_affinity: SessionAffinity,
    /// Part for the standard API; `None` if the standard API does not export the Service.
    pub mcs: Option<Arc<McsExport>>,
    /// Weight of the ServiceExport; `None` leaves it as it is.
    pub weight: Option<i64>,
}

/// MultiClusterService that controls a ServiceImport in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    pub name: Text,
    pub uid: Uid,
}

/// Desired state of a derived Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedService {
    /// MultiClusterService that the Service is derived from, written as two labels.
    pub derived_from: ObjectName,
    /// Type of the derived Service: LoadBalancer or ClusterIP.
    pub consumer_type: ConsumerType,
    /// Ports of the ServiceImport. The API server chooses node ports.
    pub ports: Vec<ServicePort>,
    /// True for a headless Service. Then the type is ClusterIP.
    pub headless: bool,
    /// Session affinity of the ServiceImport.
    pub session_affinity: SessionAffinity,
    /// True to request addresses of both IP families, if the cluster has both. A dual-stack Service stays dual-stack.
    pub dual_stack: bool,
    /// True to request an internal load balancer from the cloud.
    pub internal_load_balancer: bool,
}

/// Desired state of a Service that is derived for an imported Service of the standard API. Its type is ClusterIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McsDerivedService {
    /// Name of the imported Service, in the same namespace.
    pub service: Text,
    pub ports: Vec<ServicePort>,
    pub session_affinity: SessionAffinity,
    /// True to request addresses of both families, if the cluster has both. The first family is always the default of
    /// the cluster, because it is immutable.
    pub dual_stack: bool,
}

/// Desired state of an imported slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedSlice {
    /// Name of the derived Service in the same namespace; `None` for a headless Service of the standard API.
    pub service: Option<Text>,
    /// Labels of the standard API, if this API imports the slice.
    pub mcs: Option<McsLabels>,
    /// Content of the distributed slice. The standard API imports only the ports that the exporting cluster serves.
    pub content: SliceContent,
    /// Generation of the source slice, stored on the imported slice so that the agent observes the latency of this
    /// generation only once.
    pub observed_generation: i64,
}

/// Fields to set in an existing object. Each variant is one request to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patch {
    /// `metadata.finalizers`, of an object of any kind.
    Finalizers {
        kind: Kind,
        finalizers: Finalizers,
    },
    /// `status.conditions` of a ServiceExport. The patch replaces the list, so it includes the conditions of other
    /// writers.
    ServiceExportConditions(Vec<Condition>),
    /// `status.conditions` of a ServiceExport of the standard API, with the conditions of other writers.
    McsServiceExportConditions(Vec<Condition>),
    /// Service that is derived for an imported Service of the standard API.
    McsService(McsDerivedService),
    /// ServiceImport of the standard API. `recorded` are the labels and annotations that it has from exports now.
    McsServiceImport {
        spec: McsImportSpec,
        recorded: McsProperties,
    },
    /// Status of a ServiceImport of the standard API, with the conditions of other writers.
    McsServiceImportStatus(McsImportStatus),
    /// Content and reference of an InternalServiceExport, and its last-observed annotation.
    InternalServiceExport {
        reference: Reference,
        content: ExportContent,
    },
    InternalServiceExportStamp {
        /// Finalizers to set, ours included.
        finalizers: Finalizers,
        stamp: PortSetStamp,
    },
    /// `status.conditions` of an InternalServiceExport.
    InternalServiceExportConditions(Vec<Condition>),
    /// `status` of an InternalServiceExport that is part of a merged import.
    InternalServiceExportMerge {
        conditions: Vec<Condition>,
        precedence: Vec<Place>,
    },
    EndpointSliceExport(HubSliceSpec),
    EndpointSliceImport(HubSliceSpec),
    /// Finalizers and labels of a MultiClusterService; a label with `None` is removed.
    MultiClusterService {
        finalizers: Finalizers,
        /// Label `service-import`.
        import_label: Option<Text>,
        /// Label `derived-service`.
        derived_label: Option<Text>,
    },
    /// `status` of a MultiClusterService.
    MultiClusterServiceStatus {
        conditions: Vec<Condition>,
        /// Load balancer status of the derived Service, copied to the MultiClusterService.
        load_balancer: LoadBalancerStatus,
    },
    /// Owners and finalizers of a member's ServiceImport that has no controller. The patch adds a controller.
    ServiceImportOwners {
        /// Owner references that the object already has.
        others: Vec<Owner>,
        /// MultiClusterService that becomes the controller.
        controller: Controller,
        /// Finalizers to set, ours included.
        finalizers: Finalizers,
    },
    ServiceImportStatus(ImportStatus),
    ServiceImportConditions(Vec<Condition>),
    InternalServiceImportStatus(ImportStatus),
    /// Record of granted claims on the hub's ServiceImport, and its finalizers. If there are no granted claims, the
    /// patch removes the annotation with the record.
    Claims {
        /// Map from the member namespace of each importer to the importer's cluster id.
        importers: std::collections::BTreeMap<MemberNamespace, ClusterId>,
        /// Member namespace of the exclusive claim; `None` if there is none, or if it is the only granted claim.
        load_balancer: Option<MemberNamespace>,
        /// Finalizers to set. Our finalizer is included if there is a granted claim.
        finalizers: Finalizers,
    },
    /// Service-type annotation of an InternalServiceImport. LoadBalancer is the default, so for LoadBalancer the patch
    /// removes the annotation.
    ConsumerType(ConsumerType),
    /// Selection for the importer, in an annotation of an InternalServiceImport. The patch removes the annotation if it
    /// is empty.
    ClaimSelection(ClusterSelection),
    /// Cluster selectors, in an annotation of an InternalServiceImport. The patch removes the annotation if there are
    /// none.
    ClaimSelectors(Vec<ClusterSelector>),
    /// `spec` of an InternalServiceImport, with the ServiceImport that it now belongs to.
    InternalServiceImport(Reference),
    DerivedService(DerivedService),
    ImportedSlice(ImportedSlice),
    /// `spec` of a MemberAgent.
    MemberAgent(Renewal),
    /// `status` of a MemberAgent.
    MemberAgentStatus(MemberStatus),
    /// `spec` of a MergedServiceImport.
    MergedServiceImport {
        /// Exported Service.
        service: ObjectName,
        import: Arc<MergedImport>,
        selection: ClusterSelection,
    },
    /// `status.agentStatus` of an InternalMemberCluster. The patch replaces the list, so it includes the entries of
    /// other agents.
    InternalMemberClusterStatus(Vec<AgentStatus>),
}

impl Patch {
    /// Returns the kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Finalizers { kind, finalizers: _ } => *kind,
            Self::ServiceExportConditions(_) => Kind::ServiceExport,
            Self::McsServiceExportConditions(_) => Kind::McsServiceExport,
            Self::McsService(_) => Kind::Service,
            Self::McsServiceImport { .. } | Self::McsServiceImportStatus(_) => Kind::McsServiceImport,
            Self::InternalServiceExport { .. }
            | Self::InternalServiceExportStamp { .. }
            | Self::InternalServiceExportConditions(_)
            | Self::InternalServiceExportMerge { .. } => Kind::InternalServiceExport,
            Self::EndpointSliceExport(_) => Kind::EndpointSliceExport,
            Self::EndpointSliceImport(_) => Kind::EndpointSliceImport,
            Self::MultiClusterService { .. } | Self::MultiClusterServiceStatus { .. } => Kind::MultiClusterService,
            Self::ServiceImportOwners { .. }
            | Self::ServiceImportStatus(_)
            | Self::ServiceImportConditions(_)
            | Self::Claims { .. } => Kind::ServiceImport,
            Self::InternalServiceImportStatus(_)
            | Self::ConsumerType(_)
            | Self::ClaimSelection(_)
            | Self::ClaimSelectors(_)
            | Self::InternalServiceImport(_) => Kind::InternalServiceImport,
            Self::DerivedService(_) => Kind::Service,
            Self::ImportedSlice(_) => Kind::EndpointSlice,
            Self::MemberAgent(_) | Self::MemberAgentStatus(_) => Kind::MemberAgent,
            Self::InternalMemberClusterStatus(_) => Kind::InternalMemberCluster,
            Self::MergedServiceImport { .. } => Kind::MergedServiceImport,
        }
    }
}
