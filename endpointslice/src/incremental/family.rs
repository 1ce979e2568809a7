//! Slices of one address type of a Service, and the pods whose endpoints these slices contain: [`FamilyState`].

use crate::address::Family;
use crate::backend::{Backend, EndpointKey, Skipped};
use crate::model::{AddressType, Endpoint, EndpointSlice};
use crate::packer::Item as _;
use crate::ports::{PortKey, PortList};
use crate::template::SliceTemplate;
use crate::text::Text;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// State of one pod of the Service.
#[derive(Debug, PartialEq)]
pub(super) struct KnownPod {
    pub(super) backend: Option<Backend>,
    pub(super) key: PortKey,
    pub(super) skipped: Vec<Skipped>,
}

/// Pods of a Service by name.
pub(super) type Pods = HashMap<Text, KnownPod>;

/// Slices of one address type of a Service, with an index by pod.
#[derive(Debug)]
pub(super) struct FamilyState {
    pub(super) family: Family,
    pub(super) groups: BTreeMap<PortKey, Group>,
    slices: BTreeMap<Text, StoredSlice>,
    /// For each pod, by its name: the names of the slices that have an endpoint of the pod.
    holders: HashMap<Text, Holders>,
    /// Number of pods that have endpoints in several slices.
    pods_in_several_slices: usize,
    /// Number of slices that belong to an earlier Service of the same name.
    not_owned: usize,
}

/// Pods and slices that have the same list of ports.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Ports of the group, in the order that the backends of the pods have.
    pub(super) ports: PortList,
    /// Number of pods that have these ports, with or without an address.
    pub(super) members: usize,
    /// Number of pods that have these ports and an address of this address type.
    pub(super) endpoints: usize,
    /// Names of the pods whose desired endpoint is in no slice of this group yet.
    pub(super) unplaced: BTreeSet<Text>,
    /// Number of slices in this group.
    pub(super) slices: usize,
    /// Names of the slices of this group that changed, or that have endpoints of changed pods. The next plan compares
    /// them with the desired endpoints.
    pub(super) touched: BTreeSet<Text>,
    /// Names of the slices of this group, by their number of endpoints.
    by_fill: BTreeMap<usize, BTreeSet<Text>>,
}

#[derive(Debug)]
struct StoredSlice {
    slice: Arc<EndpointSlice>,
    key: PortKey,
    owned: bool,
}

/// Names of the slices that have an endpoint of one pod: the first name, and a list of the others. Usually there is one
/// slice, and an empty list allocates nothing.
#[derive(Debug, Default)]
struct Holders(Option<Text>, Vec<Text>);

impl Holders {
    fn add(&mut self, slice: &Text) {
        if self.0.is_none() { self.0 = Some(slice.clone()) } else { self.1.push(slice.clone()) }
    }

    fn remove(&mut self, slice: &Text) {
        if self.0.as_ref() == Some(slice) {
            self.0 = self.1.pop();
        } else if let Some(at) = self.1.iter().position(|stored| stored == slice) {
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
            pods_in_several_slices: 0,
            not_owned: 0,
        }
    }

    pub(super) const fn address_type(&self) -> AddressType {
        self.family.address_type()
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = &Arc<EndpointSlice>> {
        self.slices.values().map(|stored| &stored.slice)
    }

    pub(super) fn slice(&self, name: &str) -> Option<&Arc<EndpointSlice>> {
        self.slices.get(name).map(|stored| &stored.slice)
    }

    /// Returns the backend that an existing endpoint of the pod describes, in the first slice that has such an
    /// endpoint. `None` if no slice has one.
    pub(super) fn shown(&self, pod: &str) -> Option<Backend> {
        let slices = self.holders.get(pod)?.iter().filter_map(|name| self.slice(name));
        let mut shown = slices.filter_map(|slice| {
            let endpoint =
                slice.endpoints.iter().find(|endpoint| pod_of(endpoint).is_some_and(|of| of.as_str() == pod))?;
            Some(Backend::of_endpoint(endpoint, self.family, &slice.ports))
        });
        shown.next()
    }

    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }

    /// True if a plan needs to compare only touched slices (changed slices, and slices of changed pods) and pods
    /// without an endpoint. If false, the plan must compare all slices.
    pub(super) fn is_ordinary(&self, template: &SliceTemplate<'_>) -> bool {
        let served = |group: &Group| group.members > 0 || group.slices == 0;
        self.pods_in_several_slices == 0
            && self.not_owned == 0
            && (self.groups.values().all(served) || self.placeholder(template).is_some())
    }

    /// Returns the placeholder (slice without endpoints and ports) if no other slice exists and no pod has an address
    /// of this type.
    ///
    /// An example is a dual-stack Service in a cluster whose pods have addresses of one family only.
    pub(super) fn placeholder(&self, template: &SliceTemplate<'_>) -> Option<&Arc<EndpointSlice>> {
        let mut slices = self.slices();
        let (only, None) = (slices.next()?, slices.next()) else { return None };
        let is_settled = self.groups.values().all(|group| group.endpoints == 0) && template.is_placeholder(only);
        is_settled.then_some(only)
    }

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

    /// Removes a pod. `backend` and `key` must be the values with which the pod was added.
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

    /// Sets the state of a slice that is new or changed.
    pub(super) fn set_slice(&mut self, slice: Arc<EndpointSlice>, key: &PortKey, owned: bool, pods: &Pods) {
        let old = self.unlink(&slice.metadata.name);
        let name = slice.metadata.name.clone();
        for pod in slice.endpoints.iter().filter_map(pod_of) {
            let holders = self.holders.entry_ref(pod).or_default();
            let was_one = holders.is_one();
            holders.add(&name);
            self.pods_in_several_slices += usize::from(was_one);
        }
        self.not_owned += usize::from(!owned);
        let group = self.group(key);
        group.slices += 1;
        group.touched.insert(name.clone());
        group.by_fill.entry(slice.endpoints.len()).or_default().insert(name.clone());
        let stored = StoredSlice { slice: Arc::clone(&slice), key: key.clone(), owned };
        self.slices.insert(name, stored);
        for endpoint in &slice.endpoints {
            self.place(endpoint, key, pods);
        }
        if let Some(old) = old {
            self.displace(&old, pods);
        }
    }

    pub(super) fn remove_slice(&mut self, name: &str, pods: &Pods) {
        if let Some(old) = self.unlink(name) {
            self.displace(&old, pods);
        }
    }

    /// Removes these slices from `touched`, because a plan found that they need no write. Later plans do not compare
    /// them until they or their pods change.
    pub(super) fn settle(&mut self, unchanged: &[Arc<EndpointSlice>]) {
        for slice in unchanged {
            let name = &slice.metadata.name;
            if let Some(stored) = self.slices.get(name)
                && let Some(group) = self.groups.get_mut(&stored.key)
            {
                group.touched.remove(name);
            }
        }
    }

    /// Updates `unplaced` for an endpoint of a new or changed slice: removes the pod of this endpoint if the endpoint
    /// is as desired.
    fn place(&mut self, endpoint: &Endpoint, key: &PortKey, pods: &Pods) {
        let Some((pod, known)) = pod_of(endpoint).and_then(|pod| pods.get_key_value(pod)) else { return };
        let wanted = known.backend.as_ref().and_then(|backend| backend.key(self.family));
        if known.key == *key && wanted == Some(endpoint.key()) {
            self.group(key).unplaced.remove(pod);
        } else {
            self.place_again(pod, known);
        }
    }

    /// Updates `unplaced` after a slice was changed or removed: adds each pod of the old slice whose desired endpoint
    /// is in no slice any more.
    fn displace(&mut self, old: &StoredSlice, pods: &Pods) {
        let name = &old.slice.metadata.name;
        for pod in old.slice.endpoints.iter().filter_map(pod_of) {
            let is_still_in = self.holders.get(pod).is_some_and(|holders| holders.iter().any(|stored| stored == name));
            if !is_still_in && let Some(known) = pods.get(pod) {
                self.place_again(pod, known);
            }
        }
        self.drop_if_unused(&old.key);
    }

    /// Adds the pod to `unplaced` if it should have an endpoint and no slice of its group has that endpoint.
    fn place_again(&mut self, pod: &Text, known: &KnownPod) {
        let wanted = known.backend.as_ref().and_then(|backend| backend.key(self.family));
        if wanted.is_some_and(|wanted| !self.is_placed(pod, &wanted, &known.key)) {
            self.group(&known.key).unplaced.insert(pod.clone());
        }
    }

    /// True if a slice of the group has the pod's desired endpoint.
    fn is_placed(&self, pod: &Text, wanted: &EndpointKey<'_>, key: &PortKey) -> bool {
        let Some(holders) = self.holders.get(pod) else { return false };
        let mut slices = holders.iter().filter_map(|name| self.slices.get(name)).filter(|stored| stored.key == *key);
        slices.any(|stored| stored.slice.endpoints.iter().any(|endpoint| endpoint.key() == *wanted))
    }

    /// Adds the slices that have an endpoint of the pod to `touched`, so that the next plan compares them.
    fn touch_holders(&mut self, pod: &Text) {
        let Some(holders) = self.holders.get(pod) else { return };
        for name in holders.iter() {
            if let Some(stored) = self.slices.get(name)
                && let Some(group) = self.groups.get_mut(&stored.key)
            {
                group.touched.insert(name.clone());
            }
        }
    }

    fn unlink(&mut self, name: &str) -> Option<StoredSlice> {
        let (name, stored) = self.slices.remove_entry(name)?;
        for pod in stored.slice.endpoints.iter().filter_map(pod_of) {
            let Some(holders) = self.holders.get_mut(pod) else { continue };
            let was_one = holders.is_one();
            holders.remove(&name);
            if was_one {
                self.holders.remove(pod);
            } else if holders.is_one() {
                self.pods_in_several_slices -= 1;
            }
        }
        self.not_owned -= usize::from(!stored.owned);
        let group = self.group(&stored.key);
        group.slices -= 1;
        group.touched.remove(&name);
        let fill = stored.slice.endpoints.len();
        if let Some(names) = group.by_fill.get_mut(&fill) {
            names.remove(&name);
            if names.is_empty() {
                group.by_fill.remove(&fill);
            }
        }
        Some(stored)
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
    /// Returns the slice to which the last `left` endpoints are added: the fullest slice that has room for all of them
    /// and for which `may_open` is true. Among equally full slices, returns the first by name. `None` if there is no
    /// such slice.
    pub(super) fn closest_to_full(&self, left: usize, max: usize, may_open: impl Fn(&Text) -> bool) -> Option<&Text> {
        let levels = self.by_fill.range(..=max.checked_sub(left)?).rev();
        levels.flat_map(|(_, names)| names).find(|name| may_open(name))
    }
}

/// Returns the name of the pod that an endpoint refers to. `None` if the endpoint refers to no object.
pub(super) fn pod_of(endpoint: &Endpoint) -> Option<&Text> {
    endpoint.target_ref.as_ref().and_then(|target| target.name.non_empty())
}
