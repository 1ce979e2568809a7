//! Distributed slices in the member namespace of a member that leaves the fleet.

use crate::hub::View;
use crate::model::{HubSlice, Kind};
use crate::plan::{Plan, Write};
use fleetnet_types::{ObjectName, Text};

/// Removes the member agent's finalizer from the distributed slices in a member namespace that is being deleted, if the slices
/// are being deleted too. The ServiceAccount and the Role of the member agent are deleted with this namespace, in any order.
/// Without them, the member agent can no longer remove its finalizers, and the deletion of the namespace would never end.
pub(super) fn release(view: &View, name: &Text) -> Plan {
    let mut plan = Plan::default();
    let distributed_slices = super::all_distributed_slices(view, name);
    for slice in
        distributed_slices.filter(|slice| slice.meta.deleting && slice.meta.finalizers.ours && leaves(view, slice))
    {
        plan.push(Write::remove_finalizer(Kind::EndpointSliceImport, &slice.meta));
    }
    plan
}

fn leaves(view: &View, slice: &HubSlice) -> bool {
    let namespace = ObjectName::new("", slice.meta.name.namespace.clone());
    // fault D13.2: is_some_and(|it| it.meta.deleting ~> is_some(
    view.watches.complete(&[Kind::Namespace]) && view.namespaces.get(&namespace).is_some_and(|it| it.meta.deleting)
}
