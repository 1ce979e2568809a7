//! Distributed slices in the member namespace of a member that leaves the fleet.

use crate::hub::view::reader::Reader;
use crate::model::{HubSlice, Kind};
use crate::plan::{Plan, Write};
use fleetnet_types::ObjectName;

/// Removes the member agent's finalizer from a distributed slice that is being deleted together with its member namespace. The
/// ServiceAccount and the Role of the member agent are deleted with this namespace, in any order. Without them, the member agent
/// can no longer remove its finalizers, and the deletion of the namespace would never end.
pub(super) fn release(view: Reader<'_>, slice: &HubSlice) -> Plan {
    if slice.meta.deleting && slice.meta.finalizers.ours && leaves(view, slice) {
        return Plan::one(Write::remove_finalizer(Kind::EndpointSliceImport, &slice.meta));
    }
    Plan::default()
}

fn leaves(view: Reader<'_>, slice: &HubSlice) -> bool {
    let namespace = ObjectName::new("", slice.meta.name.namespace.clone());
    // fault D13.2: is_some_and(|it| it.meta.deleting ~> is_some(
    view.complete(&[Kind::Namespace]) && view.namespaces().get(&namespace).is_some_and(|it| it.meta.deleting)
}
