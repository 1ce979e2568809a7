//! Exploration of all interleavings: changes by members in a fixed order, and between them the steps of the hub agent
//! in every possible order.
//!
//! A step is one of these:
//!
//! - a member changes an object;
//! - the view receives the newest state of one object;
//! - the hub agent plans from its view;
//! - the server executes a write that is in flight (sent, but not executed), or the write is lost.
//!
//! So the view of a plan may lack the last write to any object. Writes of the same plan end in any order, or never. The
//! exploration visits each reachable state once.

use super::build::seconds;
use super::cluster::{Answer, Cluster};
use super::view::hub_view;
use fleetnet_core::hub::Key;
use fleetnet_core::model::{Kind, Object};
use fleetnet_core::plan::{Action, Write};
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// Limit of states in an exploration, so that an endless exploration fails. No test reaches this limit.
const STATES_MAX: usize = 200_000;

/// Name of a member's change, and the function that makes the change.
pub(crate) type Change = (&'static str, fn(&mut Cluster));

type Id = (Kind, ObjectName);

/// Input of an exploration, and the check of each step.
pub(crate) struct Exploration {
    pub(crate) start: Cluster,
    /// Keys that the hub agent plans.
    pub(crate) keys: Vec<Key>,
    /// Changes by members. The order of the changes is fixed, but each change can happen between any two other steps.
    pub(crate) changes: Vec<Change>,
    /// True if the view receives new objects of one kind in the order of their creation, as from a single watch.
    pub(crate) in_order: bool,
    /// Check of a step. The arguments are the cluster before and after the step. The result is an error text, or `None`
    /// if the step is correct.
    pub(crate) wrong: fn(&Cluster, &Cluster) -> Option<String>,
}

#[derive(Clone)]
struct State {
    server: Cluster,
    view: BTreeMap<Id, Object>,
    in_flight: Vec<Write>,
    changed: usize,
}

/// Visited state, with the index of the previous state and the name of the step between them.
struct Node {
    state: State,
    from: Option<(usize, String)>,
    next: Vec<usize>,
}

impl Exploration {
    /// Visits all states. Returns the clusters of the final states, from which no step is possible, and the number of
    /// all states. Panics with the list of steps if a step is wrong, or if some state leads to no final state.
    pub(crate) fn run(&self) -> (Vec<Cluster>, usize) {
        let start = State {
            view: self.start.all().map(|object| (id(object), object.clone())).collect(),
            server: self.start.clone(),
            in_flight: Vec::new(),
            changed: 0,
        };
        let mut known = HashMap::from([(start.fingerprint(), 0)]);
        let mut nodes = vec![Node { state: start, from: None, next: Vec::new() }];
        let mut at = 0;
        while at < nodes.len() {
            for (step, state) in self.steps(&nodes[at].state) {
                if let Some(wrong) = (self.wrong)(&nodes[at].state.server, &state.server) {
                    panic!("{wrong}, after {:#?}", path(&nodes, at, step));
                }
                let index = *known.entry(state.fingerprint()).or_insert_with(|| {
                    nodes.push(Node { state, from: Some((at, step)), next: Vec::new() });
                    nodes.len() - 1
                });
                nodes[at].next.push(index);
            }
            assert!(nodes.len() < STATES_MAX, "no end after {STATES_MAX} states");
            at += 1;
        }
        let ends: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].next.is_empty()).collect();
        assert_all_settle(&nodes, &ends);
        (ends.into_iter().map(|at| nodes[at].state.server.clone()).collect(), nodes.len())
    }

    fn steps(&self, from: &State) -> Vec<(String, State)> {
        let mut steps = Vec::new();
        let mut step = |what: String, change: &dyn Fn(&mut State)| {
            let mut state = from.clone();
            change(&mut state);
            steps.push((what, state));
        };
        if let Some((what, change)) = self.changes.get(from.changed) {
            step((*what).to_owned(), &|state| {
                change(&mut state.server);
                state.changed += 1;
            });
        }
        for id in from.behind() {
            if !self.in_order || !from.hides_an_older(&id) {
                step(format!("visible: {id:?}"), &|state| match state.server.get(id.0, &id.1).cloned() {
                    Some(object) => drop(state.view.insert(id.clone(), object)),
                    None => drop(state.view.remove(&id)),
                });
            }
        }
        for (index, write) in from.in_flight.iter().enumerate() {
            step(format!("carried out: {}", description(write)), &|state| {
                let write = state.in_flight.remove(index);
                let answer = state.server.execute(&write, self.now(state));
                assert!(answer != Answer::NoNamespace, "{write:?}");
            });
            step(format!("lost: {}", description(write)), &|state| drop(state.in_flight.remove(index)));
        }
        let planned = self.planned(from);
        if !planned.is_empty() {
            let what: Vec<String> = planned.iter().map(description).collect();
            step(format!("planned: {}", what.join(", ")), &|state| state.in_flight.extend(planned.clone()));
        }
        steps
    }

    /// Returns the writes that the plans of all keys have now, without writes to an object that has a write in flight:
    /// sent, but not executed.
    fn planned(&self, state: &State) -> Vec<Write> {
        let view = hub_view(state.view.values().cloned());
        let silent = |write: Write| Write { events: Vec::new(), ..write };
        let is_free =
            |write: &Write| state.in_flight.iter().all(|other| (other.kind(), &other.at) != (write.kind(), &write.at));
        let writes = self.keys.iter().flat_map(|key| view.plan(key, self.now(state)).writes);
        writes.map(silent).filter(is_free).collect()
    }

    /// Returns the time of a state. Each change by a member advances the time by one second.
    fn now(&self, state: &State) -> Timestamp {
        seconds(1_000 + i64::try_from(state.changed).expect("a few"))
    }
}

impl State {
    /// Returns the objects that differ between the server and the view.
    fn behind(&self) -> Vec<Id> {
        let gone = self.view.keys().filter(|(kind, name)| self.server.get(*kind, name).is_none()).cloned();
        let newer = self.server.all().filter(|object| self.view.get(&id(object)) != Some(object)).map(id);
        newer.chain(gone).collect()
    }

    /// True if the view lacks this object, and also lacks an older object of the same kind. A single watch would
    /// deliver the older object first.
    fn hides_an_older(&self, id: &Id) -> bool {
        let version = |of: &Object| of.meta().resource_version;
        let Some(object) = self.server.get(id.0, &id.1).filter(|_| !self.view.contains_key(id)) else { return false };
        let hidden = self.server.list(id.0).filter(|other| !self.view.contains_key(&self::id(other)));
        hidden.into_iter().any(|other| version(other) < version(object))
    }

    /// Returns a text that is equal for states with equal behaviour. Of resourceVersions, only the order matters.
    fn fingerprint(&self) -> String {
        let mut versions: Vec<u64> =
            self.server.all().chain(self.view.values()).map(|it| it.meta().resource_version).collect();
        versions.extend(self.in_flight.iter().filter_map(version_of));
        versions.sort_unstable();
        versions.dedup();
        let rank = |version: u64| versions.binary_search(&version).expect("it is one of them") as u64;
        let ranked = |object: &Object| {
            let mut object = object.clone();
            object.meta_mut().resource_version = rank(object.meta().resource_version);
            object
        };
        let mut in_flight = self.in_flight.clone();
        for write in &mut in_flight {
            if let Action::Patch { resource_version, .. } = &mut write.action {
                *resource_version = rank(*resource_version);
            }
        }
        in_flight.sort_by_key(|write| (write.kind(), write.at.clone()));
        let server: Vec<Object> = self.server.all().map(ranked).collect();
        let view: Vec<Object> = self.view.values().map(ranked).collect();
        format!("{server:?} {view:?} {in_flight:?} {}", self.changed)
    }
}

fn id(object: &Object) -> Id {
    (object.kind(), object.meta().name.clone())
}

fn version_of(write: &Write) -> Option<u64> {
    match write.action {
        Action::Patch { resource_version, .. } => Some(resource_version),
        Action::Create(_) | Action::Delete { .. } => None,
    }
}

fn description(write: &Write) -> String {
    match &write.action {
        Action::Create(_) => format!("create {:?} {}", write.kind(), write.at),
        Action::Patch { patch, .. } => format!("patch {:?} {} {patch:?}", write.kind(), write.at),
        Action::Delete { .. } => format!("delete {:?} {}", write.kind(), write.at),
    }
}

fn path(nodes: &[Node], mut at: usize, last: String) -> Vec<String> {
    let mut steps = vec![last];
    while let Some((from, step)) = &nodes[at].from {
        steps.push(step.clone());
        at = *from;
    }
    steps.reverse();
    steps
}

/// Asserts that every state leads to a final state, from which no step is possible.
fn assert_all_settle(nodes: &[Node], ends: &[usize]) {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.next.iter().for_each(|next| before[*next].push(at));
    }
    let mut settles = vec![false; nodes.len()];
    let mut rest = ends.to_vec();
    while let Some(at) = rest.pop() {
        if !std::mem::replace(&mut settles[at], true) {
            rest.extend(&before[at]);
        }
    }
    if let Some(at) = settles.iter().position(|settles| !settles) {
        panic!("it never settles after {:#?}", path(nodes, at, "and so on".to_owned()));
    }
}
