//! Objects of the users of the standard API.

use fleetnet_core::model::Object;
use fleetnet_types::ObjectName;

/// Namespace of the Service.
pub(crate) const NAMESPACE: &str = "standard";

/// Name of the derived Service of the MultiClusterService, in `fleet-system`.
const DERIVED: &str = "standard-app";

/// True if an object belongs to the Service, or to the standard API.
pub(crate) fn concerns(object: &Object) -> bool {
    let is_here = |source: &ObjectName| &*source.namespace == NAMESPACE;
    match object {
        Object::InternalServiceExport(export) => is_here(&export.reference.source),
        Object::InternalServiceImport(claim) => is_here(&claim.reference.source),
        Object::Service(service) if service.derived_from.is_some() => {
            service.derived_from.as_ref().is_some_and(is_here)
        }
        // Somebody may have removed the labels, or forged the export under another name.
        Object::EndpointSlice(slice) if slice.meta.name.name.contains(&format!("-{DERIVED}-")) => true,
        Object::EndpointSlice(slice) if slice.service.as_ref().is_some_and(|it| it.starts_with(DERIVED)) => true,
        Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => {
            &*slice.spec.owner.namespace == NAMESPACE
        }
        Object::McsServiceExport(_) | Object::McsServiceImport(_) | Object::MergedServiceImport(_) => true,
        other => &*other.meta().name.namespace == NAMESPACE,
    }
}
