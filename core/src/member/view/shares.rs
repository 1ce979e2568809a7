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
        if before == after {
            return;
        }
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
        if before == after {
            return;
        }
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
