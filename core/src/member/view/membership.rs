//! Membership of this member in a fleet with a manager.

use super::value::Value;
use super::{Effects, Key, View};
use crate::index::Taken;
use crate::model::{InternalMemberCluster, Kind};
use fleetnet_types::ObjectName;

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
    pub(super) fn take_membership(&mut self, membership: InternalMemberCluster, effects: &mut Effects) -> bool {
        let name = membership.meta.name.clone();
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
}
