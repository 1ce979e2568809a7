//! Reasons: names for what happens to users' objects.
//!
//! Each is defined here once. The same name is the reason of conditions and Events, the field `reason` of the log and the label
//! `reason` of metrics. `docs/events.md` explains each, and what to do. Reasons of conditions that the Go agents also set have
//! their names.

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

            /// Returns the name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// True if a user must look at it. Then its Events have the type `Warning`, otherwise `Normal`.
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
    /// The Service may be exported.
    Normal ServiceIsValid,
    /// The export is withdrawn because its weight is 0.
    Normal WeightIsZero,
    /// The weight of the export is not 0 any more.
    Normal WeightIsNotZero,
    /// The Service of a ServiceExport does not exist.
    Warning ServiceNotFound,
    /// The Service has a type that is not exported.
    Warning ServiceIneligible,
    /// A Service or slice has more ports than the limit.
    Warning TooManyPorts,
    /// The weight of an export is malformed.
    Warning ServiceExportInvalidWeightAnnotation,
    /// The hub does not allow a cluster to export a Service.
    Warning ExporterNotAllowed,
    /// The hub allows a cluster to export a Service again.
    Normal ExporterAllowed,
    /// An export waits for conflict resolution.
    Normal ServicePendingConflictResolution,
    /// An export has no conflict with those of other clusters.
    Normal NoConflictFound,
    /// An export has a conflict with those of other clusters.
    Warning ConflictFound,
    /// The import of a MultiClusterService exists and is used.
    Normal FoundServiceImport,
    /// The import of a MultiClusterService does not exist, or another one controls it.
    Normal UnknownServiceImport,
    /// The exporters of a Service, or its exported content, changed.
    Normal SuccessfulUpdateStatus,
    /// No cluster exports a Service any more.
    Normal NoExportedService,
    /// The importers of a Service changed.
    Normal ImportersChanged,
    /// Another cluster has the exclusive claim of a Service.
    Normal ImportHeldByAnother,
    /// A Service stays imported with type ClusterIP, since type LoadBalancer is not granted.
    Normal LoadBalancerNotGranted,
    /// The hub does not allow a cluster to import a Service.
    Warning ImporterNotAllowed,
    /// A MultiClusterService was deleted, and all its objects are removed.
    Normal UnimportedService,
    /// Other objects have all possible names of an object.
    Warning NameHeldByAnother,
    /// Another cluster already exports a slice.
    Warning SliceHeldByAnother,
    /// A name is not valid for the object to create.
    Warning NameRefused,
    /// Some addresses of a slice are not imported.
    Warning AddressRefused,
    /// Some ports of a slice or Service are not imported.
    Warning PortRefused,
    /// A peer does not announce the feature that an object needs.
    Warning NotUnderstood,
    /// A derived Service lost the labels that show its origin.
    Warning DerivedServiceLost,
    /// An object that another depends on is undecodable.
    Warning ObjectUnreadable,
    /// The rights to export and import cannot be read.
    Warning RightsNotEnforced,
    /// Another cluster owns the cluster id.
    Warning ClusterIdInUse,
    /// Two agents renew for one cluster.
    Warning ClusterIdShared,
    /// A second cluster with the same id would not be detected.
    Warning ClusterIdNotChecked,
    /// A server rejected a write for its content.
    Warning WriteRefused,
    /// A server denied a write, or lacks its kind or namespace.
    Warning WriteDenied,
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
