//! InternalServiceExports of a Service in the hub.

use crate::member::view::Reader;
use crate::model::{InternalServiceExport, Service};
use fleetnet_types::ObjectName;

/// Returns all InternalServiceExports of a Service, also those of an earlier Service with this name.
pub(super) fn exports_in_hub<'a>(
    view: Reader<'a>,
    service: &ObjectName,
) -> impl Iterator<Item = &'a InternalServiceExport> + use<'a> {
    view.internal_exports_of(service).filter_map(move |name| view.internal_exports().get(name))
}

/// Returns the InternalServiceExports of this Service (same UID) that are not being deleted.
pub(super) fn live_exports<'a>(view: Reader<'a>, service: &Service) -> impl Iterator<Item = &'a InternalServiceExport> {
    exports_in_hub(view, &service.meta.name).filter(move |it| it.reference.uid == service.meta.uid && !it.meta.deleting)
}

/// True if the hub has an InternalServiceExport of an earlier Service with the name of this one.
pub(super) fn has_earlier_export(view: Reader<'_>, service: &Service) -> bool {
    exports_in_hub(view, &service.meta.name).any(|it| it.reference.uid != service.meta.uid)
}
