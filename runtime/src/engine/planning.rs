//! Planning: the engine plans a key, checks the plan and starts its writes, or leaves them to the replica that leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::clock::ProcessorTime;
use crate::engine::fights::Requested;
use crate::engine::invariants::{self, Broken};
use crate::engine::logic::{Logic, Plan, Request, Verb, WriteNews};
use crate::engine::outcomes::Ended;
use crate::engine::retries::Attempt;
use crate::engine::slots::Target;
use crate::engine::state::Engine;
use crate::io::events::Occasion;
use crate::io::writer;
use crate::limits::{AGAIN_LATEST, AGAIN_SOONEST, BROKEN_INVARIANT_DELAY};
use fleetnet_types::Timestamp;

/// What became of a write of a plan.
enum Begun {
    Sent,
    /// Another write to the object is in flight, or too many writes are in flight. The key waits in a queue.
    Waiting,
    /// End of the wait for a back-off, or for another writer that keeps undoing this write.
    Delayed(Instant),
    /// An equal write has already led to the present version of the object.
    Unneeded,
}

impl<L: Logic> Engine<L> {
    /// Plans one key and starts its writes as far as possible.
    ///
    /// Does nothing while a create of the key is in flight. A plan at this time would not see the new object, and so
    /// could not clean it up if the object is no longer needed.
    ///
    /// Other writes in flight block only writes to the same object, so one cluster that hangs does not block another.
    /// The outcome of a create requeues the key.
    pub(crate) fn plan(&mut self, key: &L::Key) {
        if self.creating.contains_key(key) {
            // Release the slot (permission for one write in flight) that is reserved for this key. Another key can then
            // use the slot: the creates in flight may take long.
            return self.slots.planned(key);
        }
        self.follow_clock();
        let (begun, working) = (Instant::now(), ProcessorTime::now());
        let at = self.clock.now();
        tracing::trace!(?key, "planning");
        let Plan { writes, events, again, effect, renews } = self.logic.plan(key, at);
        if let Err(broken) = invariants::check(&writes) {
            return self.drop_plan(key, &broken);
        }
        self.apply_effect(key, effect, at);
        tracing::trace!(?key, writes = writes.len(), took = ?begun.elapsed(), "planned");
        let planning = working.elapsed();
        self.metrics.planned(begun.elapsed());
        let (news, in_flight) = (self.news.remove(key), self.slots.in_flight());
        for record in &events {
            self.record(record, Occasion::Planned);
        }
        self.unfinished.begin_plan();
        self.again.set(key, again.map(|again| begun + again.since(at).clamp(AGAIN_SOONEST, AGAIN_LATEST)));
        let mut wanted: BTreeMap<(Target<L::Source>, &'static str), Option<Instant>> = BTreeMap::new();
        for request in writes {
            let write = (Target::of(&request), request.verb.as_str());
            let delayed_until = match self.begin(key, &write, request, renews) {
                Begun::Delayed(until) => Some(until),
                Begun::Sent | Begun::Waiting | Begun::Unneeded => None,
            };
            let earliest = wanted.entry(write).or_default();
            *earliest = [*earliest, delayed_until].into_iter().flatten().min();
        }
        self.unfinished.end_plan(key);
        self.retries.planned(key, &wanted, Instant::now());
        self.slots.planned(key);
        if let Some(news) = news.filter(|_| self.slots.in_flight() > in_flight) {
            self.metrics.shared(news.spent + planning);
            self.metrics.reacted(self.clock.now().since(news.at));
        }
    }

    /// Drops a plan that breaks an invariant, without any of its writes. The engine plans the key again later.
    fn drop_plan(&mut self, key: &L::Key, broken: &Broken) {
        let invariant = broken.invariant.as_str();
        tracing::error!(
            ?key,
            invariant,
            "bug in this agent: {broken}. The plan is dropped, and the key is planned again after \
             {BROKEN_INVARIANT_DELAY:?}. Report this line. If the object must change now, change it by hand"
        );
        self.metrics.broken_invariant(invariant);
        invariants::panic_in_tests(broken, key);
        self.news.remove(key);
        self.again.set(key, Some(Instant::now() + BROKEN_INVARIANT_DELAY));
        self.slots.planned(key);
    }

    /// Plans one key while another replica leads, and does not write. Remembers the key in `left_to_leader` if the plan
    /// has writes, or asks for a later plan.
    pub(crate) fn leave_to_leader(&mut self, key: &L::Key) {
        self.follow_clock();
        let at = self.clock.now();
        let plan = self.logic.plan(key, at);
        self.apply_effect(key, plan.effect, at);
        self.news.remove(key);
        // The slot may be reserved from a time in which this replica led.
        self.slots.planned(key);
        if plan.writes.is_empty() && plan.again.is_none() {
            self.left_to_leader.remove(key);
        } else {
            self.left_to_leader.insert(key.clone());
        }
    }

    fn apply_effect(&mut self, key: &L::Key, effect: Option<L::Effect>, at: Timestamp) {
        if let Some(effect) = effect {
            self.logic.planned(key, effect, at);
        }
    }

    /// Starts a write of a plan, or makes it wait.
    fn begin(
        &mut self,
        key: &L::Key,
        write: &(Target<L::Source>, &'static str),
        request: Request<L::Source, L::Receipt>,
        renews: bool,
    ) -> Begun {
        let (target, _) = write;
        let Some(source) = self.sources.get(&target.source) else {
            tracing::error!(source = ?target.source, "a plan writes to a source that this agent does not have");
            return Begun::Unneeded;
        };
        if self.slots.is_busy(target) {
            self.unfinished.wanted(key, write.clone(), source.cluster, Instant::now());
            self.slots.wait_for_target(target, key);
            return Begun::Waiting;
        }
        let spec = &source.spec;
        let content = request.verb.content();
        if source.versions.echoed(&target.name, content) {
            self.metrics.suppressed(&spec.cluster.name, spec.resource.kind, request.verb.as_str());
            return Begun::Unneeded;
        }
        let now = Instant::now();
        self.unfinished.wanted(key, write.clone(), source.cluster, now);
        let timeless = request.verb.timeless_content();
        let attempt = Attempt { content: timeless, version: precondition_version(&request.verb) };
        let known_before = self.known(target);
        // A creation renews nothing.
        let renews = renews && !matches!(request.verb, Verb::Create { .. });
        let requested_content = if renews { content } else { timeless };
        let requested = Requested::by(&request.verb, requested_content, &known_before);
        if let Some(until) = self.retries.delayed_until(key, write, attempt, now) {
            return Begun::Delayed(until);
        }
        if let Some(until) = self.fights.delayed_until(target, requested, &known_before, now) {
            if let Some(turn) = self.fights.begun(target) {
                self.inquiries.ask(source.cluster, Arc::clone(spec), turn);
            }
            return Begun::Delayed(until);
        }
        if !self.slots.begin(source.cluster, target, self.logic.flow(key), key, now) {
            return Begun::Waiting;
        }
        self.unfinished.begun(key, write);
        if matches!(request.verb, Verb::Create { .. }) {
            *self.creating.entry(key.clone()).or_default() += 1;
        }
        let (spec, key) = (Arc::clone(spec), key.clone());
        self.tell_write(&key, WriteNews::Begun(&request), self.clock.now());
        let carry_out = writer::carry_out(spec, request, self.clock.clone(), self.leadership.clone());
        self.writes.spawn(async move {
            let (request, outcome) = carry_out.await;
            Ended { key, content, attempt, requested, known_before, request, outcome }
        });
        Begun::Sent
    }
}

fn precondition_version(verb: &Verb) -> u64 {
    match verb {
        Verb::Patch { resource_version, .. } | Verb::Replace { resource_version, .. } => *resource_version,
        Verb::Create { .. } | Verb::Delete { .. } => 0,
    }
}
