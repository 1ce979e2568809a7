//! Reasons: the words in which users are told what becomes of their objects.
//!
//! Each is defined here once, and is the same word wherever it is said: as the reason of a condition and of an Event, in the
//! field `reason` of the log, in the label `reason` of a metric. `docs/events.md` says of each what it means and what to do.
//! Those of conditions that Go agents set too are theirs (spec 1.2, 1.3).

use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $kind:ident $name:ident,)+) => {
        /// Why something is told.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// Whether a user should look at it: then its Events are of type `Warning`, otherwise `Normal`.
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
    /// A Service may be exported.
    Normal ServiceIsValid,
    /// A Service that is to be exported is not there.
    Warning ServiceNotFound,
    /// A Service is of a kind that is not exported.
    Warning ServiceIneligible,
    /// A Service, or a slice, has more ports than can be exported.
    Warning TooManyPorts,
    /// The weight of an export says nothing usable.
    Warning ServiceExportInvalidWeightAnnotation,
    /// The hub does not let a cluster export a Service.
    Warning ExporterNotAllowed,
    /// It does again.
    Normal ExporterAllowed,
    /// The hub has still to judge an export.
    Normal ServicePendingConflictResolution,
    /// An export agrees with those of other clusters.
    Normal NoConflictFound,
    /// It does not.
    Warning ConflictFound,
    /// What a MultiClusterService wants is there and imported.
    Normal FoundServiceImport,
    /// It is not there, or somebody else's.
    Normal UnknownServiceImport,
    /// Who exports a Service, or what, has changed.
    Normal SuccessfulUpdateStatus,
    /// Nobody exports a Service any more.
    Normal NoExportedService,
    /// Who imports a Service has changed.
    Normal ImportersChanged,
    /// Another cluster imports a Service that one cluster only may import.
    Normal ImportHeldByAnother,
    /// A Service stays imported with type ClusterIP, since type LoadBalancer is not granted.
    Normal LoadBalancerNotGranted,
    /// The hub does not let a cluster import a Service.
    Warning ImporterNotAllowed,
    /// A MultiClusterService was deleted and nothing of it is left.
    Normal UnimportedService,
    /// The names under which something would be made are those of others.
    Warning NameHeldByAnother,
    /// Another cluster exports a slice already.
    Warning SliceHeldByAnother,
    /// A name is none that an object here can have.
    Warning NameRefused,
    /// Addresses of a slice are not imported.
    Warning AddressRefused,
    /// Ports of a slice, or of a Service, are not imported.
    Warning PortRefused,
    /// A peer does not announce that it understands what it would have to be told.
    Warning NotUnderstood,
    /// A derived Service does not say any more that it is ours.
    Warning DerivedServiceLost,
    /// What something stands on is there and cannot be read.
    Warning ObjectUnreadable,
    /// Who may export and import cannot be asked.
    Warning RightsNotEnforced,
    /// Another cluster owns the cluster id.
    Warning ClusterIdInUse,
    /// Two agents renew for one cluster.
    Warning ClusterIdShared,
    /// A second cluster with the same id would not be noticed.
    Warning ClusterIdNotChecked,
    /// A server refused a write for its content.
    Warning WriteRefused,
    /// A server does not let an agent write, or lacks what it would write to.
    Warning WriteDenied,
    /// Another writer undoes what an agent writes.
    Warning WritesUndone,
    /// No other writer does so any more.
    Normal WritesStand,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
