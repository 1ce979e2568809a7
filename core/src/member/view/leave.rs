//! State `Leave` of this member.

use crate::model::{InternalMemberCluster, MembershipState};
use fleetnet_types::Timestamp;

/// State `Leave` of this member, as this process has seen it. It stays when the InternalMemberCluster is gone: the
/// manager deletes it after the member has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leave {
    #[default]
    No,
    /// This process has seen the change to `Leave`.
    Began,
    /// At this time, this process found the state without a change: at its start, or after a restore of the hub.
    Found(Timestamp),
}

impl Leave {
    /// Returns the next state. `before` is the InternalMemberCluster before, if it was known.
    pub(super) fn next(
        self,
        before: Option<&InternalMemberCluster>,
        present: &InternalMemberCluster,
        at: Timestamp,
    ) -> Self {
        let is_newer = |before: &InternalMemberCluster| {
            before.meta.uid == present.meta.uid && before.meta.resource_version < present.meta.resource_version
        };
        match (present.state, self) {
            (MembershipState::Join | MembershipState::Other, _) => Self::No,
            (MembershipState::Leave, Self::No) if before.is_some_and(is_newer) => Self::Began,
            (MembershipState::Leave, Self::No) => Self::Found(at),
            (MembershipState::Leave, known) => known,
        }
    }

    pub(super) fn clock_set(&mut self, micros: i64) {
        if let Self::Found(at) = self {
            *at = at.plus_micros(micros);
        }
    }
}
