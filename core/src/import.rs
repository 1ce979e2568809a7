//! Import: what a member makes of the hub's exports (spec 2.5, 2.7, 2.8, 2.10; design sections 3 and 4).
//!
//! ```text
//!  MultiClusterService ─► ServiceImport ─► InternalServiceImport (the claim, in the hub)
//!          │                    ◄── status ──┘
//!          └─► derived Service ◄── bound to ── imported EndpointSlice ◄── EndpointSliceImport (in the hub)
//! ```

mod claim;
mod multi_cluster_service;
mod slice;

use crate::ids::ObjectName;
use crate::member::View;
use crate::model::{MultiClusterService, Service};
use crate::names;

pub use claim::plan_import;
pub use multi_cluster_service::plan_multi_cluster_service;
pub use slice::plan_slice;

/// The MultiClusterService through which a Service is imported, and the derived Service that its slices are bound to:
/// of those that want the import, one whose derived Service stands, the one in control of the ServiceImport first.
pub(crate) fn binding<'a>(view: &'a View, imported: &ObjectName) -> Option<(&'a MultiClusterService, &'a Service)> {
    let controller = view.imports.get(imported).and_then(|import| import.controller()).map(|owner| &owner.uid);
    view.wanting
        .get(imported)
        .filter_map(|wish| view.multi_cluster_services.live(wish))
        .filter_map(|wish| Some((wish, derived_service(view, wish)?)))
        .min_by_key(|(wish, _)| (Some(&wish.meta.uid) != controller, wish.meta.created, wish.meta.name.clone()))
}

/// The live Service that a MultiClusterService's label names, if it was derived for it: the label can be edited by hand.
pub(crate) fn derived_service<'a>(view: &'a View, wish: &MultiClusterService) -> Option<&'a Service> {
    let label = wish.derived_label.as_ref().filter(|label| names::is_dns_1035_label(label))?;
    let service = view.services.live(&view.in_system(label.clone()))?;
    (service.derived_from.as_ref() == Some(&wish.meta.name)).then_some(service)
}
