//! Simulated engine: shows changes to the controller, plans, executes writes and reports their outcome.

use super::super::model;
use super::super::server::{Answer, Watched, decoded};
use super::{AGAIN_SOONEST, BACK_OFF, Counted, Done, Fate, Flight, World, controller};
use crate::{Controller, Input, Object, Planned, SliceWrite, Written};
use endpointslice::Text;
use endpointslice::model::EndpointSlice;
use fleetnet_runtime::engine::versions::Versions;
use fleetnet_runtime::{Change, Observed, Verb, WatchState, WriteEnd};
use fleetnet_types::{ObjectName, Timestamp};
use serde_json::Value;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

impl World {
    pub(super) fn learn(&mut self, news: impl FnOnce(&mut Controller, Timestamp, &mut Vec<ObjectName>)) {
        let mut requeue = Vec::new();
        news(&mut self.controller, self.now, &mut requeue);
        self.requeue.extend(requeue);
    }

    pub(super) fn see(&mut self, event: Watched) {
        let mut news = Vec::new();
        match event {
            Watched::Applied(slice) => self.versions.seen(observed(&slice), &mut news),
            Watched::Deleted { namespace, name, uid, version } => {
                self.versions.deleted(&ObjectName::new(namespace, name), &uid.into(), version, &mut news);
            }
        }
        self.take_in(news);
    }

    pub(super) fn take_in(&mut self, news: Vec<Change<EndpointSlice>>) {
        for change in news {
            self.learn(|controller, now, requeue| match change {
                Change::Applied(slice) => controller.apply(Object::EndpointSlice(slice), now, requeue),
                Change::Removed { name, .. } => {
                    controller.remove(Input::EndpointSlice, &name.namespace, &name.name, now, requeue);
                }
                Change::Undecodable { name } => {
                    controller.undecodable(Input::EndpointSlice, &name.namespace, &name.name, now, requeue);
                }
            });
        }
    }

    pub(super) fn plan(&mut self, key: &ObjectName) {
        let is_making = |flight: &Flight| flight.key == *key && matches!(flight.write.verb, Verb::Create { .. });
        if self.flights.iter().any(is_making) {
            return;
        }
        self.plans += 1;
        let again = self.controller.plan(key, self.now);
        let planned = self.controller.plan(key, self.now);
        assert_eq!(planned.writes, again.writes, "a plan changes nothing");
        assert_eq!((&planned.events, planned.again), (&again.events, again.again), "a plan changes nothing");
        let Planned { writes, events, again, effect } = planned;
        if let Some(effect) = effect {
            self.controller.planned(key, *effect, self.now);
        }
        let may_write = self.serves && self.complete.len() == Input::ALL.len();
        assert!(writes.is_empty() || may_write, "it does not serve, or does not know all, and writes {writes:?}");
        assert_eq!(self.controller.is_ready(), may_write);
        self.events.extend(events);
        if writes.is_empty() && again.is_none() {
            self.count_rest(key);
        }
        self.again.remove(key);
        if let Some(again) = again {
            assert!(again > self.now, "it asks to be planned in the past");
            self.again.insert(key.clone(), again.max(self.now + AGAIN_SOONEST));
        }
        let guard = self.guard.as_ref().filter(|_| !writes.is_empty());
        let note = guard.map(|(note, _)| note(self)).unwrap_or_default();
        for write in writes {
            self.begin(key, write, note.clone());
        }
    }

    pub(super) fn begin(&mut self, key: &ObjectName, write: SliceWrite, note: BTreeSet<String>) {
        let is_same = |other: &SliceWrite| other.namespace == write.namespace && other.name == write.name;
        if self.flights.iter().any(|flight| is_same(&flight.write)) {
            return;
        }
        self.troubles.retain(|(trouble, until)| {
            (*trouble == write || !is_same(trouble)) && until.is_none_or(|until| until > self.now)
        });
        if let Some((_, until)) = self.troubles.iter().find(|(trouble, _)| *trouble == write) {
            self.retries.extend(until.map(|until| (key.clone(), until)));
            return;
        }
        if self.versions.echoed(&target(&write), content(&write)) {
            return;
        }
        let fate = (self.fates)(&write);
        self.tries.insert(key.clone());
        self.controller.write_begun(key, &target(&write), &write.receipt);
        self.flights.push_back(Flight { key: key.clone(), write, fate, answer: None, is_current: true, note });
    }

    pub(super) fn end(&mut self, flight: Flight) {
        let Flight { key, write, fate, answer, is_current, note } = flight;
        match (fate, answer) {
            (Fate::Done, Some(answer)) => self.take_answer(&key, &write, answer),
            (Fate::Done, None) => {
                let answer = self.carry_out(&write, &note);
                self.take_answer(&key, &write, answer);
            }
            (Fate::AnsweredLate, _) => {
                let answer = Some(self.carry_out(&write, &note));
                let fate = Fate::Slow;
                self.flights.push_back(Flight { key: key.clone(), write, fate, answer, is_current, note });
            }
            (Fate::Failed | Fate::Slow, _) => {
                self.ended(&key, &write, WriteEnd::Unknown);
                self.fail(&key, write, "the connection was reset");
            }
            (Fate::Unanswered, _) => {
                self.carry_out(&write, &note);
                self.ended(&key, &write, WriteEnd::Unknown);
                self.fail(&key, write, "no answer came");
            }
            (Fate::Rejected, _) => {
                self.ended(&key, &write, WriteEnd::Rejected);
                self.reject(&key, write, "it is not to our taste");
            }
        }
        self.requeue.insert(key);
    }

    fn ended(&mut self, service: &ObjectName, write: &SliceWrite, end: WriteEnd) {
        let (slice, verb) = (target(write), &write.verb);
        let written = Written { service, slice: &slice, verb, end };
        self.learn(|controller, now, requeue| controller.write_ended(&written, now, requeue));
    }

    pub(super) fn carry_out(&mut self, write: &SliceWrite, note: &BTreeSet<String>) -> Answer {
        let before = self.guard.as_ref().map(|_| self.server.slices()).unwrap_or_default();
        let answer = self.server.carry_out(write);
        if matches!(answer, Answer::Object(_) | Answer::Gone) {
            let after = self.server.get(&write.namespace, &write.name);
            self.done.push(Done { operation: write.receipt.operation, at: self.now, after });
            if let Some((now, guard)) = &self.guard {
                let wanted = note.intersection(&now(self)).cloned().collect();
                guard(&wanted, &before, &self.server.slices());
            }
        }
        answer
    }

    pub(super) fn take_answer(&mut self, key: &ObjectName, write: &SliceWrite, answer: Answer) {
        let uid_before = self.versions.known(&target(write)).map(|(uid, _)| uid.clone());
        let mut news = Vec::new();
        let mut end = WriteEnd::Conflict;
        match &answer {
            Answer::Object(slice) => {
                let slice = observed(slice);
                end = WriteEnd::Done { version: Some(slice.resource_version) };
                if self.versions.answered(slice, &mut news) {
                    self.versions.remember_echo(&target(write), content(write));
                }
            }
            Answer::Gone => {
                if matches!(write.verb, Verb::Delete { .. }) {
                    end = WriteEnd::Done { version: None };
                }
                let uid = uid_before.unwrap_or_default();
                self.versions.gone(&target(write), &uid, &mut news);
            }
            Answer::Conflict(Some(slice)) => drop(self.versions.answered(observed(slice), &mut news)),
            Answer::Conflict(None) | Answer::Invalid(_) => {}
        }
        let is_news = !news.is_empty();
        self.take_in(news);
        self.ended(key, write, end);
        match answer {
            Answer::Invalid(why) => self.reject(key, write.clone(), &why),
            _ if end != WriteEnd::Conflict => {
                self.failing.remove(&target(write));
                self.counted.changes.push(write.receipt.operation);
                self.controller.written(write.receipt.operation);
            }
            Answer::Conflict(_) if !is_news => {
                self.not_done(key);
                self.hold_back(key, write.clone());
            }
            _ => self.not_done(key),
        }
    }

    /// Fails a write. The engine retries the write later.
    fn fail(&mut self, key: &ObjectName, write: SliceWrite, why: &str) {
        self.not_done(key);
        self.tell(key, &write, why);
        self.hold_back(key, write);
    }

    fn reject(&mut self, key: &ObjectName, write: SliceWrite, why: &str) {
        self.not_done(key);
        self.tell(key, &write, why);
        self.troubles.push((write, None));
    }

    fn hold_back(&mut self, key: &ObjectName, write: SliceWrite) {
        let until = self.now + BACK_OFF;
        self.troubles.push((write, Some(until)));
        self.retries.insert(key.clone(), until);
    }

    /// Reports a failed attempt to the controller. If several writes fail and none is sent between them, only the first
    /// failure counts as a failed sync.
    fn not_done(&mut self, key: &ObjectName) {
        self.counted.errors += usize::from(self.tries.remove(key));
        self.controller.not_done(key, self.now);
    }

    /// Emits an Event for a failed write, unless the previous write to the slice failed with the same content and
    /// error.
    fn tell(&mut self, key: &ObjectName, write: &SliceWrite, why: &str) {
        let failure = (content(write), why.to_owned());
        if self.failing.insert(target(write), failure.clone()).as_ref() != Some(&failure) {
            self.events.extend(self.controller.rejected(key, write.verb.as_str(), &write.name, why));
        }
    }

    /// Counts a plan with nothing left to write. Such a plan ends a sync, unless a write is still in flight.
    fn count_rest(&mut self, key: &ObjectName) {
        let name = (key.namespace.to_string(), key.name.to_string());
        let Some(service) = self.services.get(&name).filter(|_| self.controller.is_ready()) else { return };
        if self.flights.iter().any(|flight| flight.key == *key && flight.is_current) {
            return;
        }
        let is_done = !model::waits_for_a_node(self, service);
        self.tries.remove(key);
        if is_done {
            self.counted.rests += 1;
        } else {
            self.counted.errors += 1;
        }
    }

    /// Simulates a restart of the agent's process: the new process has an empty memory.
    pub(crate) fn restart(&mut self) {
        (self.controller, self.registry) = controller(&self.config, self.timing);
        self.counted = Counted::default();
        self.flights.clear();
        let serves = self.serves;
        self.run(false);
        if serves {
            self.run(true);
        }
    }

    /// Begins a run of the engine in which the controller is active or inactive, and lists the inputs that it then
    /// watches. The writes of the previous run have ended before.
    pub(super) fn run(&mut self, serves: bool) {
        self.begin_run(serves);
        let watched = if serves { &Input::ALL[..] } else { &[Input::EndpointSlice] };
        watched.iter().rev().for_each(|input| self.list(*input));
    }

    fn begin_run(&mut self, serves: bool) {
        self.controller.stop();
        while let Some(flight) = self.flights.pop_front() {
            self.end(Flight { fate: if flight.fate == Fate::Slow { Fate::Done } else { flight.fate }, ..flight });
        }
        self.serves = serves;
        self.controller.begin_run(serves);
        self.complete.clear();
        self.versions = Versions::default();
        self.requeue.clear();
        self.again.clear();
        self.retries.clear();
        self.troubles.clear();
        self.failing.clear();
        self.tries.clear();
        self.server.watch.clear();
    }

    fn list(&mut self, input: Input) {
        match input {
            Input::EndpointSlice => self.list_slices(),
            Input::Service => self.tell_all(self.services.values().cloned().map(Object::Service).collect()),
            Input::Pod => self.tell_all(self.pods.values().cloned().map(Object::Pod).collect()),
            Input::Node => self.tell_all(self.nodes.values().cloned().map(Object::Node).collect()),
        }
        self.state(input, WatchState::Complete);
    }

    fn tell_all(&mut self, objects: Vec<Object>) {
        for object in objects {
            let (input, namespace, name) = match &object {
                Object::Pod(pod) => (Input::Pod, pod.metadata.namespace.clone(), pod.metadata.name.clone()),
                Object::Node(node) => (Input::Node, node.metadata.namespace.clone(), node.metadata.name.clone()),
                Object::Service(_) | Object::EndpointSlice(_) => (Input::Service, Text::default(), Text::default()),
            };
            let is_undecodable = self.undecodable.contains(&*name);
            self.learn(|controller, now, requeue| match is_undecodable {
                true => controller.undecodable(input, &namespace, &name, now, requeue),
                false => controller.apply(object, now, requeue),
            });
        }
    }

    fn list_slices(&mut self) {
        let mut news = Vec::new();
        self.versions.list_started(self.versions.progress().mark());
        for slice in self.server.all() {
            self.versions.seen(observed(slice), &mut news);
        }
        self.versions.list_ended(self.server.version, &mut news);
        self.take_in(news);
    }

    /// Makes the controller active, before any input is listed.
    pub(crate) fn begin_to_serve(&mut self) {
        self.begin_run(true);
    }

    /// Makes the controller active or inactive.
    pub(crate) fn serve(&mut self, serves: bool) {
        if serves != self.serves {
            self.run(serves);
        }
    }

    /// True if the controller watches this input now.
    pub(super) fn watches(&self, input: Input) -> bool {
        self.serves || input == Input::EndpointSlice
    }

    pub(crate) fn state(&mut self, input: Input, state: WatchState) {
        if state == WatchState::Complete {
            self.complete.insert(input);
        } else if (input, state) != (Input::Node, WatchState::Unknown) {
            self.complete.remove(&input);
        }
        self.learn(|controller, _, requeue| controller.watch_state(input, state, requeue));
    }
}

/// Returns a hash of a write's verb and content, without its precondition.
fn content(write: &SliceWrite) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &write.verb {
        Verb::Create { body } | Verb::Replace { body, .. } | Verb::Patch { body, .. } => body.hash(&mut hasher),
        Verb::Delete { uid } => uid.hash(&mut hasher),
    }
    (write.verb.as_str(), hasher.finish()).hash(&mut hasher);
    hasher.finish()
}

fn target(write: &SliceWrite) -> ObjectName {
    ObjectName::new(&*write.namespace, &*write.name)
}

fn observed(slice: &Value) -> Observed<EndpointSlice> {
    let object = decoded(slice);
    let metadata = &object.metadata;
    Observed {
        name: ObjectName::new(&*metadata.namespace, &*metadata.name),
        uid: (&*metadata.uid).into(),
        resource_version: metadata.resource_version.parse().expect("versions are numbers"),
        object,
    }
}
