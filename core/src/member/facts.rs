//! Rules of facts ([`Fact`]). The view stores since when a fact is true. Grace periods and latencies begin at this
//! time.

use crate::member::import::Listing;
use crate::member::view::Reader;
use crate::member::view::value::Fact;
use crate::member::{export, import, mcs_import};
use crate::model::Kind;
use fleetnet_types::{ObjectName, Timestamp};

/// True if a fact is true now; `None` if this is unknown, so that the last state stays.
pub(super) fn is_true(view: Reader<'_>, fact: &Fact, at: Timestamp) -> Option<bool> {
    match fact {
        Fact::Exportable(service) => Some(export::exportable(view, service, at).is_some()),
        Fact::Unneeded(service) => mcs_import::is_unneeded(view, service),
        Fact::Requested(service) => Some(mcs_import::is_requested(view, service)),
        Fact::Unresolved(import) => Some(is_unresolved(view, import)),
        Fact::Fulfilled(import) => Some(import::granted_claims(view, import).next().is_some()),
        Fact::Orphaned(slice) => is_orphaned(view, slice),
        Fact::Outdated(slice) => Some(is_outdated(view, slice)),
        Fact::Unlisted(slice) => is_unlisted(view, slice),
    }
}

/// True if a ServiceImport exists and has no exporter. The grace period of the derived Service runs while this is true.
/// So it does not run before the agent has created the ServiceImport, and not while the ServiceImport is undecodable.
fn is_unresolved(view: Reader<'_>, import: &ObjectName) -> bool {
    view.imports().get(import).is_some_and(|import| import.meta.deleting || import.status.clusters.is_empty())
}

/// True if the hub does not distribute this imported slice. `None` while the list of distributed slices is not
/// complete: the slice then looks like an orphan only because its distributed slice is not listed yet.
fn is_orphaned(view: Reader<'_>, slice: &ObjectName) -> Option<bool> {
    let is_present = view.is_marked_imported(slice);
    let is_distributed = view.distributed_slice_of(slice).is_some() || view.is_source_undecodable(slice);
    if !is_present || is_distributed {
        return Some(false);
    }
    view.complete(&[Kind::EndpointSliceImport]).then_some(true)
}

/// True if no claim lists the exporting cluster of this imported slice, and only the standard API gets its distributed
/// slice. `None` if this is not known.
fn is_unlisted(view: Reader<'_>, slice: &ObjectName) -> Option<bool> {
    let is_present = view.is_marked_imported(slice);
    let Some(distributed) = view.distributed_slice_of(slice).filter(|_| is_present) else { return Some(false) };
    match import::listing(view, distributed) {
        Listing::Listed => Some(false),
        Listing::Unlisted => Some(true),
        Listing::Unknown => None,
    }
}

/// True if the hub distributes an older state of the source than this imported slice has, as after a restore of the hub
/// from a backup.
fn is_outdated(view: Reader<'_>, slice: &ObjectName) -> bool {
    let present = view.slices().get(slice).filter(|present| present.imported);
    let distributed = view.distributed_slice_of(slice);
    present
        .zip(distributed)
        .is_some_and(|(present, distributed)| present.observed_generation > Some(distributed.spec.reference.generation))
}
