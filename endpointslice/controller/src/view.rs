//! Objects that the EndpointSlice controller has cached, and the Services that a change requeues: [`View`].
//!
//! Two indexes make events cheap: one finds the Services of a pod by their selectors, the other finds the pods of a
//! Node. So the cost of an event depends only on the number of affected objects. Each Service has the library's
//! incremental state, so a plan only computes what changed.

mod planning;
mod undecodable;

pub(super) use planning::Draft;

use super::alike::{counts_otherwise, plans_alike, reads_the_same};
use endpointslice::changes::PodChange;
use endpointslice::hints::ServiceHints;
use endpointslice::model::{EndpointSlice, Metadata, Node, Pod, Service};
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use endpointslice::plan::{ServiceName, families};
use endpointslice::selector::{SelectorIndex, selects};
use endpointslice::trigger::{Sent, TriggerTimes};
use endpointslice::{Config, Incremental, NodeZones, Text};
use fleetnet_types::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::{debug, warn};

/// Kind of object that the controller watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    Service,
    Pod,
    Node,
    EndpointSlice,
}

impl Input {
    /// All inputs of the controller. The controller plans no Service before each input is completely listed.
    pub const ALL: [Self; 4] = [Self::Service, Self::Pod, Self::Node, Self::EndpointSlice];
}

/// Object of a kind that the controller watches.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Service(Service),
    Pod(Pod),
    Node(Node),
    /// EndpointSlice of any manager.
    EndpointSlice(EndpointSlice),
}

/// Services that a change requeues, by namespace and name.
pub(super) type Touched = BTreeSet<(Text, Text)>;

/// Objects that the EndpointSlice controller has cached.
#[derive(Debug)]
pub(super) struct View {
    config: Arc<Config>,
    nodes: BTreeMap<Text, Node>,
    zones: NodeZones,
    /// Nodes that exist but are undecodable.
    undecodable_nodes: BTreeSet<Text>,
    /// Pods of each Node, as namespace and name. The key is the name of the Node.
    pods_on: BTreeMap<Text, BTreeSet<(Text, Text)>>,
    namespaces: BTreeMap<Text, Namespace>,
    hints: ServiceHints,
    times: TriggerTimes,
    /// Writes in flight, by the name of the written slice, each with the changes that it publishes.
    sent: BTreeMap<ObjectName, Sent>,
}

#[derive(Debug, Default)]
struct Namespace {
    selectors: SelectorIndex,
    services: BTreeMap<Text, ServiceState>,
    pods: BTreeMap<Text, Pod>,
    /// Pods of this namespace that exist but are undecodable.
    undecodable_pods: BTreeSet<Text>,
    /// Slices of this namespace. The value is `None` for a slice of another manager, because only its name matters: no
    /// new slice can have this name.
    slices: BTreeMap<Text, Option<Arc<EndpointSlice>>>,
    /// Names of the slices of each Service in this namespace. Slices of other managers are not included.
    slices_of: BTreeMap<Text, BTreeSet<Text>>,
}

/// Service, with the incremental state for plans of its slices.
#[derive(Debug)]
pub(super) struct ServiceState {
    pub(super) state: Incremental,
    pods: BTreeSet<Text>,
    /// Undecodable pods of the Service. Their endpoints stay as the existing slices show them.
    kept: BTreeSet<Text>,
    /// True once the trigger times (times of the last changes) of the Service's pods are recorded.
    is_timed: bool,
}

impl View {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            nodes: BTreeMap::new(),
            zones: NodeZones::default(),
            undecodable_nodes: BTreeSet::new(),
            pods_on: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            hints: ServiceHints::new(),
            times: TriggerTimes::default(),
            sent: BTreeMap::new(),
        }
    }

    pub(super) const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(super) fn service(&self, namespace: &str, name: &str) -> Option<&ServiceState> {
        self.namespaces.get(namespace)?.services.get(name)
    }

    pub(super) fn services(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.namespaces
            .iter()
            .flat_map(|(namespace, objects)| objects.services.keys().map(move |name| (namespace, name)))
    }

    /// True if a slice with this name exists. The slice may belong to any manager.
    pub(super) fn has_slice(&self, namespace: &str, name: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|objects| objects.slices.contains_key(name))
    }

    /// True if this slice has an address type that the Service does not have.
    pub(super) fn is_unsupported(&self, service: &Service, slice: &str) -> bool {
        let stored =
            self.namespaces.get(&*service.metadata.namespace).and_then(|objects| objects.slices.get(slice)?.as_ref());
        stored.is_some_and(|slice| families(service).iter().all(|family| family.address_type() != slice.address_type))
    }

    /// Stores a Service. True if the Service is new, or if a field changed that plans read.
    pub(super) fn set_service(&mut self, service: Service) -> bool {
        let (space, name) = (service.metadata.namespace.clone(), service.metadata.name.clone());
        let objects = self.namespaces.entry(space).or_default();
        if objects.services.get(&*name).is_some_and(|known| plans_alike(known.state.service(), &service)) {
            return false;
        }
        if service.spec.is_external_name() || service.spec.selector.is_empty() {
            self.hints.forget(&service.metadata.namespace, &name);
        }
        let service = Arc::new(service);
        let selector = &service.spec.selector;
        objects.selectors.insert(&name, selector);
        let pods: Vec<&Pod> = objects.pods.values().filter(|pod| selects(selector, &pod.metadata.labels)).collect();
        let names = pods.iter().map(|pod| pod.metadata.name.clone()).collect();
        if let Some(known) = objects.services.get_mut(&*name) {
            known.state.set_service(Arc::clone(&service), pods.iter().copied(), &self.zones);
            known.pods = names;
            known.keep(&objects.undecodable_pods);
            if known.is_timed {
                self.times.observe(&service, pods);
            }
            return true;
        }
        let mut state = Incremental::new(Arc::clone(&service), Arc::clone(&self.config));
        pods.iter().for_each(|pod| state.set_pod(pod, &self.zones));
        let slices = objects.slices_of.get(&*name).into_iter().flatten();
        for slice in slices.filter_map(|slice| objects.slices.get(slice)?.as_ref()) {
            state.set_slice(Arc::clone(slice));
        }
        objects.services.insert(name, ServiceState { state, pods: names, kept: BTreeSet::new(), is_timed: false });
        true
    }

    /// Removes a Service from the view. Its slices stay in the view until the garbage collector deletes them.
    pub(super) fn remove_service(&mut self, namespace: &str, name: &str) {
        if let Some(objects) = self.namespaces.get_mut(namespace) {
            objects.services.remove(name);
            objects.selectors.remove(name);
        }
        self.times.forget(namespace, name);
        self.hints.forget(namespace, name);
        self.tidy(namespace);
    }

    /// Stores a new or changed pod. Returns the Services to plan.
    pub(super) fn set_pod(&mut self, pod: Pod) -> Touched {
        let (space, name) = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        let objects = self.namespaces.entry(space.clone()).or_default();
        let freed = objects.read(&name);
        let old = objects.pods.get(&*name);
        let before = old.map(|old| objects.selectors.selecting(&old.metadata.labels)).unwrap_or_default();
        let now = objects.selectors.selecting(&pod.metadata.labels);
        for service in before.difference(&now) {
            if let Some(known) = objects.services.get_mut(service) {
                known.lose(&name, (&space, service), &mut self.times);
            }
        }
        for service in &now {
            if let Some(known) = objects.services.get_mut(service) {
                known.state.set_pod(&pod, &self.zones);
                known.pods.insert(name.clone());
                self.times.observe_pod(&space, service, &pod);
            }
        }
        let touched = match old {
            Some(old) if is_bound_late(old, &pod) => &before | &now,
            Some(old) => PodChange::between(old, &pod).services(before, now),
            None => now,
        };
        let old_node = old.map(|old| old.spec.node_name.clone());
        if old_node.as_ref() != Some(&pod.spec.node_name) {
            self.move_pod((&space, &name), old_node.as_ref(), &pod.spec.node_name);
        }
        if let Some(objects) = self.namespaces.get_mut(&*space) {
            objects.pods.insert(name, pod);
        }
        touched.into_iter().chain(freed).map(|service| (space.clone(), service)).collect()
    }

    pub(super) fn remove_pod(&mut self, namespace: &str, name: &str) -> Touched {
        let Some(objects) = self.namespaces.get_mut(namespace) else { return Touched::new() };
        let Some(pod) = objects.pods.remove(name) else {
            let freed = objects.read(name).into_iter().map(|service| (namespace.into(), service)).collect();
            self.tidy(namespace);
            return freed;
        };
        let space = pod.metadata.namespace.clone();
        let services = objects.selectors.selecting(&pod.metadata.labels);
        for service in &services {
            if let Some(known) = objects.services.get_mut(service) {
                known.lose(name, (&space, service), &mut self.times);
            }
        }
        self.move_pod((&space, &pod.metadata.name), Some(&pod.spec.node_name), &Text::default());
        self.tidy(namespace);
        services.into_iter().map(|service| (space.clone(), service)).collect()
    }

    /// Stores a new or changed Node. Returns the Services whose endpoints change. If `with_hints` is true, also returns
    /// the Services whose topology hints change. There are no hints before all inputs are listed.
    pub(super) fn set_node(&mut self, node: Node, with_hints: bool) -> Touched {
        let name = node.metadata.name.clone();
        self.undecodable_nodes.remove(&*name);
        let moved = self.zones.insert(&node);
        let shares = self.nodes.get(&*name).is_none_or(|old| counts_otherwise(old, &node));
        self.nodes.insert(name.clone(), node);
        let mut touched = if shares && with_hints { self.reallocate() } else { Touched::new() };
        if moved {
            touched.extend(self.node_moved(&name));
        }
        touched
    }

    pub(super) fn remove_node(&mut self, name: &str, with_hints: bool) -> Touched {
        let was_there = self.nodes.remove(name).is_some();
        self.undecodable_nodes.remove(name);
        let moved = self.zones.remove(name);
        let mut touched = if was_there && with_hints { self.reallocate() } else { Touched::new() };
        if moved {
            touched.extend(self.node_moved(name));
        }
        touched
    }

    /// Updates the endpoints of the pods on a Node whose zone changed. Returns the Services of these pods.
    fn node_moved(&mut self, name: &str) -> Touched {
        let mut touched = Touched::new();
        for (space, pod) in self.pods_on.get(name).into_iter().flatten() {
            let Some(objects) = self.namespaces.get_mut(space) else { continue };
            let Some(pod) = objects.pods.get(pod) else { continue };
            for service in objects.selectors.selecting(&pod.metadata.labels) {
                if let Some(known) = objects.services.get_mut(&service) {
                    known.state.set_pod(pod, &self.zones);
                    touched.insert((space.clone(), service));
                }
            }
        }
        touched
    }

    /// Computes each zone's share of endpoints (topology hints) again. Returns the Services whose hints may change.
    pub(super) fn reallocate(&mut self) -> Touched {
        let services = self.hints.set_nodes(self.nodes.values());
        let services = services.into_iter().map(|ServiceName { namespace, name }| (namespace, name));
        services
            .inspect(|(namespace, name)| {
                debug!(%namespace, service = %name, "queued after a change of Nodes: its topology hints may no longer fit");
            })
            .collect()
    }

    /// Stores a new or changed slice. If the content changed, returns the Services that the slice belongs to now and
    /// belonged to before.
    pub(super) fn set_slice(&mut self, slice: Arc<EndpointSlice>) -> Touched {
        let (space, name) = (slice.metadata.namespace.clone(), slice.metadata.name.clone());
        let is_ours = slice.metadata.labels.get(LABEL_MANAGED_BY) == Some(self.config.controller_name());
        let service = if is_ours { service_of(&slice) } else { None };
        let objects = self.namespaces.entry(space.clone()).or_default();
        let old = objects.slices.insert(name.clone(), is_ours.then(|| Arc::clone(&slice))).flatten();
        if let Some(old) = old.as_ref().filter(|_| is_ours) {
            warn_if_moved(old, &slice);
        }
        let old_service = old.as_ref().and_then(|old| ServiceName::of_slice(old).ok()).map(|service| service.name);
        let mut touched = Touched::new();
        if old_service != service {
            if let Some(old_service) = &old_service {
                objects.take_slice(old_service, &name);
                touched.insert((space.clone(), old_service.clone()));
            }
            if let Some(service) = &service {
                objects.slices_of.entry(service.clone()).or_default().insert(name);
            }
        }
        if let Some(known) = service.as_ref().and_then(|service| objects.services.get_mut(service)) {
            known.state.set_slice(Arc::clone(&slice));
        }
        if let Some(service) = service
            && old.is_none_or(|old| !reads_the_same(&old, &slice))
        {
            touched.insert((space, service));
        }
        touched
    }

    /// Records the name of an undecodable slice, so that no new slice gets the same name.
    pub(super) fn note_slice(&mut self, namespace: &str, name: &str) {
        self.namespaces.entry(namespace.into()).or_default().slices.entry(name.into()).or_default();
    }

    pub(super) fn remove_slice(&mut self, namespace: &str, name: &str) -> Touched {
        let mut touched = Touched::new();
        if let Some(objects) = self.namespaces.get_mut(namespace)
            && let Some(Some(slice)) = objects.slices.remove(name)
            && let Ok(service) = ServiceName::of_slice(&slice)
        {
            objects.take_slice(&service.name, name);
            touched.insert((service.namespace, service.name));
        }
        self.tidy(namespace);
        touched
    }

    /// Returns the numbers of cached Services, slices, pods and Nodes.
    #[cfg(test)]
    pub(super) fn cache_sizes(&self) -> [usize; 4] {
        let sum = |count: fn(&Namespace) -> usize| self.namespaces.values().map(count).sum();
        [
            sum(|objects| objects.services.len()),
            sum(|objects| objects.slices.len()),
            sum(|objects| objects.pods.len()),
            self.nodes.len(),
        ]
    }

    fn move_pod(&mut self, (space, name): (&Text, &Text), from: Option<&Text>, to: &Text) {
        if let Some(from) = from
            && let Some(pods) = self.pods_on.get_mut(from)
        {
            pods.remove(&(space.clone(), name.clone()));
            if pods.is_empty() {
                self.pods_on.remove(from);
            }
        }
        if !to.is_empty() {
            self.pods_on.entry(to.clone()).or_default().insert((space.clone(), name.clone()));
        }
    }

    fn tidy(&mut self, namespace: &str) {
        if self.namespaces.get(namespace).is_some_and(Namespace::is_empty) {
            self.namespaces.remove(namespace);
        }
    }
}

impl Namespace {
    fn is_empty(&self) -> bool {
        let Self { services, pods, undecodable_pods, slices, .. } = self;
        services.is_empty() && pods.is_empty() && undecodable_pods.is_empty() && slices.is_empty()
    }

    fn take_slice(&mut self, service: &Text, slice: &str) {
        if let Some(slices) = self.slices_of.get_mut(service) {
            slices.remove(slice);
            if slices.is_empty() {
                self.slices_of.remove(service);
            }
        }
        if let Some(known) = self.services.get_mut(service) {
            known.state.remove_slice(slice);
        }
    }
}

impl ServiceState {
    fn lose(&mut self, pod: &str, (namespace, service): (&Text, &Text), times: &mut TriggerTimes) {
        self.state.remove_pod(pod);
        self.pods.remove(pod);
        times.observe_removal(namespace, service, pod);
    }
}

/// Returns the name of the Service that a slice of this manager belongs to. Logs a warning if the slice has no such
/// name.
fn service_of(slice: &EndpointSlice) -> Option<Text> {
    match ServiceName::of_slice(slice) {
        Ok(service) => Some(service.name),
        Err(error) => {
            let Metadata { namespace, name, .. } = &slice.metadata;
            warn!(%namespace, slice = %name, "{error}. The agent ignores this slice: delete it, or set that label");
            None
        }
    }
}

/// Logs a warning if the label of a slice names another Service than before.
fn warn_if_moved(old: &EndpointSlice, new: &EndpointSlice) {
    let service = |slice: &EndpointSlice| slice.metadata.labels.get(LABEL_SERVICE_NAME).cloned().unwrap_or_default();
    let (before, after) = (service(old), service(new));
    if before != after {
        let Metadata { namespace, name, .. } = &new.metadata;
        warn!(%namespace, slice = %name, %before, %after, "the label {LABEL_SERVICE_NAME} of a slice was changed");
    }
}

/// True if a pod had an address before it had a Node, and now has a Node. The endpoint of such a pod can be published
/// only from now on.
fn is_bound_late(old: &Pod, new: &Pod) -> bool {
    old.spec.node_name != new.spec.node_name && !old.status.pod_ips.is_empty()
}

#[cfg(test)]
mod tests;
