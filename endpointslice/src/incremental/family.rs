//! [`FamilyState`]: which slice of one address type holds which pod.

use super::{KnownPod, Pods};
use crate::address::Family;
use crate::backend::{Backend, EndpointKey};
use crate::model::{AddressType, Endpoint, EndpointSlice};
use crate::packer::Item as _;
use crate::ports::{PortKey, PortList};
use crate::template::SliceTemplate;
use crate::text::Text;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The slices of one address type.
#[derive(Debug)]
pub(super) struct FamilyState {
    pub(super) family: Family,
    pub(super) groups: BTreeMap<PortKey, Group>,
    slices: BTreeMap<Text, HeldSlice>,
    /// The slices that have an endpoint of a pod.
    holders: HashMap<Text, Holders>,
    /// How many pods more than one endpoint is of.
    multiply_held: usize,
    /// How many slices belong to an earlier Service of the same name.
    not_owned: usize,
}

/// Pods and slices that have the same ports.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// As the pods say them.
    pub(super) ports: PortList,
    /// Pods that serve these ports, with an address or without.
    pub(super) members: usize,
    /// Those that have an address.
    pub(super) endpoints: usize,
    /// Pods whose endpoint no slice of this group holds.
    pub(super) unplaced: BTreeSet<Text>,
    /// How many slices there are.
    pub(super) slices: usize,
    /// Slices to look at.
    pub(super) touched: BTreeSet<Text>,
    /// All slices, by how many endpoints they have.
    by_fill: BTreeMap<usize, BTreeSet<Text>>,
}

#[derive(Debug)]
struct HeldSlice {
    slice: Arc<EndpointSlice>,
    key: PortKey,
    owned: bool,
}

/// The slices that hold a pod: one, ordinarily.
#[derive(Debug, Default)]
struct Holders(Option<Text>, Vec<Text>);

impl Holders {
    fn add(&mut self, slice: &Text) {
        if self.0.is_none() { self.0 = Some(slice.clone()) } else { self.1.push(slice.clone()) }
    }

    fn remove(&mut self, slice: &Text) {
        if self.0.as_ref() == Some(slice) {
            self.0 = self.1.pop();
        } else if let Some(at) = self.1.iter().position(|held| held == slice) {
            self.1.swap_remove(at);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Text> {
        self.0.iter().chain(&self.1)
    }

    const fn is_one(&self) -> bool {
        self.0.is_some() && self.1.is_empty()
    }
}

impl FamilyState {
    pub(super) fn new(family: Family) -> Self {
        Self {
            family,
            groups: BTreeMap::new(),
            slices: BTreeMap::new(),
            holders: HashMap::new(),
            multiply_held: 0,
            not_owned: 0,
        }
    }

    pub(super) const fn address_type(&self) -> AddressType {
        self.family.address_type()
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = &Arc<EndpointSlice>> {
        self.slices.values().map(|held| &held.slice)
    }

    pub(super) fn slice(&self, name: &str) -> Option<&Arc<EndpointSlice>> {
        self.slices.get(name).map(|held| &held.slice)
    }

    /// A pod as the first slice shows it that has an endpoint of it.
    pub(super) fn shown(&self, pod: &str) -> Option<Backend> {
        let slices = self.holders.get(pod)?.iter().filter_map(|name| self.slice(name));
        let mut shown = slices.filter_map(|slice| {
            let endpoint =
                slice.endpoints.iter().find(|endpoint| pod_of(endpoint).is_some_and(|of| of.as_str() == pod))?;
            Some(Backend::of_endpoint(endpoint, self.family, &slice.ports))
        });
        shown.next()
    }

    /// How many slices there are.
    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }

    /// Whether touched slices and unplaced pods are all that can call for a write.
    pub(super) fn is_ordinary(&self, template: &SliceTemplate<'_>) -> bool {
        let served = |group: &Group| group.members > 0 || group.slices == 0;
        self.multiply_held == 0
            && self.not_owned == 0
            && (self.groups.values().all(served) || self.placeholder(template).is_some())
    }

    /// The one slice, if it is the placeholder that there should be: no pod has an address of this type, as in a
    /// dual-stack Service on a cluster whose pods have one family.
    pub(super) fn placeholder(&self, template: &SliceTemplate<'_>) -> Option<&Arc<EndpointSlice>> {
        let mut slices = self.slices();
        let (only, None) = (slices.next()?, slices.next()) else { return None };
        let is_settled = self.groups.values().all(|group| group.endpoints == 0)
            && template.placeholders_are_wanted()
            && template.is_placeholder(only);
        is_settled.then_some(only)
    }

    /// A pod is new.
    pub(super) fn add_pod(&mut self, name: &Text, backend: &Backend, key: &PortKey) {
        let wanted = backend.key(self.family);
        let placed = wanted.as_ref().is_some_and(|wanted| self.is_placed(name, wanted, key));
        let group = self.group(key);
        group.ports = Arc::clone(&backend.ports);
        group.members += 1;
        if wanted.is_some() {
            group.endpoints += 1;
            if !placed {
                group.unplaced.insert(name.clone());
            }
        }
        self.touch_holders(name);
    }

    /// A pod is gone; it was this.
    pub(super) fn remove_pod(&mut self, name: &Text, backend: &Backend, key: &PortKey) {
        let group = self.group(key);
        group.members -= 1;
        group.unplaced.remove(name);
        if !backend.addresses(self.family).is_empty() {
            self.group(key).endpoints -= 1;
        }
        self.touch_holders(name);
        self.drop_if_unused(key);
    }

    /// A slice is new or changed.
    pub(super) fn set_slice(&mut self, slice: Arc<EndpointSlice>, key: &PortKey, owned: bool, pods: &Pods) {
        let old = self.unlink(&slice.metadata.name);
        let name = slice.metadata.name.clone();
        for pod in slice.endpoints.iter().filter_map(pod_of) {
            let holders = self.holders.entry_ref(pod).or_default();
            let was_one = holders.is_one();
            holders.add(&name);
            self.multiply_held += usize::from(was_one);
        }
        self.not_owned += usize::from(!owned);
        let group = self.group(key);
        group.slices += 1;
        group.touched.insert(name.clone());
        group.by_fill.entry(slice.endpoints.len()).or_default().insert(name.clone());
        let held = HeldSlice { slice: Arc::clone(&slice), key: key.clone(), owned };
        self.slices.insert(name, held);
        for endpoint in &slice.endpoints {
            self.place(endpoint, key, pods);
        }
        if let Some(old) = old {
            self.displace(&old, pods);
        }
    }

    /// A slice is gone.
    pub(super) fn remove_slice(&mut self, name: &str, pods: &Pods) {
        if let Some(old) = self.unlink(name) {
            self.displace(&old, pods);
        }
    }

    /// Slices that were looked at and can stay as they are.
    pub(super) fn settle(&mut self, unchanged: &[Arc<EndpointSlice>]) {
        for slice in unchanged {
            let name = &slice.metadata.name;
            if let Some(held) = self.slices.get(name)
                && let Some(group) = self.groups.get_mut(&held.key)
            {
                group.touched.remove(name);
            }
        }
    }

    /// A slice holds an endpoint of a pod: if that is what the pod should be, the pod needs no place.
    fn place(&mut self, endpoint: &Endpoint, key: &PortKey, pods: &Pods) {
        let Some((pod, known)) = pod_of(endpoint).and_then(|pod| pods.get_key_value(pod)) else { return };
        let wanted = known.backend.as_ref().and_then(|backend| backend.key(self.family));
        if known.key == *key && wanted == Some(endpoint.key()) {
            self.group(key).unplaced.remove(pod);
        } else {
            self.place_anew(pod, known);
        }
    }

    /// A slice held these endpoints: pods of which it holds none any more may need a place.
    fn displace(&mut self, old: &HeldSlice, pods: &Pods) {
        let name = &old.slice.metadata.name;
        for pod in old.slice.endpoints.iter().filter_map(pod_of) {
            let is_held = self.holders.get(pod).is_some_and(|holders| holders.iter().any(|held| held == name));
            if !is_held && let Some(known) = pods.get(pod) {
                self.place_anew(pod, known);
            }
        }
        self.drop_if_unused(&old.key);
    }

    /// The pod needs a place if it should be an endpoint and no slice of its group holds that.
    fn place_anew(&mut self, pod: &Text, known: &KnownPod) {
        let wanted = known.backend.as_ref().and_then(|backend| backend.key(self.family));
        if wanted.is_some_and(|wanted| !self.is_placed(pod, &wanted, &known.key)) {
            self.group(&known.key).unplaced.insert(pod.clone());
        }
    }

    /// Whether some slice of the group holds the endpoint.
    fn is_placed(&self, pod: &Text, wanted: &EndpointKey<'_>, key: &PortKey) -> bool {
        let Some(holders) = self.holders.get(pod) else { return false };
        let mut slices = holders.iter().filter_map(|name| self.slices.get(name)).filter(|held| held.key == *key);
        slices.any(|held| held.slice.endpoints.iter().any(|endpoint| endpoint.key() == *wanted))
    }

    /// The slices that hold a pod are to be looked at.
    fn touch_holders(&mut self, pod: &Text) {
        let Some(holders) = self.holders.get(pod) else { return };
        for name in holders.iter() {
            if let Some(held) = self.slices.get(name)
                && let Some(group) = self.groups.get_mut(&held.key)
            {
                group.touched.insert(name.clone());
            }
        }
    }

    fn unlink(&mut self, name: &str) -> Option<HeldSlice> {
        let (name, held) = self.slices.remove_entry(name)?;
        for pod in held.slice.endpoints.iter().filter_map(pod_of) {
            let Some(holders) = self.holders.get_mut(pod) else { continue };
            let was_one = holders.is_one();
            holders.remove(&name);
            if was_one {
                self.holders.remove(pod);
            } else if holders.is_one() {
                self.multiply_held -= 1;
            }
        }
        self.not_owned -= usize::from(!held.owned);
        let group = self.group(&held.key);
        group.slices -= 1;
        group.touched.remove(&name);
        let fill = held.slice.endpoints.len();
        if let Some(names) = group.by_fill.get_mut(&fill) {
            names.remove(&name);
            if names.is_empty() {
                group.by_fill.remove(&fill);
            }
        }
        Some(held)
    }

    fn group(&mut self, key: &PortKey) -> &mut Group {
        if !self.groups.contains_key(key) {
            self.groups.insert(key.clone(), Group::default());
        }
        self.groups.get_mut(key).expect("it is there or was put there")
    }

    fn drop_if_unused(&mut self, key: &PortKey) {
        if self.groups.get(key).is_some_and(|group| group.members == 0 && group.slices == 0) {
            self.groups.remove(key);
        }
    }
}

impl Group {
    /// The slice that gets fullest if `left` more endpoints are put in it, of those that they fit in and that `may_open`;
    /// the first by name of several.
    pub(super) fn closest_to_full(&self, left: usize, max: usize, may_open: impl Fn(&Text) -> bool) -> Option<&Text> {
        let levels = self.by_fill.range(..=max.checked_sub(left)?).rev();
        levels.flat_map(|(_, names)| names).find(|name| may_open(name))
    }
}

/// The pod that an endpoint is of.
pub(super) fn pod_of(endpoint: &Endpoint) -> Option<&Text> {
    endpoint.target_ref.as_ref().and_then(|target| target.name.non_empty())
}
