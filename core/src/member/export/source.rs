//! Source slices of a cluster, with their content reduced to the hub's features, and their exports in the hub.

use super::eligibility::exportable;
use crate::feature_set::FeatureSet;
use crate::member::view::Reader;
use crate::model::{EndpointSlice, HubSlice, SliceContent};
use fleetnet_types::{ObjectName, Timestamp};
use std::borrow::Cow;

/// Feature set of the hub, and the time of the plan.
#[derive(Clone, Copy)]
pub(super) struct Hub {
    pub(super) features: FeatureSet,
    pub(super) now: Timestamp,
}

/// Source slice, with its content reduced to the hub's features.
pub(super) struct Source<'a> {
    pub(super) slice: &'a EndpointSlice,
    pub(super) content: Cow<'a, SliceContent>,
}

/// Returns the slice with this name, unless it is an imported slice or is being deleted.
fn own<'a>(view: Reader<'a>, slice: &ObjectName) -> Option<&'a EndpointSlice> {
    view.slices().live(slice).filter(|slice| !view.is_imported(slice))
}

/// Returns the slice with this name if the slice can be exported: the hub supports its content, and it is not an
/// imported slice.
pub(super) fn supported_slice<'a>(view: Reader<'a>, slice: &ObjectName, hub: Hub) -> Option<Source<'a>> {
    let slice = own(view, slice)?;
    Some(Source { slice, content: hub.features.slice(&slice.content)? })
}

/// Returns a slice that is not exported, if only one reason prevents its export: the hub does not support the slice's
/// content. The caller has found that the slice is not exported.
pub(super) fn unsupported_slice<'a>(view: Reader<'a>, slice: &ObjectName, hub: Hub) -> Option<&'a EndpointSlice> {
    let slice = own(view, slice)?;
    exportable(view, &slice.service_name()?, hub.now)?;
    Some(slice)
}

/// Returns the one export of this slice that the agent keeps: the one of the newest generation, without exports that
/// are being deleted. Its name does not matter (B1b and B2 in docs/contributors/behaviour.md).
pub(super) fn best<'a>(view: Reader<'a>, slice: &EndpointSlice) -> Option<&'a HubSlice> {
    exports_of(view, &slice.meta.name)
        .filter(|export| !export.meta.deleting && export.spec.reference.uid == slice.meta.uid)
        .max_by(|one, other| {
            let rank = |export: &HubSlice| (export.spec.reference.generation, export.meta.created);
            rank(one).cmp(&rank(other)).then_with(|| other.meta.name.cmp(&one.meta.name))
        })
}

/// Returns the exports of this source slice. Their names do not matter.
pub(super) fn exports_of<'a>(view: Reader<'a>, slice: &ObjectName) -> impl Iterator<Item = &'a HubSlice> {
    view.slice_exports_of(slice).filter_map(move |name| view.slice_exports().get(name))
}
