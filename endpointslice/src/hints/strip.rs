//! Removal of hints.

use crate::model::{Endpoint, EndpointSlice};
use crate::plan::Draft;

/// Removes the hints of all endpoints in a draft, which has the changes of the slices of one address type.
pub(super) fn strip(draft: &mut Draft) {
    for slice in draft.written_mut() {
        for endpoint in &mut slice.endpoints {
            endpoint.hints = None;
        }
    }
    draft.revise_unchanged(|slice| has_hints(slice).then(|| without_hints(slice)));
}

fn has_hints(slice: &EndpointSlice) -> bool {
    slice.endpoints.iter().any(|endpoint| endpoint.hints.is_some())
}

fn without_hints(slice: &EndpointSlice) -> Vec<Endpoint> {
    slice.endpoints.iter().map(|endpoint| Endpoint { hints: None, ..endpoint.clone() }).collect()
}
