//! Simulated cluster with an EndpointSlice controller and a simulated engine ([`World`]). Time is simulated, too. The
//! simulated engine follows these rules of the agents' engine:
//!
//! - The response to a write is applied before the watch shows the change, and only once ([`Versions`]).
//! - Each slice has one write at a time. A Service has no plan while one of its slices is being created.
//! - A failed write is retried later. A rejected write is retried after 10 minutes, or earlier with different content.
//! - A write is not repeated while the slice has the version that the server returned for the first write.

mod engine;
mod looking;

use super::builders::{NAMESPACE, node, pod, service};
use super::server::{Answer, Server};
use crate::{Controller, Input, Object, Operation, ServiceEvent, SliceWrite, Timing};
use endpointslice::Config;
use endpointslice::metrics::Metrics;
use endpointslice::model::{EndpointSlice, Node, Pod, Service};
use fleetnet_runtime::engine::versions::Versions;
use fleetnet_types::{ObjectName, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Simulated time at which the tests start.
pub(crate) const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Simulated wait before a failed write is retried.
const BACK_OFF: Duration = Duration::from_millis(20);
/// Shortest delay until the next plan, if a plan requests a time for it. The engine has the same limit.
const AGAIN_SOONEST: Duration = Duration::from_millis(5);
/// Maximum number of steps (plans, events and responses) until the cluster has settled. If more steps are needed, the
/// test fails.
const MOST_STEPS: usize = 20_000;

/// Simulated outcome of a write that the controller sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server executes the write and responds.
    Done,
    /// The request is lost before it reaches the server.
    Failed,
    /// The server executes the write, but its response is lost.
    Unanswered,
    /// The write stays in flight until [`World::deliver_responses`].
    Slow,
    /// The server rejects the write for its content.
    Rejected,
    /// The server executes the write, but its response arrives only at [`World::deliver_responses`]. The watch shows
    /// the change earlier.
    AnsweredLate,
}

/// Write that succeeded, for tests to inspect.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) at: Timestamp,
    pub(crate) after: Option<EndpointSlice>,
}

/// Counts since the start of the process, to compare with the controller's metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// Number of plans with nothing left to write, in which every pod has a Node.
    pub(crate) rests: usize,
    /// Number of failed syncs. A sync fails at a failed write, or if a pod still has no Node when nothing is left to
    /// write.
    pub(crate) errors: usize,
    /// Operations of the writes that succeeded.
    pub(crate) changes: Vec<Operation>,
}

struct Flight {
    key: ObjectName,
    write: SliceWrite,
    fate: Fate,
    /// Response that has not arrived yet. `None` if the server did not execute the write.
    answer: Option<Answer>,
    /// True if the Service was not replaced since the plan of the write, and the controller was active all the time.
    is_current: bool,
    /// Description of the cluster when the write was planned, from the test's [`Note`] function.
    note: BTreeSet<String>,
}

/// Check that a test makes after each write that the server executes. Its arguments are the result of the test's
/// [`Note`] function at the time of the plan, and the slices before and after the write.
pub(crate) type Guard = Box<dyn Fn(&BTreeSet<String>, &[EndpointSlice], &[EndpointSlice])>;
/// Function that describes the state of the cluster when a write is planned. The [`Guard`] gets the description.
pub(crate) type Note = fn(&World) -> BTreeSet<String>;

/// Simulated cluster with an EndpointSlice controller.
pub(crate) struct World {
    pub(crate) controller: Controller,
    pub(crate) now: Timestamp,
    pub(crate) server: Server,
    pub(crate) services: BTreeMap<(String, String), Service>,
    pub(crate) pods: BTreeMap<(String, String), Pod>,
    pub(crate) nodes: BTreeMap<String, Node>,
    /// Names of the pods and Nodes that the simulated engine reports as undecodable when it lists them.
    pub(crate) undecodable: BTreeSet<&'static str>,
    pub(crate) events: Vec<ServiceEvent>,
    pub(crate) done: Vec<Done>,
    pub(crate) plans: usize,
    pub(crate) registry: prometheus::Registry,
    pub(crate) config: Config,
    timing: Timing,
    serves: bool,
    /// Inputs (kinds) that the simulated engine has reported to the controller as completely listed.
    complete: BTreeSet<Input>,
    versions: Versions<EndpointSlice>,
    watch_is_paused: bool,
    requeue: BTreeSet<ObjectName>,
    again: BTreeMap<ObjectName, Timestamp>,
    retries: BTreeMap<ObjectName, Timestamp>,
    troubles: Vec<(SliceWrite, Option<Timestamp>)>,
    /// Latest failed write to each slice: a hash of its content, and its error. Removed when a write to the slice
    /// succeeds.
    failing: BTreeMap<ObjectName, (u64, String)>,
    /// Services with a write since the last sync ended. Only the first failure of such a Service counts as a failed
    /// sync.
    tries: BTreeSet<ObjectName>,
    pub(crate) counted: Counted,
    flights: VecDeque<Flight>,
    fates: Box<dyn FnMut(&SliceWrite) -> Fate>,
    guard: Option<(Note, Guard)>,
}

impl World {
    /// Returns a cluster with the Node node-1, which has no zone. The controller is active and ready.
    pub(crate) fn new() -> Self {
        Self::with(Config::default(), Timing::default())
    }

    pub(crate) fn with(config: Config, timing: Timing) -> Self {
        let mut world = Self::unready(config, timing);
        world.nodes.insert("node-1".to_owned(), node("node-1", "", ""));
        world.run(false);
        world.run(true);
        world
    }

    /// Returns a settled cluster with the Service web, whose first writes [`World::take_done`] does not return.
    pub(crate) fn with_web() -> Self {
        Self::with_web_and([])
    }

    /// Returns a settled cluster as [`World::with_web`] does, with the pods 1 and 2 of the Service.
    pub(crate) fn with_web_and_two_pods() -> Self {
        Self::with_web_and([pod(1), pod(2)])
    }

    fn with_web_and(pods: impl IntoIterator<Item = Pod>) -> Self {
        let mut world = Self::new();
        world.set(service("web"));
        world.set_all_and_settle(pods);
        world.take_done();
        world
    }

    /// Returns a cluster with an inactive controller, which has an empty cache.
    pub(crate) fn unready(config: Config, timing: Timing) -> Self {
        let (controller, registry) = controller(&config, timing);
        Self {
            controller,
            now: NOON,
            server: Server::default(),
            services: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            undecodable: BTreeSet::new(),
            events: Vec::new(),
            done: Vec::new(),
            plans: 0,
            registry,
            config,
            timing,
            serves: false,
            complete: BTreeSet::new(),
            versions: Versions::default(),
            watch_is_paused: false,
            requeue: BTreeSet::new(),
            again: BTreeMap::new(),
            retries: BTreeMap::new(),
            troubles: Vec::new(),
            failing: BTreeMap::new(),
            tries: BTreeSet::new(),
            counted: Counted::default(),
            flights: VecDeque::new(),
            fates: Box::new(|_| Fate::Done),
            guard: None,
        }
    }

    /// Creates or changes a Service, pod or Node. The controller sees the change at once.
    pub(crate) fn set(&mut self, object: impl Into<Object>) {
        let object = object.into();
        let full = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        match &object {
            Object::Service(service) => {
                let name = full(&service.metadata.namespace, &service.metadata.name);
                self.services.insert(name, service.clone());
            }
            Object::Pod(pod) => {
                self.pods.insert(full(&pod.metadata.namespace, &pod.metadata.name), pod.clone());
            }
            Object::Node(node) => {
                self.nodes.insert(node.metadata.name.to_string(), node.clone());
            }
            Object::EndpointSlice(_) => panic!("slices are the server's"),
        }
        let input = match &object {
            Object::Pod(_) => Input::Pod,
            Object::Node(_) => Input::Node,
            Object::Service(_) | Object::EndpointSlice(_) => Input::Service,
        };
        if self.watches(input) {
            self.learn(|controller, now, requeue| controller.apply(object, now, requeue));
        }
    }

    pub(crate) fn set_all<O: Into<Object>>(&mut self, objects: impl IntoIterator<Item = O>) {
        objects.into_iter().for_each(|object| self.set(object));
    }

    pub(crate) fn remove_service(&mut self, name: &str) {
        self.services.remove(&(NAMESPACE.to_owned(), name.to_owned()));
        let key = ObjectName::new(NAMESPACE, name);
        self.tries.remove(&key);
        self.flights.iter_mut().filter(|flight| flight.key == key).for_each(|flight| flight.is_current = false);
        if self.watches(Input::Service) {
            self.learn(|controller, now, requeue| controller.remove(Input::Service, NAMESPACE, name, now, requeue));
        }
    }

    pub(crate) fn remove_pod(&mut self, name: &str) {
        self.pods.remove(&(NAMESPACE.to_owned(), name.to_owned()));
        if self.watches(Input::Pod) {
            self.learn(|controller, now, requeue| controller.remove(Input::Pod, NAMESPACE, name, now, requeue));
        }
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        if self.watches(Input::Node) {
            self.learn(|controller, now, requeue| controller.remove(Input::Node, "", name, now, requeue));
        }
    }

    pub(crate) fn set_and_settle(&mut self, object: impl Into<Object>) {
        self.set(object);
        self.settle();
    }

    pub(crate) fn set_all_and_settle<O: Into<Object>>(&mut self, objects: impl IntoIterator<Item = O>) {
        self.set_all(objects);
        self.settle();
    }

    pub(crate) fn remove_pod_and_settle(&mut self, name: &str) {
        self.remove_pod(name);
        self.settle();
    }

    /// Creates a slice as another client does. The controller sees it in the next [`World::settle`].
    pub(crate) fn make_slice(&mut self, slice: &EndpointSlice) {
        self.server.make(serde_json::to_value(slice).expect("slices can be written"));
    }

    /// Changes a slice as another client does.
    pub(crate) fn edit_slice(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        self.server.edit(NAMESPACE, name, change);
    }

    /// Deletes a slice as another client does.
    pub(crate) fn delete_slice(&mut self, name: &str) {
        self.server.delete(NAMESPACE, name);
    }

    /// Deletes the slices of deleted Services, as the garbage collector does.
    pub(crate) fn collect_garbage(&mut self) {
        let owners: BTreeSet<_> = self.services.values().map(|service| service.metadata.uid.clone()).collect();
        for slice in self.server.slices() {
            let owner = slice.metadata.owner_references.first();
            if owner.is_some_and(|owner| !owners.contains(&owner.uid)) {
                self.delete_slice(&slice.metadata.name);
            }
        }
        self.forget_notes();
    }

    /// Sets the outcome of each write from now on.
    pub(crate) fn writes_are(&mut self, fate: impl FnMut(&SliceWrite) -> Fate + 'static) {
        self.fates = Box::new(fate);
    }

    /// Ends the wait of rejected writes, so that the engine retries them.
    pub(crate) fn retry_rejected(&mut self) {
        self.troubles.retain(|(_, until)| until.is_some());
        let services = self.services.values().map(|service| &service.metadata);
        self.requeue.extend(services.map(|metadata| ObjectName::new(&*metadata.namespace, &*metadata.name)));
    }

    /// Installs a webhook that changes each written slice.
    pub(crate) fn webhook(&mut self, webhook: fn(&mut Value)) {
        self.server.webhook = Some(webhook);
    }

    /// Clears the notes of all writes in flight, so that the [`Guard`] does not check these writes. After a foreign
    /// write to the slice of such a write, the note is outdated, and the check would fail.
    pub(crate) fn forget_notes(&mut self) {
        self.flights.iter_mut().for_each(|flight| flight.note.clear());
    }

    pub(crate) fn guard(&mut self, note: Note, guard: Guard) {
        self.guard = Some((note, guard));
    }

    /// Pauses or resumes the watch of slices. Responses to the controller's writes still arrive.
    pub(crate) fn pause_watch(&mut self, is_paused: bool) {
        self.watch_is_paused = is_paused;
    }

    /// Runs everything that is due now. The simulated time does not advance.
    pub(crate) fn settle(&mut self) {
        for _ in 0..MOST_STEPS {
            if !self.watch_is_paused
                && let Some(event) = self.server.watch.pop_front()
            {
                self.see(event);
            } else if let Some(key) = self.requeue.pop_first() {
                self.plan(&key);
            } else if let Some(at) = self.flights.iter().position(|flight| flight.fate != Fate::Slow) {
                let flight = self.flights.remove(at).expect("it was found there");
                self.end(flight);
            } else {
                return;
            }
        }
        panic!("it does not settle: {:?}", self.done.iter().rev().take(4).collect::<Vec<_>>());
    }

    /// Delivers the responses of all writes in flight.
    pub(crate) fn deliver_responses(&mut self) {
        for flight in &mut self.flights {
            flight.fate = Fate::Done;
        }
        self.settle();
    }

    /// Delivers the responses of all writes in flight. Later writes get their responses at once.
    pub(crate) fn let_writes_end(&mut self) {
        self.writes_are(|_| Fate::Done);
        self.deliver_responses();
    }

    /// Advances the simulated time. Runs all timers that end in this time, in order.
    pub(crate) fn advance(&mut self, duration: Duration) {
        let until = self.now + duration;
        self.settle();
        loop {
            let due = self.again.iter().chain(&self.retries).map(|(key, at)| (*at, key.clone()));
            let Some((at, key)) = due.min().filter(|(at, _)| *at <= until) else { break };
            self.now = self.now.max(at);
            self.again.remove(&key);
            self.retries.remove(&key);
            self.requeue.insert(key);
            self.settle();
        }
        self.now = until;
    }
}

fn controller(config: &Config, timing: Timing) -> (Controller, prometheus::Registry) {
    let registry = prometheus::Registry::new();
    let metrics = Metrics::new(&registry, config).expect("a registry of its own");
    (Controller::new(config.clone(), timing, Some(metrics)), registry)
}
