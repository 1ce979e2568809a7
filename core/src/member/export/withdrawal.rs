//! Withdrawal: the rules that decide when an exported slice is removed from the hub.
//!
//! The member agent deletes the EndpointSliceExport of a source slice if one of these is true:
//!
//! - The source slice was deleted or became an imported slice, or its content is not supported by the hub.
//! - The slices of its Service must not be exported: [`exportable`] returns `None`, for example after the ServiceExport
//!   was deleted, its weight was set to 0, or the export lost a conflict.
//!
//! Two cases delay the deletion: another slice of the Service replaces this slice and is not exported yet (handover),
//! or the agent only assumes that the hub does not support the content. The hub agent then deletes the
//! EndpointSliceImports, and the importing members delete the imported slices.

use super::eligibility::{exportable, is_undecided};
use super::source::{Hub, best, exports_of, supported_slice, unsupported_slice};
use crate::handover;
use crate::member::view::Reader;
use crate::model::{HubSlice, Kind};
use crate::plan::{Plan, Write};
use fleetnet_types::ObjectName;

/// Plans the removal of all exports of a source slice, except those that must stay for now.
pub(super) fn withdraw_all(view: Reader<'_>, slice: &ObjectName, hub: Hub) -> Plan {
    // The existing export stays if the agent only assumes that the hub does not support the slice.
    let kept = unsupported_slice(view, slice, hub).filter(|slice| hub.features.keeps(&slice.content));
    let kept = kept.map(|slice| &slice.meta.uid);
    let stays = |export: &&HubSlice| {
        let is_kept = kept == Some(&export.spec.reference.uid);
        export.meta.deleting || is_kept || replacement_pending(view, export, hub)
    };
    let withdrawn = exports_of(view, slice).filter(|export| !stays(export));
    Plan::of(withdrawn.map(|export| Write::delete(Kind::EndpointSliceExport, &export.meta)))
}

/// True if the export `removed` must stay until its replacement is exported: another slice of the Service that gets its
/// endpoints. False if the Service is not exported any more.
pub(super) fn replacement_pending(view: Reader<'_>, removed: &HubSlice, hub: Hub) -> bool {
    let service = &removed.spec.owner;
    let may_be_exported = || view.is_export_unknown(service) || is_undecided(view, service, hub.now);
    if exportable(view, service, hub.now).is_none() && !may_be_exported() {
        return false;
    }
    view.slices_of(service).filter_map(|slice| supported_slice(view, slice, hub)).any(|source| {
        let present = best(view, source.slice).map(|export| &*export.spec.content);
        handover::replacement_pending(present, &source.content, &removed.spec.content)
    })
}
