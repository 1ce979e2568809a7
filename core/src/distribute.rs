//! Distribute: which importer gets which slice (spec 2.14; design section 3).
//!
//! The copy of an exported slice, an EndpointSliceImport of the same name, stands in the hub namespace of every importer
//! that holds a claim on the slice's Service.

use crate::claims;
use crate::hub::View;
use crate::ids::{ObjectName, Text};
use crate::model::{HubSlice, HubSliceSpec, Kind};
use crate::plan::{Desired, Patch, Plan, Write};
use std::collections::BTreeSet;

const REQUIRED: [Kind; 4] =
    [Kind::EndpointSliceExport, Kind::EndpointSliceImport, Kind::ServiceImport, Kind::InternalServiceImport];

/// Plans the copies of the exported slice of that name, which may be gone.
pub fn plan_slice(view: &View, name: &Text) -> Plan {
    if !view.watches.complete(&REQUIRED) {
        return Plan::default();
    }
    let holder = holder(view, name);
    let mut plan = match holder {
        None => withdraw_all(view, name),
        Some(export) if export.meta.deleting => {
            let mut plan = withdraw_all(view, name);
            if plan.writes.is_empty() && export.meta.finalizers.ours {
                plan.push(Write::finalizer(Kind::EndpointSliceExport, &export.meta, false));
            }
            plan
        }
        Some(export) => distribute(view, export),
    };
    // The copies are the holder's, so a refused export that was marked by another hub may go at once.
    let refused = exports(view, name).filter(|export| holder.is_none_or(|holder| holder.meta.name != export.meta.name));
    for export in refused.filter(|export| export.meta.deleting && export.meta.finalizers.ours) {
        plan.push(Write::finalizer(Kind::EndpointSliceExport, &export.meta, false));
    }
    plan
}

/// The export that holds a name: of several the one that had it first. A second one under a name that another namespace
/// holds is refused.
fn holder<'a>(view: &'a View, name: &Text) -> Option<&'a HubSlice> {
    exports(view, name).min_by_key(|export| (export.meta.created, export.meta.name.clone()))
}

fn exports<'a>(view: &'a View, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    view.slice_exports_named.get(name).filter_map(|export| view.slice_exports.get(export))
}

fn withdraw_all(view: &View, name: &Text) -> Plan {
    let mut plan = Plan::default();
    for copy in copies(view, name).filter(|copy| !copy.meta.deleting) {
        plan.push(Write::delete(Kind::EndpointSliceImport, &copy.meta));
    }
    plan
}

fn distribute(view: &View, export: &HubSlice) -> Plan {
    let name = &export.meta.name.name;
    let owner = &export.spec.owner;
    let Some(import) = view.imports.get(owner) else {
        return Plan::default(); // nothing is known of its importers: what was given stays until it is known again
    };
    let claimed: BTreeSet<&Text> = import.claims.importers.keys().collect();
    let mut plan = Plan::default();
    if !claimed.is_empty() && !export.meta.finalizers.ours {
        return Plan::one(Write::finalizer(Kind::EndpointSliceExport, &export.meta, true));
    }
    for namespace in &claimed {
        let at = ObjectName { namespace: (*namespace).clone(), name: name.clone() };
        plan.join(give(view, export, at));
    }
    // A claim that is about to be granted again (its import was made anew) keeps its slices meanwhile.
    let rightful = claims::rightful(view, owner);
    for copy in copies(view, name).filter(|copy| !copy.meta.deleting) {
        let namespace = &copy.meta.name.namespace;
        if !claimed.contains(namespace) && !rightful.contains_key(namespace) {
            plan.push(Write::delete(Kind::EndpointSliceImport, &copy.meta));
        }
    }
    if plan.writes.is_empty() && claimed.is_empty() && export.meta.finalizers.ours && !copied(view, name) {
        plan.push(Write::finalizer(Kind::EndpointSliceExport, &export.meta, false));
    }
    plan
}

fn give(view: &View, export: &HubSlice, at: ObjectName) -> Plan {
    match view.slice_imports.get(&at) {
        None => {
            let desired = Desired::EndpointSliceImport(export.spec.clone());
            Plan::one(Write::create(Kind::EndpointSliceImport, at, desired))
        }
        Some(copy) if copy.meta.deleting => Plan::default(), // its end wakes us
        Some(copy) if same(&copy.spec, &export.spec) => Plan::default(),
        Some(copy) => {
            let patch = Patch::HubSlice(export.spec.clone());
            Plan::one(Write::patch(Kind::EndpointSliceImport, &copy.meta, patch))
        }
    }
}

/// Whether two specifications say the same: a Go hub cuts stamps to whole seconds, which is no difference.
fn same(one: &HubSliceSpec, other: &HubSliceSpec) -> bool {
    let whole = |spec: &HubSliceSpec| {
        let mut spec = spec.clone();
        spec.reference.exported_since = spec.reference.exported_since.map(|since| since.whole_seconds());
        spec
    };
    one == other || whole(one) == whole(other)
}

fn copied(view: &View, name: &Text) -> bool {
    copies(view, name).any(|copy| !copy.meta.deleting)
}

fn copies<'a>(view: &'a View, name: &Text) -> impl Iterator<Item = &'a HubSlice> + use<'a> {
    view.slice_imports_named.get(name).filter_map(|copy| view.slice_imports.get(copy))
}
