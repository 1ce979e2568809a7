//! What a plan is: data that says what to write, under which precondition, and when to look again.

use crate::ids::{ObjectName, Text, Timestamp};
use crate::model::{
    Announcement, Condition, ConsumerType, Finalizers, HubSliceSpec, ImportStatus, Kind, LoadBalancerStatus,
    MemberCounts, Meta, Owner, PortsOffered, Reference, Renewal, ServicePort, SessionAffinity, SliceContent,
};
use crate::reasons::Reason;

/// What to do about one key.
///
/// The writes of one plan do not depend on each other: they may be carried out in any order, at once, or only in part.
/// What depends on an outcome is in a later plan, made when the outcome has entered the view. So a crash between any two
/// writes is finished or undone by the next plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Writes, in a fixed order.
    pub writes: Vec<Write>,
    /// When to plan this key again although nothing changed.
    pub again: Option<Timestamp>,
    /// What stands in the way and can only be mended by a user, for the log.
    pub hindrances: Vec<Hindrance>,
}

impl Plan {
    /// A plan of one write.
    pub fn one(write: Write) -> Self {
        Self { writes: vec![write], ..Self::default() }
    }

    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.again.is_none()
    }

    /// Nothing to do until a user mends something.
    pub fn hindered(reason: Reason, message: String) -> Self {
        Self { hindrances: vec![Hindrance { reason, message }], ..Self::default() }
    }

    /// The same, hindered.
    #[must_use]
    pub(crate) fn hindered_by(mut self, hindrances: impl IntoIterator<Item = Hindrance>) -> Self {
        self.hindrances.extend(hindrances);
        self
    }

    /// Nothing is let go while what cannot be read may be what stands for it elsewhere.
    pub(crate) fn held_by_unreadable(kind: Kind, name: &ObjectName, by: Kind, unreadable: &ObjectName) -> Self {
        let message = format!(
            "{kind:?} {name} is to go and is not let go: {by:?} {unreadable} was made for it by its name and cannot be read; \
             repair or delete that"
        );
        Self::hindered(Reason::ObjectUnreadable, message)
    }

    /// Adds a write.
    pub fn push(&mut self, write: Write) {
        self.writes.push(write);
    }

    /// Asks to be planned again at that time, if there is one, or earlier.
    pub fn look_again(&mut self, at: impl Into<Option<Timestamp>>) {
        // fault U7.3: [self.again, at.into()].into_iter().flatten().min( ~> self.again.or(at.into()
        self.again = [self.again, at.into()].into_iter().flatten().min();
    }

    /// Adds what another plan says.
    pub fn join(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.look_again(other.again);
        self.hindrances.extend(other.hindrances);
    }
}

/// What stands in the way of a plan until a user mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    /// Why.
    pub reason: Reason,
    /// The object, the cause and the remedy.
    pub message: String,
}

/// One write to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What is written; the cluster follows from it.
    pub kind: Kind,
    /// Where.
    pub at: ObjectName,
    /// How.
    pub action: Action,
    /// What to tell the user once it is done (an event only where something changed).
    pub events: Vec<Event>,
    /// What to measure once it is done.
    pub sample: Option<Sample>,
}

impl Write {
    /// Makes an object.
    pub fn create(kind: Kind, at: ObjectName, desired: Desired) -> Self {
        Self { kind, at, action: Action::Create(desired), events: Vec::new(), sample: None }
    }

    /// Changes owned fields of an object, if it still has the version held.
    pub fn patch(kind: Kind, meta: &Meta, patch: Patch) -> Self {
        let action = Action::Patch { resource_version: meta.resource_version, patch };
        Self { kind, at: meta.name.clone(), action, events: Vec::new(), sample: None }
    }

    /// Deletes an object, if it still is the one held.
    pub fn delete(kind: Kind, meta: &Meta) -> Self {
        let action = Action::Delete { uid: meta.uid.clone() };
        Self { kind, at: meta.name.clone(), action, events: Vec::new(), sample: None }
    }

    /// Adds or removes the cleanup finalizer.
    pub fn finalizer(kind: Kind, meta: &Meta, ours: bool) -> Self {
        Self::patch(kind, meta, Patch::Finalizers(meta.finalizers.with_ours(ours)))
    }

    /// The same, telling the user of it.
    #[must_use]
    pub fn telling(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.events.extend(events);
        self
    }

    /// The same, measured.
    #[must_use]
    pub fn measured(mut self, sample: Option<Sample>) -> Self {
        self.sample = sample;
        self
    }
}

/// What a write does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// POST. The server's AlreadyExists is news, not a failure.
    Create(Desired),
    /// Merge patch with the version held as precondition.
    Patch {
        /// The version held.
        resource_version: u64,
        /// The owned fields.
        patch: Patch,
    },
    /// DELETE with the UID as precondition.
    Delete {
        /// The object held.
        uid: Text,
    },
}

/// An object to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Desired {
    /// Export of a Service.
    InternalServiceExport {
        /// The source; its resourceVersion also goes into the last-observed annotation.
        reference: Reference,
        /// What is offered.
        offer: Offer,
    },
    /// Export of a slice.
    EndpointSliceExport(HubSliceSpec),
    /// Copy of an exported slice for an importer.
    EndpointSliceImport(HubSliceSpec),
    /// In a member: controlled by a MultiClusterService, with the cleanup finalizer from the start. In the hub: neither.
    ServiceImport {
        /// The MultiClusterService.
        controller: Option<Controller>,
        /// Whether it starts with the cleanup finalizer.
        finalizer: bool,
    },
    /// A claim.
    InternalServiceImport {
        /// The member's ServiceImport.
        reference: Reference,
        /// Said in an annotation unless it is LoadBalancer.
        consumer_type: ConsumerType,
    },
    /// A derived Service.
    Service(DerivedService),
    /// An imported slice.
    EndpointSlice(ImportedSlice),
    /// A member's word to the hub.
    MemberAgent(Renewal),
}

/// What an export tells the hub of its Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its ports, in its order.
    pub ports: Vec<ServicePort>,
    /// It has no address of its own.
    pub headless: bool,
    /// Its session affinity.
    pub session_affinity: SessionAffinity,
}

/// The MultiClusterService that controls a ServiceImport of its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its name.
    pub name: Text,
    /// Its UID.
    pub uid: Text,
}

/// What we want of a derived Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedService {
    /// Its MultiClusterService, said in two labels.
    pub derived_from: ObjectName,
    /// LoadBalancer or ClusterIP.
    pub consumer_type: ConsumerType,
    /// The import's ports; node ports are the server's business.
    pub ports: Vec<ServicePort>,
    /// Without an address of its own, whatever its type.
    pub headless: bool,
    /// The import's.
    pub session_affinity: SessionAffinity,
    /// Asks for addresses of both families where the cluster has both; never taken back while the Service stands.
    pub dual_stack: bool,
    /// Asks the cloud for an internal load balancer.
    pub internal_load_balancer: bool,
}

/// What we want of an imported slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedSlice {
    /// Name of the derived Service, in the same namespace.
    pub service: Text,
    /// What the hub gave.
    pub content: SliceContent,
    /// Source generation, remembered so that its latency is observed once.
    pub observed_generation: i64,
}

/// Owned fields to set. Each variant is one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patch {
    /// `metadata.finalizers`, of any kind.
    Finalizers(Finalizers),
    /// `status.conditions` of a ServiceExport, whole (the list is replaced, so those of others are in it).
    ServiceExportConditions(Vec<Condition>),
    /// Offer and reference of an InternalServiceExport, and its last-observed annotation.
    InternalServiceExport {
        /// The source as it is now.
        reference: Reference,
        /// What is offered.
        offer: Offer,
    },
    /// Finalizers and stamp of an InternalServiceExport.
    InternalServiceExportStamp {
        /// With ours.
        finalizers: Finalizers,
        /// The stamp.
        offered: PortsOffered,
    },
    /// `status.conditions` of an InternalServiceExport.
    InternalServiceExportConditions(Vec<Condition>),
    /// `spec` of an EndpointSliceExport or EndpointSliceImport.
    HubSlice(HubSliceSpec),
    /// Finalizers and labels of a MultiClusterService; a label that is `None` is removed.
    MultiClusterService {
        /// With or without ours.
        finalizers: Finalizers,
        /// Label `service-import`.
        import_label: Option<Text>,
        /// Label `derived-service`.
        derived_label: Option<Text>,
    },
    /// `status` of a MultiClusterService.
    MultiClusterServiceStatus {
        /// All conditions.
        conditions: Vec<Condition>,
        /// The derived Service's.
        load_balancer: LoadBalancerStatus,
    },
    /// Owners and finalizers of a member's ServiceImport that had no controller.
    ServiceImportOwners {
        /// The owners that it has.
        others: Vec<Owner>,
        /// The MultiClusterService that takes control.
        controller: Controller,
        /// With ours.
        finalizers: Finalizers,
    },
    /// `status` of a ServiceImport or InternalServiceImport.
    ImportStatus(ImportStatus),
    /// Claims and finalizers of the hub's ServiceImport; no claim removes the annotation.
    Claims {
        /// Hub namespace to cluster id.
        importers: std::collections::BTreeMap<Text, Text>,
        /// Hub namespace of the one of type LoadBalancer, where there are others beside it.
        load_balancer: Option<Text>,
        /// With ours while there is a claim.
        finalizers: Finalizers,
    },
    /// The service-type annotation of an InternalServiceImport; LoadBalancer removes it.
    ConsumerType(ConsumerType),
    /// Owned fields of a derived Service.
    DerivedService(DerivedService),
    /// Owned fields of an imported slice.
    ImportedSlice(ImportedSlice),
    /// `spec` of a MemberAgent.
    MemberAgent(Renewal),
    /// `status` of a MemberAgent.
    MemberAgentStatus {
        /// What the hub says of itself.
        announcement: Announcement,
        /// What it counts.
        counts: Option<MemberCounts>,
    },
}

/// A Kubernetes Event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of the object that it is about.
    pub kind: Kind,
    /// The object.
    pub about: ObjectName,
    /// Its UID.
    pub uid: Text,
    /// Why; `Warning` or `Normal` follows from it.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// Who says it, as the Go agents name it (`serviceexport-controller`).
    pub component: &'static str,
}

impl Event {
    /// One about an object that is held.
    pub(crate) fn new(
        component: &'static str,
        kind: Kind,
        meta: &Meta,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, about: meta.name.clone(), uid: meta.uid.clone(), reason, message: message.into(), component }
    }
}

/// A measurement that comes with a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// A slice was imported: export to import.
    SliceImported {
        /// Cluster that it comes from.
        origin: Text,
        /// No generation of it was observed before.
        first: bool,
        /// Start of the measured time; absent: no sample.
        exported_since: Option<Timestamp>,
    },
    /// A Service was exported; the time ends when the hub has judged this generation of the export.
    ServiceExported {
        /// The Service.
        service: ObjectName,
    },
}
