//! Part of [`super::Incremental`]: changes of touched slices. A touched slice has changed since the last plan, or has
//! endpoints of changed pods.

use super::family::{FamilyState, Group, Pods, pod_of};
use crate::backend::Backend;
use crate::config::Config;
use crate::model::{Endpoint, EndpointSlice};
use crate::packer::{self, Bucket, Fate, Item as _};
use crate::plan::group::{self, changed};
use crate::plan::{Draft, GroupStats, Stats};
use crate::ports::PortKey;
use crate::template::SliceTemplate;
use std::sync::Arc;

/// Returns the changes of one address type, and their numbers. Compares only touched slices (changed slices, and slices
/// of changed pods) and pods without an endpoint.
///
/// Returns `None` if no slice would remain: a placeholder may be needed then, which only a plan over all slices can
/// decide.
pub(super) fn draft(
    state: &FamilyState,
    pods: &Pods,
    template: &SliceTemplate<'_>,
    config: &Config,
) -> Option<(Draft, Stats)> {
    let mut draft = Draft { address_type: state.address_type(), ..Draft::default() };
    let mut stats = Stats::default();
    for (key, group) in state.groups.iter().filter(|(_, group)| group.members > 0) {
        GroupPlan { state, pods, template, key, group }.add_to(
            &mut draft,
            &mut stats,
            config.max_endpoints_per_slice(),
        );
    }
    if let Some(placeholder) = state.placeholder(template).filter(|_| draft.unchanged.is_empty()) {
        draft.unchanged.push(Arc::clone(placeholder));
        group::count_placeholder(&mut stats);
    }
    let some_remain = draft.deletes.len() < state.len() || !draft.creates.is_empty();
    some_remain.then_some((draft, stats))
}

/// Assigns the endpoints that have the same list of ports to slices.
struct GroupPlan<'a> {
    state: &'a FamilyState,
    pods: &'a Pods,
    template: &'a SliceTemplate<'a>,
    key: &'a PortKey,
    group: &'a Group,
}

impl<'a> GroupPlan<'a> {
    fn add_to(&self, draft: &mut Draft, stats: &mut Stats, max: usize) {
        let mut slices: Vec<&'a Arc<EndpointSlice>> =
            self.group.touched.iter().filter_map(|name| self.state.slice(name)).collect();
        let mut fates: Vec<Fate<Endpoint>> = slices.iter().map(|slice| self.fate(slice, &mut stats.removed)).collect();
        let rest = self.group.unplaced.iter().filter_map(|pod| self.wanted(pod)?.endpoint(self.state.family));
        let rest: Vec<_> = rest.collect();
        stats.added += rest.len();
        if let Some(opened) = self.to_open(&slices, &fates, rest.len(), max) {
            let at = slices.partition_point(|slice| slice.metadata.name < opened.metadata.name);
            slices.insert(at, opened);
            fates.insert(at, Fate::Unchanged);
        }
        let buckets = slices.iter().map(|slice| Bucket { items: &slice.endpoints, must_change: false });
        let created = packer::place(rest, &buckets.collect::<Vec<_>>(), &mut fates, max);
        let mut count = self.group.slices + created.len();
        for (slice, fate) in slices.into_iter().zip(fates) {
            match fate {
                Fate::Unchanged => draft.unchanged.push(Arc::clone(slice)),
                Fate::Changed(endpoints) => draft.updates.push(changed(self.template, slice, endpoints)),
                Fate::Emptied => {
                    draft.deletes.push(Arc::clone(slice));
                    count -= 1;
                }
            }
        }
        for endpoints in created {
            let slice = self.template.slice(draft.address_type.clone(), &self.group.ports);
            draft.creates.push(EndpointSlice { endpoints, ..slice });
        }
        let ports = Arc::clone(&self.group.ports);
        stats.groups.push(GroupStats { ports, endpoints: self.group.endpoints, slices: count });
    }

    /// Returns what happens to a slice if no endpoint is added to it: unchanged, changed or emptied. Adds the number of
    /// removed endpoints to `removed`.
    fn fate(&self, slice: &EndpointSlice, removed: &mut usize) -> Fate<Endpoint> {
        let family = self.state.family;
        let mut kept = Vec::with_capacity(slice.endpoints.len());
        let mut touched = false;
        for endpoint in &slice.endpoints {
            let wanted = pod_of(endpoint).and_then(|pod| self.wanted(pod));
            if let Some(wanted) = wanted.filter(|wanted| wanted.key(family) == Some(endpoint.key())) {
                touched |= !wanted.is_shown_by(endpoint);
                kept.push(wanted);
            }
        }
        *removed += slice.endpoints.len() - kept.len();
        touched |= slice.endpoints.len() != kept.len();
        let bucket = Bucket { items: &slice.endpoints, must_change: self.template.labels_differ(slice) };
        bucket.fate(touched, || kept.into_iter().filter_map(|wanted| wanted.endpoint(family)).collect())
    }

    /// Returns the backend of `pod`, or `None` if the pod does not have the ports of this group.
    fn wanted(&self, pod: &str) -> Option<&'a Backend> {
        self.pods.get(pod).filter(|known| known.key == *self.key)?.backend.as_ref()
    }

    /// Returns the one additional slice that must be written. A plan over all slices would add the last endpoints, for
    /// which the touched slices have no room, to this slice. Returns `None` if no slice is suitable.
    fn to_open(
        &self,
        slices: &[&Arc<EndpointSlice>],
        fates: &[Fate<Endpoint>],
        rest: usize,
        max: usize,
    ) -> Option<&'a Arc<EndpointSlice>> {
        let room = fates.iter().map(|fate| match fate {
            Fate::Changed(endpoints) => max.saturating_sub(endpoints.len()),
            Fate::Unchanged | Fate::Emptied => 0,
        });
        let left = rest.saturating_sub(room.sum()) % max;
        if left == 0 {
            return None;
        }
        let is_touched = |name: &str| slices.iter().any(|slice| slice.metadata.name == *name);
        let name = self.group.closest_to_full(left, max, |name| !is_touched(name))?;
        self.state.slice(name)
    }
}
