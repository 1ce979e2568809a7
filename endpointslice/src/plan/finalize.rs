//! Last step of a plan: recycles slices that would be deleted, and drops creates for a Service that is being deleted.

use super::draft::{Draft, Update};
use super::{FamilyPlan, PlanRequest, Stats};
use crate::model::{EndpointSlice, Metadata};
use crate::template::SliceTemplate;
use std::sync::Arc;

/// Completes the plan of one address type. `draft` has the changes with hints. `stats` has the numbers for metrics.
pub(crate) fn finalize(
    request: &PlanRequest<'_>,
    template: &SliceTemplate<'_>,
    mut draft: Draft,
    stats: Stats,
) -> FamilyPlan {
    recycle(template, &mut draft);
    let mut suppressed_creates = 0;
    if request.service.metadata.is_terminating() {
        suppressed_creates = draft.creates.len();
        draft.creates.clear();
    }
    draft.set_trigger_time(request.trigger_time);
    FamilyPlan { draft, suppressed_creates, stats }
}

/// Recycles slices: replaces a delete and a create by one update, as long as both exist. Takes the first delete and the
/// last create. This saves a write, and consumers see one changed slice instead of a deleted and a created slice.
///
/// Only slices that this Service owns are recycled, because the garbage collector deletes any other slice together with
/// its owner.
fn recycle(template: &SliceTemplate<'_>, draft: &mut Draft) {
    let deletes = std::mem::take(&mut draft.deletes);
    for slice in deletes {
        let create = if template.owns(&slice) { draft.creates.pop() } else { None };
        match create {
            Some(create) => draft.updates.push(recycled(template, slice, create)),
            None => draft.deletes.push(slice),
        }
    }
}

fn recycled(template: &SliceTemplate<'_>, before: Arc<EndpointSlice>, create: EndpointSlice) -> Update {
    let metadata = Metadata { labels: template.labels_for(&before), ..before.metadata.clone() };
    Update { before, after: EndpointSlice { metadata, ..create }, recycled: true }
}
