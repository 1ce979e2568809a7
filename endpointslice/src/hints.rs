//! Hints: clients that should prefer an endpoint.
//!
//! A Service asks for hints in one of two ways. The annotation has priority:
//!
//! | the Service has | hints | by |
//! |---|---|---|
//! | the annotation `service.kubernetes.io/topology-mode: Auto` (KEP-2433) | every zone gets endpoints for its share of the cluster's CPU, its own endpoints first | [`Topology`] |
//! | `spec.trafficDistribution` (KEP-4444, KEP-3015) | every endpoint is for clients in its own zone or on its own Node | [`TrafficDistribution`] |
//! | neither | none; existing hints are removed | [`TrafficDistribution`] |
//!
//! [`ServiceHints`] selects the way for each Service. All three types implement [`AssignHints`], a parameter of
//! [`crate::plan::plan`].

mod allocation;
mod event;
mod interner;
mod quantity;
mod shares;
mod strip;
mod topology;
mod traffic_distribution;

pub use event::{HintChange, HintEvent, NoHintsReason, Severity};
pub use shares::ZoneShares;
pub use topology::Topology;
pub use traffic_distribution::{Preference, TrafficDistribution};

use crate::model::{Node, Service};
use crate::names::{ANNOTATION_TOPOLOGY_HINTS, ANNOTATION_TOPOLOGY_MODE};
use crate::plan::{AssignHints, Draft, ServiceName};
use crate::text::Text;
use strip::strip;

/// Sets the hints of each Service in the way for which the Service asks. A Service that asks for no hints gets none.
#[derive(Clone, Debug, Default)]
pub struct ServiceHints {
    /// Hints by each zone's share of the cluster's CPU (KEP-2433), for Services with the topology annotation. If this
    /// is `None`, the annotation value `Auto` turns off all hints, including those of a traffic distribution.
    pub topology: Option<Topology>,
    /// Hints by `spec.trafficDistribution`: for clients in the endpoint's own zone or on its own Node.
    pub traffic_distribution: TrafficDistribution,
}

impl ServiceHints {
    /// Returns hints that support the annotation and the traffic distribution. Before the first [`Self::set_nodes`], no
    /// Service gets hints by the annotation.
    #[must_use]
    pub fn new() -> Self {
        Self { topology: Some(Topology::default()), ..Self::default() }
    }

    /// Records all Nodes of the cluster and returns the Services to plan again, like [`Topology::set_nodes`].
    #[must_use]
    pub fn set_nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<ServiceName> {
        self.topology.as_mut().map(|topology| topology.set_nodes(nodes)).unwrap_or_default()
    }

    /// Forgets a Service that was deleted, or whose slices this controller no longer manages.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        if let Some(topology) = &mut self.topology {
            topology.forget(namespace, service);
        }
    }

    /// Returns a copy with the state of one Service only, to plan that Service without changing `self`.
    #[must_use]
    pub fn for_service(&self, namespace: &Text, service: &Text) -> Self {
        let topology = self.topology.as_ref().map(|topology| topology.for_service(namespace, service));
        Self { topology, traffic_distribution: self.traffic_distribution.clone() }
    }

    /// Copies the state of a Service back from `planned`, the copy from [`Self::for_service`] with which the Service
    /// was planned.
    pub fn record(&mut self, namespace: &Text, service: &Text, planned: Self) {
        let Self { topology, traffic_distribution } = planned;
        if let (Some(topology), Some(planned)) = (&mut self.topology, topology) {
            topology.record(namespace, service, planned);
        }
        self.traffic_distribution = traffic_distribution;
    }

    /// Removes and returns the changes of hints since the last call.
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

    /// True if the hints of a slice depend only on that slice. False for topology hints, because each zone gets its
    /// share of the endpoints of all slices.
    fn is_local(&self, service: &Service) -> bool {
        self.topology.is_none() || !is_topology_aware(service)
    }
}

/// True if the annotation of `service` asks for topology hints, with the value `Auto` or `auto`. The annotation's old
/// name has priority over its new one, also with a value that turns hints off.
#[must_use]
pub fn is_topology_aware(service: &Service) -> bool {
    let annotations = &service.metadata.annotations;
    let mode = annotations.get(ANNOTATION_TOPOLOGY_HINTS).or_else(|| annotations.get(ANNOTATION_TOPOLOGY_MODE));
    mode.is_some_and(|mode| matches!(mode.as_str(), "Auto" | "auto"))
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
