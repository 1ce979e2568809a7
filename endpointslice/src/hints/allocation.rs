//! Number of endpoints that each zone should have: [`Allocation`].
//!
//! The share of a zone is often not a whole number of endpoints. To avoid rounding, this module counts in smaller
//! units. One endpoint is as many units as all zones together have thousandths of a CPU. So every share is a whole
//! number of units.

use super::event::NoHintsReason;
use super::shares::{ZoneShares, minimum};
use crate::model::{Endpoint, EndpointSlice};
use crate::text::Text;
use std::collections::BTreeMap;

/// Number of endpoints for each zone.
pub(super) type Counts = BTreeMap<Text, usize>;

/// Number of endpoints that each zone should have.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    zones: BTreeMap<Text, Quota>,
    /// Number of units in one endpoint. A unit is a fraction of an endpoint, so small that the share of each zone is a
    /// whole number of units.
    unit: i128,
}

/// Number of endpoints that one zone should have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Quota {
    /// Number of endpoints that the zone should have by its share of the CPU, multiplied by `Allocation::unit` to avoid
    /// fractions.
    pub(super) desired: i128,
    /// Largest number of endpoints that the zone may have, so that every other zone still gets its minimum.
    pub(super) maximum: usize,
}

impl Allocation {
    /// Divides the number of `endpoints` in proportion to the CPU of the zones. Returns the reason if a division
    /// without overload is impossible.
    pub(super) fn new(shares: Option<&ZoneShares>, endpoints: usize) -> Result<Self, NoHintsReason> {
        let shares = shares.ok_or(NoHintsReason::InsufficientNodes)?;
        let (zones, total) = (shares.iter().len(), shares.total_milli());
        if zones > endpoints {
            return Err(NoHintsReason::TooFewEndpoints { endpoints, zones });
        }
        let minima: Vec<_> = shares.iter().map(|(_, milli)| minimum(milli, total, endpoints)).collect();
        let spare = endpoints.checked_sub(minima.iter().sum()).ok_or(NoHintsReason::Overload { endpoints, zones })?;
        let unit = i128::from(total);
        let quotas = shares.iter().zip(minima).map(|((zone, milli), minimum)| {
            let part = i128::from(milli) * endpoints as i128;
            let desired = part.max(minimum as i128 * unit);
            (zone.clone(), Quota { desired, maximum: minimum + spare })
        });
        Ok(Self { zones: quotas.collect(), unit })
    }

    /// Returns for each zone the number of ready endpoints of this slice that have a hint for the zone. Returns `None`
    /// if the slice needs new hints. `staying` has the same numbers for the slices whose hints are known to stay.
    ///
    /// The slice needs new hints in four cases:
    ///
    /// - A ready endpoint has no hint for a zone.
    /// - A hint is for a Node.
    /// - A hint is for a zone that has no share of the CPU.
    /// - A zone would exceed its maximum. Another zone could then not get its minimum.
    pub(super) fn counts_of(&self, slice: &EndpointSlice, staying: &Counts) -> Option<Counts> {
        let mut counts = Counts::new();
        for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
            let hints = endpoint.hints.as_deref().filter(|hints| !hints.for_zones.is_empty())?;
            // Hints for Nodes must be removed: they come from a traffic distribution that the Service no longer asks
            // for.
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

    /// Returns for each zone the number of endpoints that it must give to other zones or receive from them. `counts`
    /// has the present number of endpoints of each zone.
    pub(super) fn transfers(&self, counts: &Counts) -> Transfers {
        let surplus = self.zones.iter().map(|(zone, quota)| {
            let count = counts.get(zone).copied().unwrap_or_default();
            (zone, count as i128 * self.unit - quota.desired)
        });
        Transfers::balancing(surplus, self.unit)
    }
}

/// Number of endpoints that each zone still gives to other zones or receives from other zones. No zone does both.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Transfers {
    pub(super) giving: Counts,
    pub(super) receiving: Counts,
}

impl Transfers {
    /// Computes the transfers that balance the zones. Moves one endpoint at a time, from the zone with the largest
    /// surplus to the zone with the largest deficit. Among equal zones, selects the first by name.
    ///
    /// Stops when surplus and deficit are both less than one endpoint, or one of the two is less than half an endpoint.
    /// So zones do not exchange endpoints for small fractions. `unit` is the number that means one endpoint in
    /// `surplus`.
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

    /// Records that `zone` gives away one endpoint, and returns the zone that receives the endpoint: the first by name
    /// that still lacks endpoints. Returns `None` if `zone` has no endpoint to give.
    ///
    /// An endpoint of a slice that stays unchanged cannot get a new hint. So perhaps not all transfers are possible,
    /// and their order matters. With the order by name, the next plan leaves most slices unchanged. In
    /// kube-controller-manager the order is random.
    fn take(&mut self, zone: &Text) -> Option<Text> {
        self.giving.get(zone)?;
        let receiver = self.receiving.keys().next()?.clone();
        remove(&mut self.giving, zone);
        remove(&mut self.receiving, &receiver);
        Some(receiver)
    }

    /// Calls `rehint` for each ready endpoint that a zone gives to another zone. The argument of `rehint` is the zone
    /// that receives the endpoint. Updates `counts`, the number of endpoints of each zone.
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

/// Returns the first zone with the largest amount. Returns `None` if no amount is positive.
fn most<'a, 'b>(zones: &'b mut [(&'a Text, i128)]) -> Option<&'b mut (&'a Text, i128)> {
    // `max_by_key` returns the last of equal items, so search backwards for the first.
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
