//! InternalServiceExports of a Service in the hub, and what prevents a new one.

use crate::member::view::Reader;
use crate::model::{InternalServiceExport, Kind, Service};
use crate::plan::BlockingReason;
use crate::reasons::Reason;
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

/// Returns a free name for a new InternalServiceExport: `<namespace>-<name>`, or if another export has this name, the
/// same name with digits of the Service's UID (B3 in docs/contributors/behaviour.md). `None` if both names are in use.
/// Also `None` if an undecodable object has one of them, because it may be the export of this Service.
pub(super) fn free_name(view: Reader<'_>, service: &Service) -> Option<ObjectName> {
    let (name, uid) = (&service.meta.name, Some(&service.meta.uid));
    if view.undecodable_in_hub(Kind::InternalServiceExport, name, uid).is_some() {
        return None;
    }
    view.names_in_hub(name, uid).find(|at| view.internal_exports().get(at).is_none())
}

/// Returns the reason why the export of a Service cannot begin. Its namespace has as many exports as it may have, or
/// other exports use all possible names of its InternalServiceExport. The condition `Valid` shows the message. The
/// agent retries the export when the reason is gone.
pub(super) fn cannot_begin(view: Reader<'_>, service: &Service) -> Option<BlockingReason> {
    let (name, uid) = (&service.meta.name, Some(&service.meta.uid));
    let known = view.complete(&[Kind::InternalServiceExport])
        && exports_in_hub(view, name).next().is_none()
        && view.undecodable_in_hub(Kind::InternalServiceExport, name, uid).is_none();
    if !known {
        return None;
    }
    let (namespace, cluster) = (&name.namespace, &view.settings().cluster);
    if !view.may_export_more(Kind::InternalServiceExport, namespace) {
        let number = view.settings().limits.exports_from_namespace(Kind::InternalServiceExport);
        let message = format!(
            "service {name} of cluster {cluster} cannot be exported: namespace {namespace} has {number} exported Services already, and may have no more. Delete \
             ServiceExports of other Services, or raise --max-exports-per-namespace of the member agent"
        );
        return Some(BlockingReason { reason: Reason::TooManyExports, message });
    }
    if free_name(view, service).is_some() {
        return None;
    }
    let taken = view.names_in_hub(name, uid).filter_map(|at| view.internal_exports().get(&at));
    let taken = taken.map(|taken| format!("{} (of Service {})", taken.meta.name, taken.reference.source));
    let taken = taken.collect::<Vec<_>>().join(", ");
    let message = format!(
        "service {name} of cluster {cluster} cannot be exported: another export in the hub uses each name that its \
         InternalServiceExport may have: {taken}. Delete one of these, or give the Service another name"
    );
    Some(BlockingReason { reason: Reason::NameHeldByAnother, message })
}
