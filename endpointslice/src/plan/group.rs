//! Groups of endpoints and slices that have the same ports.

use super::draft::{Draft, Update};
use super::{GroupStats, Stats};
use crate::address::Family;
use crate::backend::Backend;
use crate::config::Config;
use crate::model::{AddressType, Endpoint, EndpointSlice};
use crate::packer::{self, Bucket, Fate};
use crate::ports::{PortKey, PortList};
use crate::template::SliceTemplate;
use hashbrown::HashMap;
use std::sync::Arc;

/// Desired endpoints of a Service, grouped by family and ports.
pub(super) struct Groups<'a> {
    families: &'a [Family],
    groups: Vec<Group>,
    by_key: HashMap<PortKey, usize>,
    /// Index of the group of each list of ports, by the memory address of the list. Each entry also has the list, so
    /// that the list is not freed and no other list gets its address.
    by_place: HashMap<*const crate::model::EndpointPort, (PortList, usize)>,
    last: Option<(PortList, usize)>,
}

/// Endpoints of all families with the same ports.
pub(super) struct Group {
    key: PortKey,
    ports: PortList,
    endpoints: Vec<Vec<Endpoint>>,
}

/// Endpoints of one family with the same ports.
pub(super) struct FamilyGroup {
    pub(super) key: PortKey,
    pub(super) ports: PortList,
    pub(super) endpoints: Vec<Endpoint>,
}

impl<'a> Groups<'a> {
    pub(super) fn of(families: &'a [Family], backends: impl IntoIterator<Item = Backend>) -> Self {
        let groups = Vec::new();
        let mut groups = Self { families, groups, by_key: HashMap::new(), by_place: HashMap::new(), last: None };
        for backend in backends {
            groups.add(backend);
        }
        groups
    }

    /// Adds a backend to the group with its ports. A backend without addresses creates a group too, so that an existing
    /// empty slice with these ports is not deleted.
    fn add(&mut self, backend: Backend) {
        let index = self.index(&backend.ports);
        let lists = &mut self.groups[index].endpoints;
        if let &[only] = self.families {
            lists[0].extend(backend.into_endpoint(only));
            return;
        }
        for (&family, list) in self.families.iter().zip(lists) {
            list.extend(backend.endpoint(family));
        }
    }

    fn index(&mut self, ports: &PortList) -> usize {
        if let Some((last, index)) = &self.last
            && Arc::ptr_eq(last, ports)
        {
            return *index;
        }
        let index = match self.by_place.get(&ports.as_ptr()) {
            Some((last, index)) if Arc::ptr_eq(last, ports) => *index,
            _ => self.index_by_key(ports),
        };
        self.last = Some((Arc::clone(ports), index));
        index
    }

    fn index_by_key(&mut self, ports: &PortList) -> usize {
        let key = PortKey::from(ports);
        let index = *self.by_key.entry(key.clone()).or_insert_with(|| {
            let endpoints = self.families.iter().map(|_| Vec::new()).collect();
            self.groups.push(Group { key, ports: Arc::clone(ports), endpoints });
            self.groups.len() - 1
        });
        self.by_place.insert(ports.as_ptr(), (Arc::clone(ports), index));
        index
    }

    /// Returns the groups of each address family, sorted by ports, so that the plan does not depend on the order of
    /// backends.
    pub(super) fn into_families(mut self) -> Vec<(Family, Vec<FamilyGroup>)> {
        self.groups.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let mut families: Vec<_> = self.families.iter().map(|&family| (family, Vec::new())).collect();
        for Group { key, ports, endpoints } in self.groups {
            for ((_, groups), endpoints) in families.iter_mut().zip(endpoints) {
                groups.push(FamilyGroup { key: key.clone(), ports: Arc::clone(&ports), endpoints });
            }
        }
        families
    }
}

/// Compares the desired endpoints with the existing slices of one address type, and returns the changes.
pub(super) fn draft<'a>(
    template: &SliceTemplate<'_>,
    config: &Config,
    address_type: AddressType,
    groups: Vec<FamilyGroup>,
    existing: impl Iterator<Item = &'a Arc<EndpointSlice>>,
) -> (Draft, Stats) {
    let mut draft = Draft { address_type, ..Draft::default() };
    let mut stats = Stats::default();
    let by_key: HashMap<&PortKey, usize> = groups.iter().enumerate().map(|(at, group)| (&group.key, at)).collect();
    let mut slices: Vec<Vec<&Arc<EndpointSlice>>> = groups.iter().map(|_| Vec::new()).collect();
    let mut vanished = Vec::new();
    for slice in existing {
        if !template.owns(slice) {
            draft.deletes.push(Arc::clone(slice));
        } else if let Some(&at) = by_key.get(&PortKey::from(&slice.ports[..])) {
            slices[at].push(slice);
        } else {
            vanished.push(Arc::clone(slice));
        }
    }
    drop(by_key);
    for (group, slices) in groups.into_iter().zip(slices) {
        place(template, config.max_endpoints_per_slice(), group, &slices, &mut draft, &mut stats);
    }
    draft.deletes.extend(vanished);
    add_placeholder(template, &mut draft, &mut stats);
    (draft, stats)
}

/// Packs the endpoints of one group into the group's slices.
fn place(
    template: &SliceTemplate<'_>,
    max: usize,
    group: FamilyGroup,
    slices: &[&Arc<EndpointSlice>],
    draft: &mut Draft,
    stats: &mut Stats,
) {
    let buckets =
        slices.iter().map(|slice| Bucket { items: &slice.endpoints, must_change: template.labels_differ(slice) });
    let packing = packer::pack(group.endpoints, &buckets.collect::<Vec<_>>(), max);
    let mut count = slices.len() + packing.created.len();
    for (slice, fate) in slices.iter().zip(packing.fates) {
        match fate {
            Fate::Unchanged => draft.unchanged.push(Arc::clone(slice)),
            Fate::Changed(endpoints) => draft.updates.push(changed(template, slice, endpoints)),
            Fate::Emptied => {
                draft.deletes.push(Arc::clone(slice));
                count -= 1;
            }
        }
    }
    for endpoints in packing.created {
        let slice = template.slice(draft.address_type.clone(), &group.ports);
        draft.creates.push(EndpointSlice { endpoints, ..slice });
    }
    stats.added += packing.added;
    stats.removed += packing.removed;
    stats.groups.push(GroupStats { ports: group.ports, endpoints: packing.wanted, slices: count });
}

/// Returns an update of `slice` to these endpoints and to the desired labels.
pub(crate) fn changed(template: &SliceTemplate<'_>, slice: &Arc<EndpointSlice>, endpoints: Vec<Endpoint>) -> Update {
    let mut update = Update::of(slice, endpoints);
    update.after.metadata.labels = template.labels_for(slice);
    update
}

/// Adds a placeholder (slice without endpoints) if no slice would remain. If the only slice to delete already is a
/// placeholder of this Service, keeps that slice instead.
fn add_placeholder(template: &SliceTemplate<'_>, draft: &mut Draft, stats: &mut Stats) {
    if !(draft.creates.is_empty() && draft.updates.is_empty() && draft.unchanged.is_empty()) {
        return;
    }
    match &draft.deletes[..] {
        [only] if template.is_placeholder(only) && template.owns(only) => {
            draft.unchanged = std::mem::take(&mut draft.deletes);
        }
        _ => draft.creates.push(template.slice(draft.address_type.clone(), &PortList::default())),
    }
    count_placeholder(stats);
}

/// Counts a placeholder slice, which has no endpoints and an empty list of ports, in the numbers for metrics.
pub(crate) fn count_placeholder(stats: &mut Stats) {
    let no_ports = PortList::default();
    let no_ports_key = PortKey::from(&no_ports);
    match stats.groups.iter_mut().find(|group| PortKey::from(&group.ports) == no_ports_key) {
        Some(group) => group.slices = 1,
        None => stats.groups.push(GroupStats { ports: no_ports, endpoints: 0, slices: 1 }),
    }
}
