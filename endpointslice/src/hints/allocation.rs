//! [`Allocation`]: how many endpoints each zone should have.
//!
//! Parts of endpoints are counted in whole units, as many to the endpoint as the cluster has thousandths of processors:
//! nothing is rounded before it is decided.

use super::event::Refusal;
use super::shares::{ZoneShares, minimum};
use crate::model::{Endpoint, EndpointSlice};
use crate::text::Text;
use std::collections::BTreeMap;

/// Endpoints by zone.
pub(super) type Counts = BTreeMap<Text, usize>;

/// How many endpoints each zone should have.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    zones: BTreeMap<Text, Quota>,
    /// How many units make an endpoint.
    unit: i128,
}

/// How many endpoints one zone should have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Quota {
    /// In units.
    pub(super) desired: i128,
    /// What is left of all endpoints when the other zones have their minimum.
    pub(super) maximum: usize,
}

impl Allocation {
    /// Shares `endpoints` out by the processors of zones, or says why that cannot be done.
    pub(super) fn new(shares: Option<&ZoneShares>, endpoints: usize) -> Result<Self, Refusal> {
        let shares = shares.ok_or(Refusal::InsufficientNodes)?;
        let (zones, total) = (shares.iter().len(), shares.total_milli());
        if zones > endpoints {
            return Err(Refusal::TooFewEndpoints { endpoints, zones });
        }
        let minima: Vec<_> = shares.iter().map(|(_, milli)| minimum(milli, total, endpoints)).collect();
        let spare = endpoints.checked_sub(minima.iter().sum()).ok_or(Refusal::Overload { endpoints, zones })?;
        let unit = i128::from(total);
        let quotas = shares.iter().zip(minima).map(|((zone, milli), minimum)| {
            let part = i128::from(milli) * endpoints as i128;
            let desired = part.max(minimum as i128 * unit);
            (zone.clone(), Quota { desired, maximum: minimum + spare })
        });
        Ok(Self { zones: quotas.collect(), unit })
    }

    /// The endpoints of a slice by the zones that they are hinted to, if its hints can stay as they are, given those of
    /// slices that stay already. They cannot if an endpoint that is ready has none, or some for a zone that needs none, or
    /// if a zone would get so many that another has less than its minimum.
    pub(super) fn counts_of(&self, slice: &EndpointSlice, staying: &Counts) -> Option<Counts> {
        let mut counts = Counts::new();
        for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
            let hints = endpoint.hints.as_deref().filter(|hints| !hints.for_zones.is_empty())?;
            // Hints for a Node come from a traffic distribution that is not in use any more.
            if !hints.for_nodes.is_empty() {
                return None;
            }
            for zone in &hints.for_zones {
                self.zones.get(zone)?;
                add(&mut counts, zone);
            }
        }
        let fits = |(zone, count): (&Text, &usize)| {
            let maximum = self.zones.get(zone).map_or(0, |quota| quota.maximum);
            count + staying.get(zone).copied().unwrap_or_default() <= maximum
        };
        counts.iter().all(fits).then_some(counts)
    }

    /// Which zones should give endpoints to which, given how many each has.
    pub(super) fn transfers(&self, counts: &Counts) -> Transfers {
        let surplus = self.zones.iter().map(|(zone, quota)| {
            let count = counts.get(zone).copied().unwrap_or_default();
            (zone, count as i128 * self.unit - quota.desired)
        });
        Transfers::balancing(surplus, self.unit)
    }
}

/// How many endpoints zones give to and get from others, by zone. Nobody does both.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Transfers {
    pub(super) giving: Counts,
    pub(super) receiving: Counts,
}

impl Transfers {
    /// Moves one endpoint after the other from the zone with the largest surplus to that with the largest lack, as long as
    /// one of them makes up for a whole endpoint and the other for half of one: a zone keeps its own endpoints rather than
    /// share them out to the last fraction. Of equal zones the first by name is taken.
    fn balancing<'a>(surplus: impl Iterator<Item = (&'a Text, i128)>, unit: i128) -> Self {
        let (mut surpluses, mut lacks): (Vec<_>, Vec<_>) = surplus.partition(|(_, surplus)| *surplus > 0);
        for (_, lack) in &mut lacks {
            *lack = -*lack;
        }
        let mut transfers = Self::default();
        while let (Some(giver), Some(receiver)) = (most(&mut surpluses), most(&mut lacks)) {
            if giver.1.max(receiver.1) < unit || 2 * giver.1.min(receiver.1) < unit {
                break;
            }
            giver.1 -= unit;
            receiver.1 -= unit;
            add(&mut transfers.giving, giver.0);
            add(&mut transfers.receiving, receiver.0);
        }
        transfers
    }

    /// Takes one transfer away that starts in `zone` and answers where it leads: to the first zone by name, and on to the
    /// next when that has all it gets. Where slices that stay hold so many endpoints that not all transfers can be made,
    /// upstream's order is random; of those that could be chosen, this one leaves most slices as they are next time.
    fn take(&mut self, zone: &Text) -> Option<Text> {
        self.giving.get(zone)?;
        let receiver = self.receiving.keys().next()?.clone();
        remove(&mut self.giving, zone);
        remove(&mut self.receiving, &receiver);
        Some(receiver)
    }

    /// Goes through ready endpoints and has `rehint` send those that a zone gives away to their new zone.
    pub(super) fn carry_out<'a>(
        mut self,
        endpoints: impl Iterator<Item = &'a mut Endpoint>,
        counts: &mut Counts,
        mut rehint: impl FnMut(&mut Endpoint, &Text),
    ) {
        for endpoint in endpoints.filter(|endpoint| endpoint.is_ready()) {
            if self.giving.is_empty() {
                return;
            }
            let receiver = endpoint.zone.as_ref().and_then(|zone| self.take(zone));
            if let (Some(zone), Some(receiver)) = (&endpoint.zone, receiver) {
                remove(counts, zone);
                add(counts, &receiver);
                rehint(endpoint, &receiver);
            }
        }
    }
}

/// The first of those that have most, if one has anything.
fn most<'a, 'b>(zones: &'b mut [(&'a Text, i128)]) -> Option<&'b mut (&'a Text, i128)> {
    // Of equal ones `max_by_key` takes the last.
    zones.iter_mut().rev().max_by_key(|(_, amount)| *amount).filter(|(_, amount)| *amount > 0)
}

pub(super) fn add(counts: &mut Counts, zone: &Text) {
    match counts.get_mut(zone) {
        Some(count) => *count += 1,
        None => _ = counts.insert(zone.clone(), 1),
    }
}

fn remove(counts: &mut Counts, zone: &Text) {
    if let Some(count) = counts.get_mut(zone) {
        *count -= 1;
        if *count == 0 {
            counts.remove(zone);
        }
    }
}

#[cfg(test)]
mod tests;
