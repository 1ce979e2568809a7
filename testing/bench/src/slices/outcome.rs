//! Slices after a reconcile. A comparison of them ignores which slice has which endpoint.

use endpointslice::model::{Endpoint, EndpointPort, EndpointSlice};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Result of a reconcile. Two results are equal if they have the same endpoints and the same slice lengths, even if the
/// endpoints are in other slices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Distinct endpoints of all slices as text, with ports and hints.
    pub endpoints: BTreeSet<String>,
    /// Number of endpoints in each slice, sorted.
    pub slice_lengths: Vec<usize>,
}

impl Outcome {
    /// Summarizes slices.
    #[must_use]
    pub fn of(slices: &[Arc<EndpointSlice>]) -> Self {
        let mut slice_lengths: Vec<_> = slices.iter().map(|slice| slice.endpoints.len()).collect();
        slice_lengths.sort_unstable();
        let mut endpoints = BTreeSet::new();
        for slice in slices {
            let mut ports = slice.ports.clone();
            ports.sort_unstable();
            endpoints.extend(slice.endpoints.iter().map(|endpoint| text(slice, &ports, endpoint)));
        }
        Self { endpoints, slice_lengths }
    }
}

fn text(slice: &EndpointSlice, ports: &[EndpointPort], endpoint: &Endpoint) -> String {
    let Endpoint { addresses, conditions, hostname, target_ref, node_name, zone, hints } = endpoint;
    let target =
        target_ref.as_deref().map(|target| (target.kind.as_str(), &target.namespace, &target.name, &target.uid));
    let (address_type, addresses) = (slice.address_type.as_str(), &addresses[..]);
    format!(
        "{address_type} {ports:?} {addresses:?} {conditions:?} {hostname:?} {target:?} {node_name:?} {zone:?} {hints:?}"
    )
}
