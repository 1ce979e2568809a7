//! Membership of this member in a fleet with a manager.

use super::value::Value;
use super::{Effects, Key, View};
use crate::index::Taken;
use crate::model::{InternalMemberCluster, Kind, MembershipState};
use fleetnet_types::{ObjectName, Timestamp};

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
    fn next(self, before: Option<&InternalMemberCluster>, present: &InternalMemberCluster, at: Timestamp) -> Self {
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

impl Effects {
    /// An object appeared, changed or is gone.
    pub(super) fn object_changed(&mut self, kind: Kind, name: ObjectName) {
        self.values.push(Value::Object(kind, name));
        // A member that leaves deletes all objects of these kinds.
        if matches!(kind, Kind::ServiceExport | Kind::MultiClusterService) {
            self.values.push(Value::All(kind));
        }
    }
}

impl View {
    pub(super) fn take_membership(
        &mut self,
        membership: InternalMemberCluster,
        at: Timestamp,
        effects: &mut Effects,
    ) -> bool {
        let name = membership.meta.name.clone();
        if name == self.own_membership() {
            let leave = self.leave.next(self.memberships.get(&name), &membership, at);
            if std::mem::replace(&mut self.leave, leave) != leave {
                effects.values.push(Value::Leave);
            }
        }
        let Taken::Changed(before) = self.memberships.take(membership) else { return false };
        if before.is_none() && name == self.own_membership() {
            effects.keys.push(Key::Membership);
        }
        true
    }

    /// Returns the name of the InternalMemberCluster of this member.
    pub(crate) fn own_membership(&self) -> ObjectName {
        self.in_hub(self.settings.cluster.clone())
    }

    /// Returns an object of the standard API that the agents made and have not removed yet: an import, or an export in
    /// the hub.
    pub(super) fn made_for_standard_api(&self) -> Option<(Kind, ObjectName)> {
        let export = self.internal_exports.iter().find(|export| export.multicluster.is_some() && !export.meta.deleting);
        let export = export.map(|export| (Kind::InternalServiceExport, &export.meta));
        let slice = || self.slices.iter().find(|slice| slice.imported && slice.standard.is_some());
        let import = || self.standard_imports.iter().find(|import| import.is_ours);
        let derived = || self.services.iter().find(|service| service.imports.is_some());
        let found = export
            .or_else(|| slice().map(|slice| (Kind::EndpointSlice, &slice.meta)))
            .or_else(|| import().map(|import| (Kind::StandardServiceImport, &import.meta)))
            .or_else(|| derived().map(|derived| (Kind::Service, &derived.meta)));
        found.map(|(kind, meta)| (kind, meta.name.clone()))
    }
}
