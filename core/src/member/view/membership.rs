//! Membership of this member in a fleet with a manager.

use super::value::Value;
use super::{Effects, Key, View};
use crate::index::Taken;
use crate::model::{EndpointSlice, InternalMemberCluster, Kind};
use crate::names;
use fleetnet_types::{ObjectName, Timestamp};

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
    pub(super) fn made_for_mcs_api(&self) -> Option<(Kind, ObjectName)> {
        let export = self.internal_exports.iter().find(|export| export.mcs.is_some() && !export.meta.deleting);
        let export = export.map(|export| (Kind::InternalServiceExport, &export.meta));
        // Without its managed-by label, it is perhaps the slice of another writer, and its deletion may fail.
        let is_routing =
            |slice: &EndpointSlice| !slice.relabelled && names::routed_slice(&slice.meta.name.name).is_some();
        let slice = || self.slices.iter().find(|slice| slice.imported && (slice.mcs.is_some() || is_routing(slice)));
        let import = || self.mcs_imports.iter().find(|import| import.is_ours);
        let derived = || self.services.iter().find(|service| service.imports.is_some());
        let found = export
            .or_else(|| slice().map(|slice| (Kind::EndpointSlice, &slice.meta)))
            .or_else(|| import().map(|import| (Kind::McsServiceImport, &import.meta)))
            .or_else(|| derived().map(|derived| (Kind::Service, &derived.meta)));
        found.map(|(kind, meta)| (kind, meta.name.clone()))
    }
}
