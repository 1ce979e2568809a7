//! Simulated fleet: a hub, members and their agents. The fleet also decides the order of all steps.

use super::agent::{Agent, KindChange, View, name_of};
use super::build::{BuildRequest, BuildSlice, IntoObject, SYSTEM, request, service, service_export, slice};
use super::cluster::{Answer, Cluster};
use super::stream::Stream;
use fastrand::Rng;
use fleetnet_core::member::{Membership, Settings};
use fleetnet_core::model::{ConsumerType, Kind, Object};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Patch, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::{ObjectName, Timestamp, WatchState};
use std::collections::BTreeMap;

/// Time in microseconds for which a derived Service stays after its last exporter is gone.
pub(crate) const GRACE_MICROS: i64 = 60_000_000;
/// Limit of steps: more steps mean that the fleet never comes to rest, and the test fails. Only an endless loop reaches
/// this limit.
const STEPS_MAX: usize = 20_000;

/// Cluster of the fleet, or the agent in this cluster: the hub, or the member with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Hub,
    Member(usize),
}

/// Executed write, with its writer and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) who: Who,
    pub(crate) write: Write,
    pub(crate) answer: Answer,
}

impl Entry {
    /// Returns the write as text, such as `member-1 creates EndpointSliceExport`.
    pub(crate) fn line(&self) -> String {
        let who = match self.who {
            Who::Hub => "hub".to_owned(),
            Who::Member(index) => cluster_id(index),
        };
        let what = match &self.write.action {
            Action::Create(_) => "creates".to_owned(),
            Action::Delete { .. } => "deletes".to_owned(),
            Action::Patch { patch, .. } => format!("patches {} of", patch_name(patch)),
        };
        let failed = if self.answer == Answer::Done { String::new() } else { format!(" ({:?})", self.answer) };
        format!("{who} {what} {:?}{failed}", self.write.kind())
    }
}

fn patch_name(patch: &Patch) -> &'static str {
    match patch {
        Patch::Finalizers { .. } => "finalizers",
        Patch::ServiceExportConditions(_)
        | Patch::McsServiceExportConditions(_)
        | Patch::McsServiceImportStatus(_)
        | Patch::InternalServiceExportConditions(_)
        | Patch::InternalServiceExportMerge { .. }
        | Patch::ServiceImportConditions(_) => "conditions",
        Patch::InternalServiceExportStamp { .. } => "stamp",
        Patch::MultiClusterService { .. } => "labels",
        Patch::MultiClusterServiceStatus { .. }
        | Patch::ServiceImportStatus(_)
        | Patch::InternalServiceImportStatus(_) => "status",
        Patch::ServiceImportOwners { .. } => "owners",
        Patch::Claims { .. } => "claims",
        Patch::ConsumerType(_) => "type",
        Patch::ClaimSelection(_) | Patch::ClaimSelectors(_) => "selection",
        Patch::MemberAgent { .. } | Patch::InternalMemberClusterStatus(_) => "heartbeat",
        Patch::MemberAgentStatus(_) => "answer",
        Patch::InternalServiceExport { .. }
        | Patch::InternalServiceImport(_)
        | Patch::EndpointSliceExport(_)
        | Patch::EndpointSliceImport(_)
        | Patch::DerivedService(_)
        | Patch::McsService(_)
        | Patch::McsServiceImport { .. }
        | Patch::ImportedSlice(_)
        | Patch::MergedServiceImport { .. } => "content",
    }
}

/// Returns the cluster id of a member by its index: `member-1` for the first.
pub(crate) fn cluster_id(index: usize) -> String {
    format!("member-{}", index + 1)
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) cluster: Cluster,
    pub(crate) agent: Agent<member::Planner>,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) hub: Cluster,
    pub(crate) hub_agent: Agent<hub::Planner>,
    pub(crate) members: Vec<Member>,
    pub(crate) now: Timestamp,
    pub(crate) ledger: Vec<Entry>,
    /// Source of random numbers that choose the next step. `None`: the order is fixed. First all watches deliver, then
    /// agents plan, then the servers execute writes.
    chaos: Option<Rng>,
    /// Microseconds that pass with each step.
    pub(crate) tick_micros: i64,
    /// Last step of the fleet.
    pub(crate) last: Option<Step>,
    /// Changes that the watches deliver, each with the agent that receives it. `None` unless a test records the
    /// changes.
    pub(crate) changes: Option<Vec<(Who, KindChange)>>,
    /// Slice streams of the members, by the index of the member.
    pub(crate) streams: BTreeMap<usize, Stream>,
    /// Number of previews that the streams have delivered.
    pub(crate) delivered_previews: usize,
}

/// Step of the fleet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Hear(Who, Kind),
    Plan(Who, usize),
    CarryOut(Who, usize),
    /// A slice stream delivers its next message to the member (true) or to the hub agent (false).
    Message {
        member: usize,
        down: bool,
    },
}

/// True if member agents read objects of this kind from the hub, not from their own cluster.
fn in_hub(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::InternalServiceExport
            | Kind::InternalServiceImport
            | Kind::EndpointSliceExport
            | Kind::EndpointSliceImport
            | Kind::Namespace
            | Kind::MemberAgent
            | Kind::InternalMemberCluster
    )
}

pub(crate) fn settings(index: usize) -> Settings {
    let cluster = cluster_id(index);
    Settings {
        hub_namespace: names::member_namespace(&cluster),
        cluster: cluster.as_str().into(),
        fleet_system_namespace: SYSTEM.into(),
        derived_service_grace_micros: GRACE_MICROS,
        source_ranges: BTreeMap::new(),
        own_ranges: fleetnet_core::member::OwnRanges::default(),
        load_balancers_per_namespace: None,
        announces: None,
        leader: format!("leader of {cluster}").into(),
        takeover_after_micros: 1_800_000_000,
        membership: Membership::default(),
        mcs_api: fleetnet_core::member::McsApi::Off,
        routing_slices: false,
        cluster_selection: None,
        limits: fleetnet_core::member::Limits::default(),
    }
}

impl World {
    /// Returns a hub and this many members. Their agents have just started.
    pub(crate) fn new(members: usize) -> Self {
        let member = |index| Member {
            cluster: Cluster::called(&cluster_id(index)),
            agent: Agent::new(member::Planner::new(settings(index))),
        };
        let mut world = Self {
            hub: Cluster::default(),
            hub_agent: Agent::new(hub::Planner::default()),
            members: (0..members).map(member).collect(),
            now: super::build::seconds(1_000),
            ledger: Vec::new(),
            chaos: None,
            tick_micros: 1_000,
            last: None,
            changes: None,
            streams: BTreeMap::new(),
            delivered_previews: 0,
        };
        world.restart_all();
        world
    }

    /// Makes the order of all later steps random, from this seed.
    pub(crate) fn in_any_order(mut self, seed: u64) -> Self {
        self.chaos = Some(Rng::with_seed(seed));
        self
    }

    pub(crate) fn everyone(&self) -> Vec<Who> {
        (0..self.members.len()).map(Who::Member).chain([Who::Hub]).collect()
    }

    // === Changes by users and by other controllers ===

    pub(crate) fn cluster(&self, who: Who) -> &Cluster {
        match who {
            Who::Hub => &self.hub,
            Who::Member(index) => &self.members[index].cluster,
        }
    }

    fn cluster_mut(&mut self, who: Who) -> &mut Cluster {
        match who {
            Who::Hub => &mut self.hub,
            Who::Member(index) => &mut self.members[index].cluster,
        }
    }

    pub(crate) fn create(&mut self, who: Who, object: Object) -> bool {
        let now = self.now;
        let done = self.cluster_mut(who).create(object, now);
        self.publish();
        done
    }

    pub(crate) fn edit(&mut self, who: Who, kind: Kind, name: &ObjectName, change: impl FnOnce(&mut Object)) -> bool {
        let done = self.cluster_mut(who).edit(kind, name, change);
        self.publish();
        done
    }

    pub(crate) fn delete(&mut self, who: Who, kind: Kind, name: &ObjectName) {
        self.cluster_mut(who).delete(kind, name);
        self.publish();
    }

    /// Moves all new changes of the clusters to the queues of the watches that deliver them.
    fn publish(&mut self) {
        for change in std::mem::take(&mut self.hub.changes) {
            let namespace = name_of(&change.1).namespace.clone();
            for (index, member) in self.members.iter_mut().enumerate() {
                if *settings(index).hub_namespace == *namespace {
                    member.agent.notify(change.clone());
                    self.changes.iter_mut().for_each(|changes| changes.push((Who::Member(index), change.clone())));
                }
            }
            self.changes.iter_mut().for_each(|changes| changes.push((Who::Hub, change.clone())));
            self.hub_agent.notify(change);
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            for change in std::mem::take(&mut member.cluster.changes) {
                self.changes.iter_mut().for_each(|changes| changes.push((Who::Member(index), change.clone())));
                member.agent.notify(change);
            }
        }
    }

    // === Restarts and lists of agents ===

    /// Returns all objects that an agent may read.
    pub(crate) fn visible(&self, who: Who) -> Vec<Object> {
        match who {
            Who::Hub => self.hub.all().cloned().collect(),
            Who::Member(index) => {
                let namespace = settings(index).hub_namespace;
                let in_namespace = self
                    .hub
                    .all()
                    .filter(|object| in_hub(object.kind()) && *object.meta().name.namespace == *namespace);
                self.members[index].cluster.all().chain(in_namespace).cloned().collect()
            }
        }
    }

    pub(crate) fn restart(&mut self, who: Who) {
        self.lose_streams(who);
        let objects = self.visible(who);
        match who {
            Who::Hub => self.hub_agent.restart(&objects),
            Who::Member(index) => self.members[index].agent.restart(&objects),
        }
    }

    pub(crate) fn restart_all(&mut self) {
        for who in self.everyone() {
            self.restart(who);
        }
    }

    pub(crate) fn relist(&mut self, who: Who, kind: Kind) {
        let objects = self.visible(who);
        match who {
            Who::Hub if <hub::Planner as View>::KINDS.contains(&kind) => self.hub_agent.list(kind, &objects),
            Who::Member(index) if <member::Planner as View>::KINDS.contains(&kind) => {
                self.members[index].agent.list(kind, &objects);
            }
            _ => {}
        }
    }

    /// Drops the events that an agent's watch has not delivered yet, and sets the state of this watch. Works even
    /// before the agent has started.
    pub(crate) fn not_served(&mut self, who: Who, kind: Kind, state: WatchState) {
        let now = self.now;
        match who {
            Who::Hub => self.hub_agent.not_served(kind, state, now),
            Who::Member(index) => self.members[index].agent.not_served(kind, state, now),
        }
    }

    // === Steps of the fleet ===

    /// Makes the next step. Returns false if no step is possible.
    pub(crate) fn step(&mut self) -> bool {
        let steps = self.steps();
        if steps.is_empty() {
            return false;
        }
        let chosen = self.chaos.as_mut().map_or(0, |random| random.usize(..steps.len()));
        self.now = self.now.plus_micros(self.tick_micros);
        self.last = Some(steps[chosen]);
        match steps[chosen] {
            Step::Hear(who, kind) => self.deliver(who, kind),
            Step::Plan(who, key) => self.plan(who, key),
            Step::CarryOut(who, write) => self.execute(who, write),
            Step::Message { member, down } => self.deliver_message(member, down),
        }
        true
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = [Vec::new(), Vec::new(), Vec::new()];
        for who in self.everyone() {
            match who {
                Who::Hub => options(who, &self.hub_agent, &mut steps),
                Who::Member(index) => options(who, &self.members[index].agent, &mut steps),
            }
        }
        steps[0].extend(self.message_steps());
        steps.concat()
    }

    fn deliver(&mut self, who: Who, kind: Kind) {
        match who {
            Who::Hub => self.hub_agent.deliver(kind, self.now),
            Who::Member(index) => self.members[index].agent.deliver(kind, self.now),
        }
    }

    fn plan(&mut self, who: Who, key: usize) {
        fn plan<V: View>(agent: &mut Agent<V>, key: usize, now: Timestamp) {
            let key = agent.requeue.iter().nth(key).cloned().expect("a requeued key");
            agent.plan(&key, now);
        }
        match who {
            Who::Hub => plan(&mut self.hub_agent, key, self.now),
            Who::Member(index) => plan(&mut self.members[index].agent, key, self.now),
        }
        self.send_messages();
    }

    fn execute(&mut self, who: Who, index: usize) {
        let (now, hub) = (self.now, &mut self.hub);
        let (write, answer) = match who {
            Who::Hub => {
                let (write, key) = self.hub_agent.in_flight.remove(index);
                let answer = hub.execute(&write, now);
                settle(&mut self.hub_agent, &write, &key, hub, answer, now);
                (write, answer)
            }
            Who::Member(member) => {
                let Member { cluster, agent } = &mut self.members[member];
                let (write, key) = agent.in_flight.remove(index);
                let target = if in_hub(write.kind()) { hub } else { cluster };
                let answer = target.execute(&write, now);
                settle(agent, &write, &key, target, answer, now);
                (write, answer)
            }
        };
        self.ledger.push(Entry { who, write, answer });
        self.publish_to_others(who);
    }

    /// Queues the changes of a write for all watches except the writer's own watch: the writer already has the answer.
    fn publish_to_others(&mut self, writer: Who) {
        let before = self.inbox_lengths(writer);
        self.publish();
        match writer {
            Who::Hub => truncate(&mut self.hub_agent, &before),
            Who::Member(index) => truncate(&mut self.members[index].agent, &before),
        }
    }

    fn inbox_lengths(&self, who: Who) -> Vec<(Kind, usize)> {
        let inbox = match who {
            Who::Hub => &self.hub_agent.inbox,
            Who::Member(index) => &self.members[index].agent.inbox,
        };
        inbox.iter().map(|(kind, queue)| (*kind, queue.len())).collect()
    }

    /// Runs the fleet until no step is possible at this time. Returns the number of writes.
    pub(crate) fn run(&mut self) -> usize {
        let before = self.ledger.len();
        for _ in 0..STEPS_MAX {
            if !self.step() {
                return self.ledger.len() - before;
            }
        }
        let last: Vec<String> = self.ledger.iter().rev().take(30).map(Entry::line).collect();
        panic!("no end after {STEPS_MAX} steps; the last writes, newest first: {last:#?}");
    }

    /// Runs the fleet until no step is possible. Then lets `micros` microseconds pass, and plans each key again at the
    /// time that its last plan requested. Returns the number of writes.
    pub(crate) fn run_for(&mut self, micros: i64) -> usize {
        let end = self.now.plus_micros(micros);
        let mut writes = self.run();
        while let Some(at) = self.next_planned_time().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let now = self.now;
            requeue_due(&mut self.hub_agent, now);
            self.members.iter_mut().for_each(|member| requeue_due(&mut member.agent, now));
            writes += self.run();
        }
        self.now = self.now.max(end);
        writes
    }

    fn next_planned_time(&self) -> Option<Timestamp> {
        let times = self.members.iter().flat_map(|member| member.agent.again.values());
        times.chain(self.hub_agent.again.values()).min().copied()
    }

    /// Returns all writes after the first `mark` writes as text, in the order in which they were executed.
    pub(crate) fn lines_since(&self, mark: usize) -> Vec<String> {
        self.ledger[mark..].iter().map(Entry::line).collect()
    }
}

fn options<V: View>(who: Who, agent: &Agent<V>, steps: &mut [Vec<Step>; 3]) {
    for (kind, queue) in &agent.inbox {
        if !queue.is_empty() {
            steps[0].push(Step::Hear(who, *kind));
        }
    }
    // A key is planned again only after the answers to all its writes, so that the next plan sees the result of these
    // writes.
    let free = |key: &V::Key| agent.in_flight.iter().all(|(_, of)| of != key);
    let keys = agent.requeue.iter().enumerate().filter(|(_, key)| free(key));
    steps[1].extend(keys.map(|(index, _)| Step::Plan(who, index)));
    steps[2].extend((0..agent.in_flight.len()).map(|write| Step::CarryOut(who, write)));
}

fn settle<V: View>(
    agent: &mut Agent<V>,
    write: &Write,
    key: &V::Key,
    cluster: &Cluster,
    answer: Answer,
    now: Timestamp,
) {
    if answer == Answer::NoNamespace {
        agent.again.insert(key.clone(), now.plus_micros(1_000_000));
    }
    let failed = !matches!(answer, Answer::Done | Answer::NoNamespace);
    agent.answered(write, key, cluster, failed, now);
}

fn truncate<V: View>(agent: &mut Agent<V>, lengths: &[(Kind, usize)]) {
    for (kind, queue) in &mut agent.inbox {
        let length = lengths.iter().find(|(other, _)| other == kind).map_or(0, |(_, length)| *length);
        queue.truncate(length);
    }
}

fn requeue_due<V: View>(agent: &mut Agent<V>, now: Timestamp) {
    let due: Vec<V::Key> = agent.again.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
    for key in due {
        agent.again.remove(&key);
        agent.requeue.insert(key);
    }
}

/// Returns the fleet of most tests: member-1 exports `work/app` with one slice of two endpoints, and all other members
/// import it.
pub(crate) fn fleet(importers: usize, consumer: ConsumerType) -> World {
    let mut world = World::new(1 + importers);
    world.run();
    populate(&mut world, importers, consumer);
    world
}

/// Creates the objects of [`fleet`] in an existing fleet.
pub(crate) fn populate(world: &mut World, importers: usize, consumer: ConsumerType) {
    world.create(Who::Member(0), service("work/app").object());
    world.create(Who::Member(0), slice("work/app-1").endpoints(&["10.0.0.1", "10.0.0.2"]).object());
    world.create(Who::Member(0), service_export("work/app").object());
    for importer in 1..=importers {
        world.create(Who::Member(importer), request("work/app").consumed_as(consumer).object());
    }
    world.run();
}
