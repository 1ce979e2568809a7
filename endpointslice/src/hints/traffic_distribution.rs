//! Hints by place ([`TrafficDistribution`]): every endpoint is for clients in its own zone or on its own Node.

use super::interner::HintInterner;
use super::strip::strip;
use crate::model::{Endpoint, EndpointSlice, Hints, Service};
use crate::plan::{AssignHints, Draft};
use crate::text::Text;
use std::sync::Arc;

/// Hints by `spec.trafficDistribution` (KEP-4444, KEP-3015): a ready endpoint is for clients in its zone, or in its
/// zone and on its Node.
///
/// The hints of an endpoint do not depend on other endpoints. An endpoint that is not ready keeps its hints: no client
/// uses them, and the slice is written again when the endpoint becomes ready. If the field is absent or has an unknown
/// value, all hints are removed.
///
/// The only state is a cache of hints, so that endpoints of one zone or Node share an allocation.
#[derive(Clone, Debug, Default)]
pub struct TrafficDistribution {
    interner: HintInterner,
}

/// Value of `spec.trafficDistribution`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Preference {
    /// Prefer endpoints in the client's zone: `PreferSameZone`, or the old value `PreferClose`.
    SameZone,
    /// Prefer endpoints on the client's Node, then endpoints in the client's zone: `PreferSameNode`.
    SameNode,
}

impl Preference {
    /// Returns the preference of `service`, or `None` if the field is absent or unknown.
    #[must_use]
    pub fn of(service: &Service) -> Option<Self> {
        match service.spec.traffic_distribution.as_deref()? {
            "PreferClose" | "PreferSameZone" => Some(Self::SameZone),
            "PreferSameNode" => Some(Self::SameNode),
            _ => None,
        }
    }

    /// Returns the zone and the Node whose clients should prefer `endpoint`. The zone is `None` if the endpoint has
    /// none. The Node is `None` unless the Service prefers endpoints on the client's Node.
    fn place(self, endpoint: &Endpoint) -> (Option<&Text>, Option<&Text>) {
        (endpoint.zone.as_ref(), endpoint.node_name.as_ref().filter(|_| self == Self::SameNode))
    }

    /// True if `endpoint` already has the hints of this preference. Always true for an endpoint that is not ready,
    /// because its hints do not matter.
    fn is_met(self, endpoint: &Endpoint) -> bool {
        if !endpoint.is_ready() {
            return true;
        }
        let (zone, node) = self.place(endpoint);
        let (zones, nodes): (&[Text], &[Text]) = match endpoint.hints.as_deref() {
            Some(Hints { for_zones, for_nodes }) => (for_zones, for_nodes),
            None => (&[], &[]),
        };
        zones == zone.map_or(&[][..], std::slice::from_ref) && nodes == node.map_or(&[][..], std::slice::from_ref)
    }
}

impl AssignHints for TrafficDistribution {
    fn assign(&mut self, service: &Service, draft: &mut Draft) {
        let Some(preference) = Preference::of(service) else { return strip(draft) };
        for slice in draft.written_mut() {
            self.hint(preference, &mut slice.endpoints);
        }
        draft.revise_unchanged(|slice| self.revised(preference, slice));
    }

    fn is_local(&self, _service: &Service) -> bool {
        true
    }
}

impl TrafficDistribution {
    fn hint(&mut self, preference: Preference, endpoints: &mut [Endpoint]) {
        for endpoint in endpoints {
            if !preference.is_met(endpoint) {
                endpoint.hints = self.hints(preference.place(endpoint));
            }
        }
    }

    fn revised(&mut self, preference: Preference, slice: &EndpointSlice) -> Option<Vec<Endpoint>> {
        if slice.endpoints.iter().all(|endpoint| preference.is_met(endpoint)) {
            return None;
        }
        let mut endpoints = slice.endpoints.clone();
        self.hint(preference, &mut endpoints);
        Some(endpoints)
    }

    fn hints(&mut self, place: (Option<&Text>, Option<&Text>)) -> Option<Arc<Hints>> {
        match place {
            (zone, Some(node)) => Some(self.interner.node(node, zone)),
            (Some(zone), None) => Some(self.interner.zone(zone)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests;
