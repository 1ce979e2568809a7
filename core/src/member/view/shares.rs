//! Shares: how many slices and endpoints of a Service this cluster imports from one exporting cluster. Without a limit,
//! one exporter could fill the etcd of the importing clusters, and the rules of kube-proxy on their nodes.
//!
//! Slices whose import has begun come first, then those with the first names. So a slice that is imported stays when
//! others come.

use crate::limits::{IMPORTED_ENDPOINTS, IMPORTED_SLICES};
use crate::model::{HubSlice, SliceContent};
use fleetnet_types::{ClusterId, ObjectName, Text};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Values of the flags `--max-imported-slices` and `--max-imported-endpoints`: limits of one Service from one exporting
/// cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportLimits {
    pub slices: usize,
    /// Maximum number of ready and draining endpoints.
    pub endpoints: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self { slices: IMPORTED_SLICES, endpoints: IMPORTED_ENDPOINTS }
    }
}

/// Part of a distributed slice that is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    Whole,
    /// Only so many endpoints.
    First(usize),
    Nothing,
}

/// Place of a slice in the order of its share: false if its import has begun, and its name.
type Place = (bool, Text);

/// Service and exporting cluster of a share.
pub(super) type Of = (ObjectName, ClusterId);

/// Shares of all Services and exporting clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares(BTreeMap<Of, Share>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Share {
    /// Numbers of endpoints of the distributed slices.
    slices: BTreeMap<Place, usize>,
    endpoints: usize,
    /// `None` while all is imported.
    excess: Option<Excess>,
}

/// Part of a share that is not imported.
#[derive(Clone, Debug, PartialEq)]
struct Excess {
    /// Last slice that is imported. Those after it are not imported.
    last: Option<Place>,
    /// Number of endpoints that are imported of the last slice, if it is not whole.
    of_last: Option<usize>,
}

/// Slice in a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    of: Of,
    place: Place,
    endpoints: usize,
}

impl Counted {
    /// Returns what counts of a distributed slice; `None` while it is being deleted.
    pub(super) fn of(slice: &HubSlice) -> Option<Self> {
        let content = &slice.spec.content;
        (!slice.meta.deleting).then(|| Self {
            of: (slice.spec.owner.clone(), slice.spec.reference.cluster.clone()),
            place: (!slice.meta.finalizers.ours, slice.meta.name.name.clone()),
            endpoints: content.endpoints.len() + content.draining.len(),
        })
    }
}

impl Shares {
    /// Counts a distributed slice, which was `before` and is `after` now. Adds the names of the slices of which another
    /// part is imported now.
    pub(super) fn shift(
        &mut self,
        before: Option<&Counted>,
        after: Option<&Counted>,
        limits: ImportLimits,
        changed: &mut BTreeSet<Text>,
    ) {
        if let Some(counted) = before
            && let Some(share) = self.0.get_mut(&counted.of)
        {
            share.slices.remove(&counted.place);
            share.endpoints -= counted.endpoints;
        }
        if let Some(counted) = after {
            let share = self.0.entry(counted.of.clone()).or_default();
            share.slices.insert(counted.place.clone(), counted.endpoints);
            share.endpoints += counted.endpoints;
        }
        let of: BTreeSet<&Of> = before.iter().chain(&after).map(|counted| &counted.of).collect();
        for of in of {
            let Some(share) = self.0.get_mut(of) else { continue };
            let excess = share.excess_over(limits);
            let excess_before = std::mem::replace(&mut share.excess, excess);
            share.differences(excess_before.as_ref(), changed);
            if share.slices.is_empty() {
                self.0.remove(of);
            }
        }
    }

    /// Returns the part of a distributed slice that is imported.
    pub(super) fn grant(&self, slice: &HubSlice) -> Grant {
        let counted = Counted::of(slice);
        let share = counted.as_ref().and_then(|counted| Some((self.0.get(&counted.of)?, &counted.place)));
        share.map_or(Grant::Whole, |(share, place)| grant(share.excess.as_ref(), place))
    }
}

fn grant(excess: Option<&Excess>, place: &Place) -> Grant {
    let Some(excess) = excess else { return Grant::Whole };
    if excess.last.as_ref().is_none_or(|last| place > last) {
        return Grant::Nothing;
    }
    excess.of_last.filter(|_| excess.last.as_ref() == Some(place)).map_or(Grant::Whole, Grant::First)
}

impl Share {
    /// Returns what is not imported. The steps are at most those of the limit of slices.
    fn excess_over(&self, limits: ImportLimits) -> Option<Excess> {
        if self.slices.len() <= limits.slices && self.endpoints <= limits.endpoints {
            return None;
        }
        let (mut room, mut excess) = (limits.endpoints, Excess { last: None, of_last: None });
        for (place, endpoints) in self.slices.iter().take(limits.slices) {
            // A slice whose import has not begun comes whole or not at all. So it takes no room of those that are
            // imported.
            let is_new = place.0 && *endpoints > room && excess.last.is_some();
            if is_new || room == 0 && *endpoints > 0 {
                break;
            }
            excess.last = Some(place.clone());
            if *endpoints > room {
                excess.of_last = Some(room);
                break;
            }
            room -= endpoints;
        }
        Some(excess)
    }

    /// Adds the names of the slices whose grant is another than with the excess `before`.
    fn differences(&self, before: Option<&Excess>, changed: &mut BTreeSet<Text>) {
        let after = self.excess.as_ref();
        // Only slices from the earlier of the two last ones on can have another grant.
        let last = |excess: Option<&Excess>| excess.map(|excess| excess.last.clone());
        let first = match (last(before), last(after)) {
            (Some(one), Some(other)) => one.min(other),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        let from = first.map_or(Bound::Unbounded, Bound::Included);
        for (place, _) in self.slices.range((from, Bound::Unbounded)) {
            let grants = [grant(before, place), grant(after, place)];
            if grants == [Grant::Nothing; 2] {
                break; // the same holds for all slices after it
            }
            if grants[0] != grants[1] {
                changed.insert(place.1.clone());
            }
        }
    }
}

/// Returns the part of a slice's content that is imported.
pub(super) fn granted(content: Cow<'_, SliceContent>, grant: Grant) -> Cow<'_, SliceContent> {
    let number = match grant {
        Grant::Whole => return content,
        Grant::First(number) => number,
        Grant::Nothing => 0,
    };
    let SliceContent { address_type, endpoints, draining, ports } = &*content;
    let ready = number.min(endpoints.len());
    let draining = &draining[..draining.len().min(number - ready)];
    Cow::Owned(SliceContent {
        address_type: address_type.clone(),
        endpoints: endpoints[..ready].to_vec(),
        draining: draining.to_vec(),
        ports: ports.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ImportLimits = ImportLimits { slices: 2, endpoints: 1 };

    fn of() -> Of {
        (ObjectName::new("work", "app"), "member-2".into())
    }

    /// Returns slice `at` with this number of endpoints, and if its import has begun.
    fn counted(at: usize, (has_begun, endpoints): (bool, usize)) -> Counted {
        Counted { of: of(), place: (!has_begun, format!("app-{at}").as_str().into()), endpoints }
    }

    /// Returns the grants in the order of the places.
    fn expected(places: &BTreeMap<Place, usize>) -> BTreeMap<Text, Grant> {
        let (mut room, mut is_over, mut grants) = (LIMITS.endpoints, false, BTreeMap::new());
        for (number, ((is_new, name), endpoints)) in places.iter().enumerate() {
            let grant = if is_over || number == LIMITS.slices {
                Grant::Nothing
            } else if *endpoints <= room {
                Grant::Whole
            } else if room > 0 && (!is_new || number == 0) {
                Grant::First(room)
            } else {
                Grant::Nothing
            };
            is_over |= grant != Grant::Whole;
            room = room.saturating_sub(*endpoints);
            grants.insert(name.clone(), grant);
        }
        grants
    }

    fn grants(share: &Share) -> BTreeMap<Text, Grant> {
        share.slices.keys().map(|place| (place.1.clone(), grant(share.excess.as_ref(), place))).collect()
    }

    /// Asserts that a change of one slice of a share changes the grants as expected, and names those that it changes.
    fn assert_change(slices: &[Option<(bool, usize)>], at: usize, after: Option<(bool, usize)>) {
        let (mut shares, mut changed) = (Shares::default(), BTreeSet::new());
        for (at, slice) in slices.iter().enumerate() {
            shares.shift(None, slice.map(|slice| counted(at, slice)).as_ref(), LIMITS, &mut changed);
        }
        let before = shares.0.get(&of()).map(grants).unwrap_or_default();
        changed.clear();
        let [old, new] = [slices[at], after].map(|slice| slice.map(|slice| counted(at, slice)));
        shares.shift(old.as_ref(), new.as_ref(), LIMITS, &mut changed);
        let why = format!("{slices:?}, and slice {at} is {after:?}");
        let Some(share) = shares.0.get(&of()) else {
            assert!(new.is_none() && before.len() <= 1, "{why}");
            return;
        };
        let after = grants(share);
        assert_eq!(after, expected(&share.slices), "{why}");
        let is_whole = after.values().all(|grant| *grant == Grant::Whole);
        assert_eq!(share.excess.is_none(), is_whole, "nothing is kept while all is imported: {why}");
        let own = counted(at, (true, 0)).place.1;
        let others = after.iter().filter(|(name, grant)| **name != own && before.get(*name) != Some(*grant));
        let others: BTreeSet<Text> = others.map(|(name, _)| name.clone()).collect();
        changed.remove(&own);
        assert_eq!(changed, others, "{why}");
    }

    /// Also rule T54.
    #[test]
    fn each_change_of_a_slice_changes_the_grants_of_its_share_and_names_those_that_changed() {
        let present = [true, false].into_iter().flat_map(|has_begun| (0..3).map(move |number| (has_begun, number)));
        let states: Vec<Option<(bool, usize)>> = present.map(Some).chain([None]).collect();
        for one in &states {
            for other in &states {
                for third in &states {
                    let slices = [*one, *other, *third];
                    for at in 0..slices.len() {
                        states.iter().for_each(|after| assert_change(&slices, at, *after));
                    }
                }
            }
        }
    }
}
