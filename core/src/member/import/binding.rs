//! Derived Services that imported slices belong to.

use crate::member::view::Reader;
use crate::model::{Kind, MultiClusterService, Service};
use fleetnet_types::ObjectName;

/// Returns the derived Service that the imported slices of a Service belong to. If several MultiClusterServices import
/// the Service, the derived Service of the MultiClusterService that controls the ServiceImport is preferred.
pub(crate) fn binding<'a>(view: Reader<'a>, imported: &ObjectName) -> Option<&'a Service> {
    let controller = view.imports().get(imported).and_then(|import| import.controller()).map(|owner| &owner.uid);
    view.mcs_of_import(imported)
        .filter_map(|mcs| view.multi_cluster_services().live(mcs))
        .filter_map(|mcs| Some((mcs, derived_service(view, mcs)?)))
        .min_by_key(|(mcs, _)| (Some(&mcs.meta.uid) != controller, mcs.meta.created, mcs.meta.name.clone()))
        .map(|(_, service)| service)
        .or_else(|| binding_of_undecodable(view, imported))
}

/// Returns the derived Service that the imported slices already belong to, if the MultiClusterService of this derived
/// Service is undecodable.
fn binding_of_undecodable<'a>(view: Reader<'a>, imported: &ObjectName) -> Option<&'a Service> {
    if !view.has_undecodable() {
        return None;
    }
    let distributed = view.distributed_slices_of(imported).map(|distributed| view.in_system(distributed.name.clone()));
    let present = distributed.filter_map(|at| view.slices().live(&at)).filter(|present| present.imported);
    let services = present.filter_map(|present| view.services().live(&view.in_system(present.service.clone()?)));
    let mut services = services.filter(|service| {
        service.derived_from.as_ref().is_some_and(|mcs| view.is_undecodable(Kind::MultiClusterService, mcs))
    });
    services.next()
}

/// Returns the Service that the label of a MultiClusterService names. `None` if the Service is being deleted or was not
/// derived from this MultiClusterService, because users can edit the label.
pub(crate) fn derived_service<'a>(view: Reader<'a>, mcs: &MultiClusterService) -> Option<&'a Service> {
    let service = view.services().live(&view.in_system(mcs.derived_label.clone()?))?;
    (service.derived_from.as_ref() == Some(&mcs.meta.name)).then_some(service)
}
