//! Copies in the namespace of a member that leaves the fleet.

use crate::hub::View;
use crate::ids::{ObjectName, Text};
use crate::model::{HubSlice, Kind};
use crate::plan::{Plan, Write};

/// Takes the importer's finalizer from the dying copies of that name whose namespace is being deleted: the account and the role
/// of the importer's agent go with the namespace, in any order, and nobody else would let the copies go, nor the namespace.
pub(super) fn release(view: &View, name: &Text) -> Plan {
    let mut plan = Plan::default();
    let copies = view.slice_imports_named.get(name).filter_map(|copy| view.slice_imports.get(copy));
    for copy in copies.filter(|copy| copy.meta.deleting && copy.meta.finalizers.ours && leaves(view, copy)) {
        plan.push(Write::finalizer(Kind::EndpointSliceImport, &copy.meta, false));
    }
    plan
}

fn leaves(view: &View, copy: &HubSlice) -> bool {
    let namespace = ObjectName::new("", copy.meta.name.namespace.clone());
    // fault D13.2: is_some_and(|it| it.meta.deleting ~> is_some(
    view.watches.complete(&[Kind::Namespace]) && view.namespaces.get(&namespace).is_some_and(|it| it.meta.deleting)
}
