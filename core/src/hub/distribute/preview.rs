//! Previews: a change of a distributed slice goes to its importer over the slice stream first, and to the object later.
//!
//! ```text
//! change ── preview ──► importer ── acknowledgement ──┐
//!    └── object: `--object-lag` after the first change, or 1 s after a preview without an acknowledgement
//! ```
//!
//! Objects are the truth. Only the object shows a first import, an empty slice, another source slice and a deletion.
//! Generations of the source slice order objects and previews, so an importer never goes back to an older state.

use crate::handover;
use crate::hub::view::previews::Lagging;
use crate::hub::view::reader::Reader;
use crate::limits::PREVIEW_ACKNOWLEDGEMENT_MICROS;
use crate::model::{HubSlice, HubSliceSpec, SliceContent};
use crate::plan::{Patch, Plan, Preview, Write};
use fleetnet_types::Timestamp;

/// Plans a distributed slice whose object has other content than `desired`.
pub(super) fn change(view: Reader<'_>, object: &HubSlice, desired: HubSliceSpec, now: Timestamp) -> Plan {
    let at = &object.meta.name;
    let lagging = view.lagging(at);
    let last = lagging.and_then(|lagging| lagging.sent.as_ref());
    let is_sent = last.is_some_and(|last| last.spec == desired);
    let newest = lagging.and_then(Lagging::generation).max(Some(object.spec.reference.generation));
    let is_newer = Some(desired.reference.generation) > newest;
    let may_preview = view.has_stream(&at.member_namespace()) && is_change_of_imported(object, &desired);
    let may_send = is_newer && !view.is_paused(&desired.reference.cluster, now);
    if !may_preview || !is_sent && !may_send {
        return write(view, object, desired);
    }
    let since = lagging.map_or(now, |lagging| lagging.since);
    let unacknowledged_since = last.and_then(|last| last.unacknowledged_since).or((!is_sent).then_some(now));
    let latest = since.plus_micros(view.object_lag_micros());
    let until = unacknowledged_since.map(|since: Timestamp| since.plus_micros(PREVIEW_ACKNOWLEDGEMENT_MICROS));
    let until = until.map_or(latest, |until| until.min(latest));
    let preview = (!is_sent).then(|| Preview::Show(desired.clone()));
    let plan = if now < until { Plan { again: Some(until), ..Plan::default() } } else { write(view, object, desired) };
    Plan { preview, ..plan }
}

/// Returns the plan of an object that has its desired content. If the importer has a newer preview, its stream ends.
pub(super) fn settled(view: Reader<'_>, object: &HubSlice) -> Plan {
    let is_previewed = view.last_preview(&object.meta.name).is_some();
    Plan { preview: is_previewed.then_some(Preview::EndStream), ..Plan::default() }
}

fn write(view: Reader<'_>, object: &HubSlice, desired: HubSliceSpec) -> Plan {
    let Some(sent) = view.last_preview(&object.meta.name) else {
        return Plan::one(patch(object, desired));
    };
    let is_older = sent.spec.reference.generation > desired.reference.generation;
    let preview = is_older.then_some(Preview::EndStream);
    Plan { preview, ..Plan::one(patch(object, desired)) }
}

fn patch(object: &HubSlice, desired: HubSliceSpec) -> Write {
    Write::patch(&object.meta, Patch::EndpointSliceImport(desired))
}

/// True if the importer has imported this slice, and `desired` is a later state of the same source slice with
/// endpoints.
fn is_change_of_imported(object: &HubSlice, desired: &HubSliceSpec) -> bool {
    object.meta.finalizers.ours
        && !object.misnamed
        && !desired.content.endpoints.is_empty()
        && object.spec.is_of_same_slice(desired)
}

/// Returns the content that the importer has of a distributed slice, or gets next.
pub(super) fn sent_content<'a>(view: Reader<'a>, object: &'a HubSlice) -> &'a SliceContent {
    view.last_preview(&object.meta.name).map_or(&object.spec.content, |sent| &sent.spec.content)
}

/// Returns the content of a distributed slice that the importer certainly has: that of the object, or of an
/// acknowledged preview.
pub(super) fn acknowledged_content<'a>(view: Reader<'a>, object: &'a HubSlice) -> &'a SliceContent {
    let sent = view.lagging(&object.meta.name).and_then(|lagging| lagging.sent.as_ref());
    let acknowledged = sent.filter(|sent| sent.unacknowledged_since.is_none());
    acknowledged.map_or(&object.spec.content, |sent| &sent.spec.content)
}

/// True if a change of a distributed slice removes the last endpoint that the importer has of it.
pub(super) fn empties(view: Reader<'_>, object: &HubSlice, desired: &SliceContent) -> bool {
    handover::empties(sent_content(view, object), desired) // a preview is never empty, so the last one decides
}
