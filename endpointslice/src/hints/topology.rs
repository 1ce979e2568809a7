//! Hints by zone shares ([`Topology`]): every zone gets endpoints for its share of the cluster's CPU.

use super::allocation::{Allocation, Counts, add};
use super::event::{HintChange, HintEvent, NoHintsReason};
use super::interner::HintInterner;
use super::shares::ZoneShares;
use super::strip::strip;
use crate::limits::HINT_EVENTS_MAX;
use crate::model::{AddressType, Endpoint, Node, Service};
use crate::per_service::PerService;
use crate::plan::{AssignHints, Draft, ServiceName, families};
use crate::text::Text;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Hints by zone shares (KEP-2433): an endpoint is for clients in its own zone. A zone with too few endpoints for its
/// share of the cluster's CPU gets some endpoints of other zones.
///
/// If no division of the endpoints prevents overload, the Service has no hints at all. Three things differ from
/// kube-controller-manager:
///
/// - An event reports only a change of hints, for each address type separately.
/// - A Service whose hints were refused is planned again when Nodes change (kubernetes/kubernetes #114215).
/// - Numbers are exact and ties are resolved by name, so the same state gives the same hints.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    shares: Option<Arc<ZoneShares>>,
    services: PerService<BTreeMap<AddressType, State>>,
    interner: HintInterner,
    events: VecDeque<HintEvent>,
}

/// State of the hints of one address type of a Service.
#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    /// The Service has hints. The value is the number of ready endpoints that have a hint for each zone.
    Hinted(Counts),
    Unavailable(NoHintsReason),
}

impl Topology {
    /// Records all Nodes and returns the Services to plan again: Services with hints whose zones are overloaded now,
    /// and Services without hints that may get hints now.
    ///
    /// Call this when a Node is added or removed, or changes its readiness, zone, role or CPU.
    #[must_use]
    pub fn set_nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<ServiceName> {
        let shares = ZoneShares::of(nodes).map(Arc::new);
        let has_changed = shares != self.shares;
        self.shares = shares;
        let must_sync = |state: &State| match state {
            State::Hinted(counts) => self.shares.as_ref().is_none_or(|shares| shares.overloads(counts)),
            // Any change of a Node may give a zone to an endpoint that has none. That is so even if `shares` does not
            // count this Node.
            State::Unavailable(why) => has_changed || *why == NoHintsReason::EndpointWithoutZone,
        };
        let affected = self.services.iter().filter(|(_, _, states)| states.values().any(must_sync));
        affected.map(|(namespace, name, _)| ServiceName { namespace: namespace.clone(), name: name.clone() }).collect()
    }

    /// Removes and returns the changes of hints since the last call.
    pub fn take_events(&mut self) -> Vec<HintEvent> {
        self.events.drain(..).collect()
    }

    /// True if the slices of `service` with this address type have topology hints.
    #[must_use]
    pub fn has_hints(&self, service: &Service, address_type: &AddressType) -> bool {
        let states = self.services.get(&service.metadata.namespace, &service.metadata.name);
        matches!(states.and_then(|states| states.get(address_type)), Some(State::Hinted(_)))
    }

    /// Forgets a Service that was deleted, or whose slices this controller no longer manages.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.services.remove(namespace, service);
    }

    /// Returns a copy with the state of one Service only, to plan that Service without changing `self`.
    #[must_use]
    pub fn for_service(&self, namespace: &Text, service: &Text) -> Self {
        let mut services = PerService::default();
        if let Some(states) = self.services.get(namespace, service) {
            *services.get_or_default(namespace, service) = states.clone();
        }
        let (shares, interner) = (self.shares.clone(), self.interner.clone());
        Self { shares, services, interner, events: VecDeque::new() }
    }

    /// Copies the state of a Service back from `planned`, the copy from [`Self::for_service`] with which the Service
    /// was planned.
    pub fn record(&mut self, namespace: &Text, service: &Text, planned: Self) {
        let Self { mut services, interner, .. } = planned;
        match services.remove(namespace, service) {
            Some(states) => *self.services.get_or_default(namespace, service) = states,
            None => self.forget(namespace, service),
        }
        self.interner = interner;
    }

    /// True if there is no recorded state of any Service.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Records that `service` no longer asks for topology hints.
    pub(super) fn turned_off(&mut self, service: &Service, address_type: &AddressType) {
        let metadata = &service.metadata;
        let Some(states) = self.services.get_mut(&metadata.namespace, &metadata.name) else { return };
        let was = states.remove(address_type);
        keep_supported(service, address_type, states);
        if states.is_empty() {
            self.services.remove(&metadata.namespace, &metadata.name);
        }
        if matches!(was, Some(State::Hinted(_))) {
            self.add_event(service, address_type, HintChange::TurnedOff);
        }
    }

    fn enter(&mut self, service: &Service, address_type: &AddressType, state: State) {
        let metadata = &service.metadata;
        let states = self.services.get_or_default(&metadata.namespace, &metadata.name);
        keep_supported(service, address_type, states);
        let change = match (states.get(address_type), &state) {
            (Some(State::Hinted(_)), State::Hinted(_)) => None,
            (_, State::Hinted(_)) => Some(HintChange::Enabled),
            (Some(State::Unavailable(before)), State::Unavailable(now)) if before.is_like(*now) => None,
            (_, State::Unavailable(now)) => Some(HintChange::Unavailable(*now)),
        };
        states.insert(address_type.clone(), state);
        if let Some(change) = change {
            self.add_event(service, address_type, change);
        }
    }

    fn add_event(&mut self, service: &Service, address_type: &AddressType, change: HintChange) {
        if self.events.len() >= HINT_EVENTS_MAX {
            self.events.pop_front();
        }
        let (namespace, name) = (service.metadata.namespace.clone(), service.metadata.name.clone());
        let service = ServiceName { namespace, name };
        self.events.push_back(HintEvent { service, address_type: address_type.clone(), change });
    }

    /// Sets the hints of the endpoints in a draft, and returns the number of endpoints with a hint for each zone. On an
    /// error, some hints are already set, and the caller removes them.
    ///
    /// An unchanged slice stays unchanged if its hints still fit the shares of the zones.
    fn hint(&mut self, draft: &mut Draft) -> Result<Counts, NoHintsReason> {
        let allocation = Allocation::new(self.shares.as_deref(), ready_endpoints(draft))?;
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

    /// Sets the hint of an endpoint to its own zone. Removes the hints of an endpoint that is not ready;
    /// kube-controller-manager keeps them.
    fn hint_own_zone(&mut self, endpoint: &mut Endpoint, counts: &mut Counts) -> Result<(), NoHintsReason> {
        endpoint.hints = None;
        if endpoint.is_ready() {
            let zone = endpoint.zone.as_ref().ok_or(NoHintsReason::EndpointWithoutZone)?;
            add(counts, zone);
            endpoint.hints = Some(self.interner.zone(zone));
        }
        Ok(())
    }
}

impl AssignHints for Topology {
    /// Sets hints or removes all of them. Call this only for a Service that asks for topology hints
    /// ([`super::is_topology_aware`]), as [`super::ServiceHints`] does.
    fn assign(&mut self, service: &Service, draft: &mut Draft) {
        let state = match self.hint(draft) {
            Ok(counts) => State::Hinted(counts),
            Err(why) => {
                strip(draft);
                State::Unavailable(why)
            }
        };
        self.enter(service, &draft.address_type, state);
    }
}

/// Forgets the state of address types that the Service no longer has. `planned` is an address type that the Service
/// has.
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
