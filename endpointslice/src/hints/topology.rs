//! [`Topology`]: every zone gets endpoints for its share of the cluster's processors.

use super::allocation::{Allocation, Counts, add};
use super::event::{HintChange, HintEvent, Refusal};
use super::interner::HintInterner;
use super::shares::ZoneShares;
use super::strip;
use crate::model::{AddressType, Endpoint, Node, Service};
use crate::per_service::PerService;
use crate::plan::{AssignHints, Draft, ServiceName, families};
use std::collections::{BTreeMap, VecDeque};

/// How many events are kept for one who does not take them; the oldest are dropped.
const MAX_EVENTS: usize = 1024;

/// Hints by the shares of zones (KEP-2433): an endpoint is for clients in its own zone, unless another zone has too few
/// for its share of the cluster's processors and gets some that are elsewhere.
///
/// Where endpoints cannot be shared out well, a Service has no hints at all. Three things differ from upstream: events
/// tell changes only, for each address type on its own; a Service that was refused its hints is planned again when Nodes
/// change (kubernetes/kubernetes #114215); and the numbers are exact and ties are broken by name, so that the same world
/// has the same hints.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    shares: Option<ZoneShares>,
    services: PerService<BTreeMap<AddressType, State>>,
    interner: HintInterner,
    events: VecDeque<HintEvent>,
}

/// How it stands with the hints of one address type.
#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    /// Ready endpoints by the zone that they are hinted to.
    Hinted(Counts),
    Refused(Refusal),
}

impl Topology {
    /// Takes note of all Nodes, and answers which Services must be planned again: those with hints whose zones would be
    /// overloaded now, and those without that may have them now. To be called when a Node comes, goes, or changes its
    /// readiness, zone, role or processors.
    #[must_use]
    pub fn set_nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<ServiceName> {
        let shares = ZoneShares::of(nodes);
        let has_changed = shares != self.shares;
        self.shares = shares;
        let must_sync = |state: &State| match state {
            State::Hinted(counts) => self.shares.as_ref().is_none_or(|shares| shares.overloads(counts)),
            // The zone of an endpoint is that of its Node, whether or not that Node counts for the shares.
            State::Refused(why) => has_changed || *why == Refusal::EndpointWithoutZone,
        };
        let affected = self.services.iter().filter(|(_, _, states)| states.values().any(must_sync));
        affected.map(|(namespace, name, _)| ServiceName { namespace: namespace.clone(), name: name.clone() }).collect()
    }

    /// What has happened to hints since the last call.
    pub fn take_events(&mut self) -> Vec<HintEvent> {
        self.events.drain(..).collect()
    }

    /// Whether `service` has hints by this for slices of `address_type`.
    #[must_use]
    pub fn has_hints(&self, service: &Service, address_type: &AddressType) -> bool {
        let states = self.services.get(&service.metadata.namespace, &service.metadata.name);
        matches!(states.and_then(|states| states.get(address_type)), Some(State::Hinted(_)))
    }

    /// Forgets a Service that is gone, or whose slices are no longer made.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.services.remove(namespace, service);
    }

    /// Whether it remembers no Service.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Takes note that `service` does not ask for hints any more.
    pub(super) fn turned_off(&mut self, service: &Service, address_type: &AddressType) {
        let metadata = &service.metadata;
        let Some(states) = self.services.get_mut(&metadata.namespace, &metadata.name) else { return };
        let was = states.remove(address_type);
        keep_supported(service, address_type, states);
        if states.is_empty() {
            self.services.remove(&metadata.namespace, &metadata.name);
        }
        if matches!(was, Some(State::Hinted(_))) {
            self.tell(service, address_type, HintChange::TurnedOff);
        }
    }

    fn enter(&mut self, service: &Service, address_type: &AddressType, state: State) {
        let metadata = &service.metadata;
        let states = self.services.get_or_default(&metadata.namespace, &metadata.name);
        keep_supported(service, address_type, states);
        let change = match (states.get(address_type), &state) {
            (Some(State::Hinted(_)), State::Hinted(_)) => None,
            (_, State::Hinted(_)) => Some(HintChange::Enabled),
            (Some(State::Refused(before)), State::Refused(now)) if before.is_like(*now) => None,
            (_, State::Refused(now)) => Some(HintChange::Refused(*now)),
        };
        states.insert(address_type.clone(), state);
        if let Some(change) = change {
            self.tell(service, address_type, change);
        }
    }

    fn tell(&mut self, service: &Service, address_type: &AddressType, change: HintChange) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        let (namespace, name) = (service.metadata.namespace.clone(), service.metadata.name.clone());
        let service = ServiceName { namespace, name };
        self.events.push_back(HintEvent { service, address_type: address_type.clone(), change });
    }

    /// Gives hints to the endpoints of `draft`, or says why they cannot have any; what it has changed then is to be
    /// stripped. Slices that would stay as they are do so if their hints are good enough.
    fn hint(&mut self, draft: &mut Draft) -> Result<Counts, Refusal> {
        let allocation = Allocation::new(self.shares.as_ref(), ready_endpoints(draft))?;
        let mut counts = Counts::new();
        let mut revised = Vec::with_capacity(draft.unchanged.len());
        for slice in &draft.unchanged {
            let staying = allocation.counts_of(slice, &counts);
            revised.push(staying.is_none().then(|| slice.endpoints.clone()));
            for (zone, count) in staying.into_iter().flatten() {
                *counts.entry(zone).or_default() += count;
            }
        }
        let written = draft.written_mut().map(|slice| &mut slice.endpoints);
        let mut lists: Vec<_> = written.chain(revised.iter_mut().flatten()).collect();
        for endpoint in lists.iter_mut().flat_map(|list| list.iter_mut()) {
            self.hint_own_zone(endpoint, &mut counts)?;
        }
        let transfers = allocation.transfers(&counts);
        transfers.carry_out(lists.into_iter().flatten(), &mut counts, |endpoint, zone| {
            endpoint.hints = Some(self.interner.zone(zone));
        });
        let mut revised = revised.into_iter();
        draft.revise_unchanged(|slice| revised.next().flatten().filter(|endpoints| *endpoints != slice.endpoints));
        Ok(counts)
    }

    /// Hints `endpoint` to its own zone. One that is not ready has no hints: upstream leaves it those that it had.
    fn hint_own_zone(&mut self, endpoint: &mut Endpoint, counts: &mut Counts) -> Result<(), Refusal> {
        endpoint.hints = None;
        if endpoint.is_ready() {
            let zone = endpoint.zone.as_ref().ok_or(Refusal::EndpointWithoutZone)?;
            add(counts, zone);
            endpoint.hints = Some(self.interner.zone(zone));
        }
        Ok(())
    }
}

impl AssignHints for Topology {
    /// For a Service that asks for it ([`super::is_topology_aware`]); [`super::ServiceHints`] sees to that.
    fn assign(&mut self, service: &Service, draft: &mut Draft) {
        let state = match self.hint(draft) {
            Ok(counts) => State::Hinted(counts),
            Err(why) => {
                strip(draft);
                State::Refused(why)
            }
        };
        self.enter(service, &draft.address_type, state);
    }
}

/// Forgets address types that the Service does not have any more; `planned` is one that it has.
fn keep_supported(service: &Service, planned: &AddressType, states: &mut BTreeMap<AddressType, State>) {
    if states.keys().any(|address_type| address_type != planned) {
        let supported = families(service);
        states.retain(|address_type, _| supported.iter().any(|family| family.address_type() == *address_type));
    }
}

fn ready_endpoints(draft: &Draft) -> usize {
    let updates = draft.updates.iter().map(|update| &update.after);
    let unchanged = draft.unchanged.iter().map(|slice| &**slice);
    let slices = draft.creates.iter().chain(updates).chain(unchanged);
    slices.flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.is_ready()).count()
}

#[cfg(test)]
mod tests;
