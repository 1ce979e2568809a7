//! Targets of connections, and their outcomes.

use crate::report::{Api, Evidence, Finding};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// Way on which clients reach an imported Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// An endpoint of the exporter.
    Address,
    /// The address of the derived Service.
    Service,
    /// The DNS name of the Service.
    Name,
}

impl By {
    pub const ALL: [Self; 3] = [Self::Address, Self::Service, Self::Name];

    /// Returns the way in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Service => "Service",
            Self::Name => "name",
        }
    }
}

/// Host and port to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub by: By,
    /// IP address or DNS name.
    pub host: String,
    pub port: u16,
    /// Names of the Service's ports that lead to this port. Endpoints and the Service belong together by them.
    pub port_names: BTreeSet<String>,
}

impl Target {
    /// Returns host and port as a client writes them.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Result of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Connected,
    Refused,
    TimedOut,
    NoRoute,
    NameNotResolved,
    /// There is no result, for this reason.
    NotTested(String),
}

impl Outcome {
    /// Returns the outcome in words.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Refused => "refused",
            Self::TimedOut => "timed out",
            Self::NoRoute => "no route",
            Self::NameNotResolved => "name not resolved",
            Self::NotTested(_) => "not tested",
        }
    }

    /// True if the network did not bring the connection to the address.
    pub(super) const fn is_blocked(&self) -> bool {
        matches!(self, Self::TimedOut | Self::NoRoute)
    }

    /// True if there is a result, and it is a failure.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        !matches!(self, Self::Connected | Self::NotTested(_))
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Connected => "connected",
            Self::Refused => "refused",
            Self::TimedOut => "timedOut",
            Self::NoRoute => "noRoute",
            Self::NameNotResolved => "nameNotResolved",
            Self::NotTested(_) => "notTested",
        })
    }
}

/// Outcomes of the targets of one importer.
pub type Outcomes = BTreeMap<Target, Outcome>;

/// Pair of exporter and importer, with its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub namespace: String,
    pub name: String,
    pub api: Api,
    /// Cluster id of the exporter; `None` if nobody exports.
    pub exporter: Option<String>,
    /// Cluster id of the importer; `None` if nobody imports.
    pub importer: Option<String>,
    pub targets: Vec<Target>,
    /// Ready endpoints of the exporter in the importer, also those that are no target.
    pub(super) endpoints: BTreeSet<(String, u16)>,
    /// Targets that are not tried on purpose, such as UDP ports.
    pub left_out: Vec<String>,
    /// Reasons why something that should be tried cannot be.
    pub not_tested: Vec<String>,
    /// Fault of the objects by which two clusters have the same addresses, so that connections reach the wrong pods.
    pub(super) overlap: Option<Finding>,
    /// Objects that a fault of the network, of the endpoints, of the Service and of the name shows.
    pub(super) objects: Objects,
}

/// Evidence without a value, for each kind of fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Objects {
    /// Imported slice.
    pub(super) imported: Evidence,
    /// Slice of the exporter; the imported one if the exporter was not read.
    pub(super) source: Evidence,
    /// Derived Service, or the import of a headless one.
    pub(super) service: Evidence,
}
