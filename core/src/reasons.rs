//! Reasons: names of causes and outcomes that the agents report to users.
//!
//! This file defines each reason once. The name of a reason is the same in conditions, in Events, in the field `reason`
//! of the log and in the label `reason` of metrics. `docs/reference/events.md` explains each reason and the next step.
//! If the Go agents set the same condition, the reason has the name from the Go agents.

use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $kind:ident $name:ident,)+) => {
        /// Reason of a condition, an Event, a log line or a metric.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the reason's name, as in conditions, Events and metrics.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// True if a user must act. Then the Event has the type `Warning`, otherwise the type `Normal`.
            pub const fn is_warning(self) -> bool {
                match self {
                    $(Self::$name => reasons!(@is_warning $kind),)+
                }
            }
        }
    };
    (@is_warning Warning) => { true };
    (@is_warning Normal) => { false };
}

reasons! {
    /// ServiceExport: the Service may be exported.
    Normal ServiceIsValid,
    /// ServiceExport: the export is withdrawn because its weight is 0.
    Normal WeightIsZero,
    /// ServiceExport: its weight is not 0 any more.
    Normal WeightIsNotZero,
    /// The Service of a ServiceExport does not exist.
    Warning ServiceNotFound,
    /// The Service of a ServiceExport has a type that is not exported.
    Warning ServiceIneligible,
    /// The agents made the Service of a ServiceExport for an import.
    Warning ServiceImported,
    /// A Service or slice has more ports than the limit.
    Warning TooManyPorts,
    /// A namespace has as many exports as it may have.
    Warning TooManyExports,
    /// An endpoint of a slice has more addresses than the limit.
    Warning TooManyAddresses,
    /// The annotation networking.fleet.azure.com/weight of a ServiceExport is malformed.
    Warning ServiceExportInvalidWeightAnnotation,
    /// The annotation with cluster selectors is malformed, or its Service cannot have them.
    Warning InvalidClusterSelector,
    /// MultiClusterService: its cluster selectors are not malformed any more.
    Normal ClusterSelectorsRead,
    /// The namespace in the hub does not allow a cluster to export the Service.
    Warning ExporterNotAllowed,
    /// The namespace in the hub allows a cluster to export the Service again.
    Normal ExporterAllowed,
    /// An export waits for conflict resolution.
    Normal ServicePendingConflictResolution,
    /// An export has no conflict with other clusters' exports.
    Normal NoConflictFound,
    /// An export has a conflict with other clusters' exports.
    Warning ConflictFound,
    /// The ServiceImport of a MultiClusterService exists and is used.
    Normal FoundServiceImport,
    /// The ServiceImport of a MultiClusterService does not exist, or another MultiClusterService controls it.
    Normal UnknownServiceImport,
    /// The exporters of a Service, or its merged content, changed.
    Normal SuccessfulUpdateStatus,
    /// No cluster exports the Service any more.
    Normal NoExportedService,
    /// The importers of a Service changed.
    Normal ImportersChanged,
    /// Another cluster has the exclusive claim of the Service.
    Normal ImportHeldByAnother,
    /// A Service stays imported as ClusterIP, because the hub does not grant type LoadBalancer.
    Normal LoadBalancerNotGranted,
    /// A namespace has its maximum of load balancers.
    Warning TooManyLoadBalancers,
    /// The annotation for an internal load balancer of a MultiClusterService is malformed.
    Warning InternalLoadBalancerInvalid,
    /// The namespace in the hub does not allow a cluster to import the Service.
    Warning ImporterNotAllowed,
    /// A MultiClusterService was deleted, and its ServiceImport and derived Service are removed.
    Normal UnimportedService,
    /// Other objects have all names that an object to create may have.
    Warning NameHeldByAnother,
    /// Another cluster already exports the same slice.
    Warning SliceHeldByAnother,
    /// An exported Service or slice has a name that the agent cannot give to the object that it creates for the import.
    Warning NameRefused,
    /// Some addresses of a slice are not imported, or not distributed.
    Warning AddressRefused,
    /// Some ports of a slice or Service are not imported.
    Warning PortRefused,
    /// An exporting cluster has more slices or endpoints of a Service than are imported.
    Warning TooManyEndpoints,
    /// The annotation with weights of exporting clusters is malformed.
    Warning WeightsInvalid,
    /// A port of an imported Service got clusters that its selectors prefer less.
    Normal ClusterFailover,
    /// A port of an imported Service got clusters again that its selectors prefer.
    Normal ClusterFailback,
    /// The peer agent does not announce the feature that an object needs.
    Warning NotUnderstood,
    /// A derived Service lost the labels that name its MultiClusterService.
    Warning DerivedServiceLost,
    /// An object that another depends on is undecodable.
    Warning ObjectUnreadable,
    /// The hub agent cannot read the namespaces that limit exports and imports.
    Warning RightsNotEnforced,
    /// Another cluster owns this cluster id.
    Warning ClusterIdInUse,
    /// Two agents renew the MemberAgent of one cluster.
    Warning ClusterIdShared,
    /// The agent cannot check whether a second cluster has the same id.
    Warning ClusterIdNotChecked,
    /// InternalMemberCluster: this agent belongs to the fleet.
    Normal AgentJoined,
    /// InternalMemberCluster: this agent has left the fleet.
    Normal AgentLeft,
    /// A ServiceExport of the standard API is not exported, because the member leaves the fleet.
    Warning MemberLeaves,
    /// The agent waits before it leaves the fleet, because the request is perhaps an old one.
    Warning LeavePostponed,
    /// The hub agent does not hear from a member any more.
    Warning MemberSilent,
    /// The hub agent hears from hardly any member any more.
    Warning ManyMembersSilent,
    /// A member that fell silent several times renews again, and must do so for a while.
    Normal MemberReturning,
    /// A member that was silent renews again.
    Normal MemberReturned,
    /// The objects of a member exceed the memory that the hub agent keeps for a member.
    Warning MemberTooLarge,
    /// The exports of a member cause as many objects in the namespaces of other members as they may.
    Warning DistributionLimited,
    /// The properties that the operator sets for a member are malformed.
    Warning PropertiesUnknown,
    /// A cluster has more properties than it may announce, or one with a value that is too long.
    Warning PropertiesLeftOut,
    /// A server rejected a write for its content.
    Warning WriteRefused,
    /// A server denied a write, or lacks the object's kind or namespace.
    Warning WriteDenied,
    /// No exporter of a Service has an IP family of the importing cluster.
    Warning IPFamilyNotSupported,
    /// Another writer undoes an agent's writes.
    Warning WritesUndone,
    /// Another writer has stopped undoing an agent's writes.
    Normal WritesStand,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
