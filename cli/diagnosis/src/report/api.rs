//! API by which clusters export and import a Service.

use fleetnet_api::names::{GROUP, MCS_GROUP};
use serde::{Serialize, Serializer};

/// API by which clusters export and import a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// API of the fleet: ServiceExport and MultiClusterService.
    Fleet,
    /// Standard API (KEP-1645): ServiceExport and ServiceImport.
    Mcs,
}

impl Serialize for Api {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.group())
    }
}

impl Api {
    pub const ALL: [Self; 2] = [Self::Fleet, Self::Mcs];

    /// Returns the API group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Fleet => GROUP,
            Self::Mcs => MCS_GROUP,
        }
    }
}
