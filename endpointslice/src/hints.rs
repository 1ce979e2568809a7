//! Hints: which clients should prefer an endpoint.
//!
//! A Service asks for them in one of two ways, of which the annotation wins:
//!
//! | the Service has | hints | by |
//! |---|---|---|
//! | the annotation `service.kubernetes.io/topology-mode: Auto` (KEP-2433) | every zone gets endpoints for its share of the cluster's processors, its own first | [`Topology`] |
//! | `spec.trafficDistribution` (KEP-4444, KEP-3015) | every endpoint is for its own zone, or Node | [`TrafficDistribution`] |
//! | neither | none; those that a slice has are removed | [`TrafficDistribution`] |
//!
//! [`ServiceHints`] chooses. All three are [`AssignHints`] for [`crate::plan::plan`].

mod allocation;
mod event;
mod interner;
mod quantity;
mod shares;
mod topology;
mod traffic_distribution;

pub use event::{HintChange, HintEvent, Refusal, Severity};
pub use shares::ZoneShares;
pub use topology::Topology;
pub use traffic_distribution::{Preference, TrafficDistribution};

use crate::model::{Endpoint, EndpointSlice, Node, Service};
use crate::names::{ANNOTATION_TOPOLOGY_HINTS, ANNOTATION_TOPOLOGY_MODE};
use crate::plan::{AssignHints, Draft, ServiceName};

/// Which of the two ways a Service asks for, and nothing else if it asks for none.
#[derive(Clone, Debug, Default)]
pub struct ServiceHints {
    /// The shares of zones. Without them `Auto` in the annotation only turns hints off, those of a traffic distribution
    /// too.
    pub topology: Option<Topology>,
    /// By each endpoint's own place.
    pub traffic_distribution: TrafficDistribution,
}

impl ServiceHints {
    /// Both ways. Zones have no shares before [`Topology::set_nodes`].
    #[must_use]
    pub fn new() -> Self {
        Self { topology: Some(Topology::default()), ..Self::default() }
    }

    /// As [`Topology::set_nodes`]: takes note of all Nodes, and answers which Services must be planned again.
    #[must_use]
    pub fn set_nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<ServiceName> {
        self.topology.as_mut().map(|topology| topology.set_nodes(nodes)).unwrap_or_default()
    }

    /// Forgets a Service that is gone, or whose slices are no longer made.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        if let Some(topology) = &mut self.topology {
            topology.forget(namespace, service);
        }
    }

    /// What has happened to hints since the last call.
    pub fn take_events(&mut self) -> Vec<HintEvent> {
        self.topology.as_mut().map(Topology::take_events).unwrap_or_default()
    }
}

impl AssignHints for ServiceHints {
    fn assign(&mut self, service: &Service, draft: &mut Draft) {
        match &mut self.topology {
            Some(topology) if is_topology_aware(service) => return topology.assign(service, draft),
            Some(topology) => topology.turned_off(service, &draft.address_type),
            None if is_topology_aware(service) => return strip(draft),
            None => {}
        }
        self.traffic_distribution.assign(service, draft);
    }

    /// The share of a zone is one of all endpoints, so that its hints depend on all slices.
    fn is_local(&self, service: &Service) -> bool {
        self.topology.is_none() || !is_topology_aware(service)
    }
}

/// Whether `service` asks for hints by the shares of zones: `Auto` or `auto` and no other value. The annotation's old name
/// wins over its new one, also with a value that turns it off.
#[must_use]
pub fn is_topology_aware(service: &Service) -> bool {
    let annotations = &service.metadata.annotations;
    let mode = annotations.get(ANNOTATION_TOPOLOGY_HINTS).or_else(|| annotations.get(ANNOTATION_TOPOLOGY_MODE));
    mode.is_some_and(|mode| matches!(mode.as_str(), "Auto" | "auto"))
}

/// Takes all hints away.
pub(crate) fn strip(draft: &mut Draft) {
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

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
