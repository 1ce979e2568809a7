//! Cluster of an Event.

use super::happened::HUB;
use fleetnet_api::names::{GROUP, MCS_GROUP, MCS_VERSION, SERVICE_EXPORT_VERSION, VERSION};

/// Cluster of an Event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Hub,
    /// Member with this cluster id.
    Member(String),
}

impl Side {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Hub => HUB,
            Self::Member(id) => id,
        }
    }

    /// Returns the values of `apiVersion` of the objects on which the agents emit Events.
    pub(super) fn api_versions(&self) -> Vec<String> {
        let own = [(GROUP, VERSION)];
        let of_member = [(GROUP, SERVICE_EXPORT_VERSION), (MCS_GROUP, MCS_VERSION)];
        let of_member = of_member.into_iter().filter(|_| *self != Self::Hub);
        own.into_iter().chain(of_member).map(|(group, version)| format!("{group}/{version}")).collect()
    }
}
