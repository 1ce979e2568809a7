//! Derived Services that imported slices belong to.

use crate::member::view::Reader;
use crate::model::{Kind, MultiClusterService, Service};
use fleetnet_types::ObjectName;

/// Returns the derived Service that the imported slices of a Service belong to. If several MultiClusterServices import
/// the Service, the derived Service of the MultiClusterService that controls the ServiceImport is preferred.
pub(crate) fn binding<'a>(view: Reader<'a>, imported: &ObjectName) -> Option<&'a Service> {
    let controller = view.imports().get(imported).and_then(|import| import.controller()).map(|owner| &owner.uid);
    view.requests_of_import(imported)
        .filter_map(|name| view.multi_cluster_services().live(name))
        .filter_map(|request| Some((request, derived_service(view, request)?)))
        .min_by_key(|(request, _)| {
            (Some(&request.meta.uid) != controller, request.meta.created, request.meta.name.clone())
        })
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
        service.derived_from.as_ref().is_some_and(|name| view.is_undecodable(Kind::MultiClusterService, name))
    });
    services.next()
}

/// Returns the Service that the label of a MultiClusterService names. `None` if the Service is being deleted or was not
/// derived from this MultiClusterService, because users can edit the label.
pub(crate) fn derived_service<'a>(view: Reader<'a>, request: &MultiClusterService) -> Option<&'a Service> {
    let service = view.services().live(&view.in_system(request.derived_label.clone()?))?;
    (service.derived_from.as_ref() == Some(&request.meta.name)).then_some(service)
}
