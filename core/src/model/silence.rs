//! Silence of members: what the hub agent judges, and how importers treat the endpoints of a silent member.

use crate::variants::variants;
use fleetnet_types::{ClusterId, Timestamp};

/// Silence of a member, as the hub agent judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    pub phase: SilencePhase,
    /// Time at which the phase began, on the hub agent's wall clock. While importers treat the member as silent, time
    /// at which they began to.
    pub since: Timestamp,
    /// `renewTime` of the last renewal before the silence.
    pub renewed: Timestamp,
    /// Number of silences in a row: each began within 30 minutes after the end of the one before.
    pub count: u32,
}

/// Phase of a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SilencePhase {
    /// The member is silent, together with most other members. So its endpoints stay as they are.
    Postponed,
    /// Importers use the endpoints of the member only while no other member has ready endpoints.
    Draining,
    /// Importers have no endpoints of the member, unless no other member has ready endpoints.
    Withdrawn,
    /// The member renews again, but it fell silent several times. Importers treat it as in the phase `Draining`.
    Returning,
    /// The member renews again.
    Returned,
}

// The names are those in the MemberAgent.
variants!(SilencePhase, name: Postponed = "Postponed", Draining = "Draining", Withdrawn = "Withdrawn",
    Returning = "Returning", Returned = "Returned");
variants!(Treatment, name: Draining = "Draining", Withdrawn = "Withdrawn");

impl SilencePhase {
    /// Returns how importers treat the endpoints of a member in this phase; `None` if they treat them as usual.
    pub fn treatment(self) -> Option<Treatment> {
        match self {
            Self::Postponed | Self::Returned => None,
            Self::Draining | Self::Returning => Some(Treatment::Draining),
            Self::Withdrawn => Some(Treatment::Withdrawn),
        }
    }
}

/// Silent member in the MemberAgent of an importer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentMember {
    pub cluster: ClusterId,
    pub treatment: Treatment,
}

/// Treatment of a silent member's endpoints by an importer, from the mildest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Treatment {
    /// The endpoints are draining: kube-proxy uses them only if the Service has no ready endpoint.
    Draining,
    /// The endpoints are not imported.
    Withdrawn,
}
