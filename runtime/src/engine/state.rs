//! Engine: the agent's view, its queue and its writes. Does no I/O. The loop in [`crate::run`] passes inputs to it, and
//! carries out its actions.
//!
//! ```text
//! watches --message--> sources --change--> Logic::observe --keys--> queue --plan--> held back? suppressed? slot? --> writer
//!                         ^                                                                                                   |
//!                         '------------------------------- outcome: the response is an observation ---------------------------'
//! ```
//!
//! The actions of the engine depend only on the order of its inputs. Maps are ordered, and random numbers have a seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::action::{Action, InquiryOf, Occasion, SentOf};
use super::fights::Turn;
use super::invariants;
use super::logic::{
    Change, Event, Fight, Logic, Plan, ProcessNews, Request, WatchNews, WriteEnd, WriteEnded, WriteNews,
};
use super::message::{WatchEvent, WatchMessage};
use super::outcome::{Outcome, Reread};
use super::queue::{OldestChange, Queue};
use super::reports::Reports;
use super::sent::{Sent, Write};
use super::slots::Target;
use super::source_info::SourceInfo;
use super::sources::{SourceNews, SourceStatus, Sources};
use super::versions::Progress;
use super::writes::{Begun, Candidate, Writes};
use crate::backoff::Jitter;
use crate::clock::{Clock, ProcessorTime, Steps};
use crate::limits::{AGAIN_LATEST, AGAIN_SOONEST, BROKEN_INVARIANT_DELAY};
use crate::metrics::Metrics;
use fleetnet_types::{ObjectName, Timestamp};

/// State of the engine.
pub(crate) struct Engine<L: Logic> {
    logic: L,
    sources: Sources<L::Source, L::Object>,
    queue: Queue<L::Key>,
    writes: Writes<L::Key, L::Source>,
    reports: Reports,
    actions: VecDeque<Action<L>>,
    rereads: Rereads<L::Source>,
    /// True if the queues are those of a leader: this replica has planned as the leader. `None` before the first turn.
    leads: Option<bool>,
    clock: Clock,
    steps: Steps,
}

/// Reads of objects that the view did not keep before. At most one runs at a time.
#[derive(Default)]
struct Rereads<S> {
    /// Source of the object that the running GET reads.
    running: Option<S>,
    /// True if the view may want an object since it was asked last.
    is_due: bool,
}

/// Time and cost of a change.
#[derive(Clone, Copy)]
struct Arrival {
    at: Timestamp,
    /// Processor time that decoding the change took.
    decoding: Duration,
}

/// What an engine needs besides its agent's logic and its sources.
pub(crate) struct Surroundings {
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) jitter: Jitter,
    pub(crate) status: watch::Sender<Vec<SourceStatus>>,
}

/// Inputs and actions.
impl<L: Logic> Engine<L> {
    pub(crate) fn new(logic: L, sources: Vec<SourceInfo<L::Source>>, surroundings: Surroundings) -> Self {
        let Surroundings { clock, metrics, jitter, status } = surroundings;
        let sources = Sources::new(sources);
        let reports = Reports::new(metrics, status, sources.sides());
        reports.states(&sources);
        Self {
            logic,
            queue: Queue::default(),
            writes: Writes::new(sources.sides().len(), jitter),
            sources,
            reports,
            actions: VecDeque::new(),
            rereads: Rereads { running: None, is_due: false },
            leads: None,
            steps: Steps::of(&clock),
            clock,
        }
    }

    pub(crate) fn into_logic(self) -> L {
        self.logic
    }

    /// Returns the progress of the observations of a source, for its watch.
    pub(crate) fn progress(&self, source: L::Source) -> Progress {
        self.sources.progress(source)
    }

    /// Returns the next action to carry out. Call this after each input.
    pub(crate) fn next_action(&mut self) -> Option<Action<L>> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        if let Some(inquiry) = self.writes.next_inquiry() {
            return Some(Action::Inquire(inquiry));
        }
        if self.rereads.running.is_some() || !std::mem::take(&mut self.rereads.is_due) {
            return None;
        }
        let (id, name) = self.logic.wanted_again()?;
        self.sources.info(id)?;
        self.rereads.running = Some(id);
        Some(Action::Read(id, name))
    }

    /// Handles a message of another part of the process.
    pub(crate) fn on_message(&mut self, message: L::Message) {
        self.follow_clock();
        let (working, at) = (ProcessorTime::now(), self.clock.now());
        tracing::trace!(?message, "received");
        let mut keys = Vec::new();
        self.logic.receive(message, at, &mut keys);
        self.concern(keys, OldestChange { at, spent: working.elapsed() });
    }

    /// Handles a message of a watch.
    pub(crate) fn on_watch(&mut self, message: WatchMessage<L::Source, L::Object>) {
        let begun = Instant::now();
        let WatchMessage { source, at, decoding, event } = message;
        self.follow_clock();
        // If the wall clock was set back after the event arrived, the event's time is in the future. Use the present
        // time instead.
        let at = at.min(self.clock.now());
        if let (WatchEvent::Undecodable(undecodable), Some(info)) = (&event, self.sources.info(source)) {
            self.reports.undecodable(info, undecodable);
        }
        for news in self.sources.take(source, event) {
            match news {
                SourceNews::Changes(id, changes) => self.learn(id, changes, Arrival { at, decoding }),
                SourceNews::Watch(id, news) => self.tell_watch(id, news, at),
            }
        }
        self.reports.metrics().viewed(begun.elapsed());
    }

    /// Handles the outcome of a write: stores the object of the response, plans the retry, and requeues keys that
    /// waited.
    pub(crate) fn on_written(&mut self, mut sent: SentOf<L>, mut outcome: Outcome<L::Object>) {
        let target = Target::of(&sent.request);
        let Some(info) = self.sources.info(target.source).cloned() else { return };
        let Some(cluster) = self.sources.cluster(target.source) else { return };
        self.follow_clock();
        outcome.at = outcome.at.min(self.clock.now());
        self.reports.wrote(&info, &sent, &outcome);
        let changes = self.sources.take_outcome(&sent, &outcome);
        self.learn(target.source, changes, Arrival { at: outcome.at, decoding: Duration::ZERO });
        let class = Writes::class(&sent, &outcome.result, &self.sources.known(&target));
        let is_new = class.is_some_and(|class| self.writes.is_news(&sent, class));
        self.tell_ended(&info, &mut sent, &outcome, is_new);
        let urgency = self.logic.flow(&sent.key).urgency;
        let waiting = self.writes.ended((cluster, urgency), &sent, &outcome, class, Instant::now());
        self.requeue(waiting);
        self.requeue([sent.key]);
    }

    /// Handles the name of the other writer in a fight.
    pub(crate) fn on_inquired(&mut self, inquiry: InquiryOf<L>, by: String) {
        self.writes.inquired(inquiry.cluster);
        self.tell_fight(inquiry.turn, Some(by));
    }

    /// Handles the end of a read of an object that the view did not keep before. `None` if the read was cancelled.
    pub(crate) fn on_reread(&mut self, read: Option<(ObjectName, Reread<L::Object>)>) {
        self.rereads.is_due = true;
        let Some((id, (name, found))) = self.rereads.running.take().zip(read) else { return };
        let changes = self.sources.take_reread(id, name, found);
        self.learn(id, changes, Arrival { at: self.clock.now(), decoding: Duration::ZERO });
    }
}

/// Turns of the loop.
impl<L: Logic> Engine<L> {
    /// True if this replica has planned as the leader last.
    pub(crate) fn is_leading(&self) -> bool {
        self.leads == Some(true)
    }

    /// Starts to lead, and requeues the keys whose writes the previous leader has not made.
    pub(crate) fn take_over(&mut self) {
        if self.leads.replace(true) != Some(true) {
            self.reports.leads();
            self.tell_process(ProcessNews::Leads);
        }
        let left = self.queue.take_left_to_leader();
        self.requeue(left);
    }

    /// Stops leading. The next leader makes the writes that are left. This process remembers them in case that it leads
    /// again.
    pub(crate) fn step_down(&mut self) {
        // The first turn also tells the logic, which may have led in an earlier engine.
        if self.leads.replace(false) == Some(false) {
            return;
        }
        self.writes.step_down();
        self.reports.step_down();
        self.tell_process(ProcessNews::Follows);
    }

    /// Requeues the keys that are due: later plans, retries, and keys that waited for a slot. Reports fights that are
    /// over.
    pub(crate) fn requeue_due(&mut self, now: Instant) {
        self.follow_clock();
        while let Some(key) = self.queue.pop_due(now) {
            self.requeue([key]);
        }
        while let Some(key) = self.writes.pop_due(now) {
            self.requeue([key]);
        }
        for turn in self.writes.fights_over(now) {
            self.tell_fight(turn, None);
        }
        let reserved = self.writes.reserve_waiting(now);
        self.requeue(reserved);
    }

    /// Plans the next key. Returns false if no key is queued, or if no write of a plan could begin.
    pub(crate) fn plan_next(&mut self, now: Instant) -> bool {
        // Without a free slot, no write of a plan could begin, and the key would be planned again later.
        if !self.writes.can_begin(now) {
            return false;
        }
        let key = self.queue.pop();
        key.inspect(|key| self.plan(key)).is_some()
    }

    /// Plans the next key while another replica leads, and does not write. Remembers the key if the plan has writes, or
    /// asks for a later plan. Returns false if no key is queued.
    pub(crate) fn leave_next_to_leader(&mut self) -> bool {
        let Some(key) = self.queue.pop() else { return false };
        self.follow_clock();
        let at = self.clock.now();
        let plan = self.logic.plan(&key, at);
        self.apply_effect(&key, plan.effect, at);
        self.queue.take_oldest_change(&key);
        // The slot may be reserved from a time in which this replica led.
        self.writes.release_slots(&key);
        if plan.writes.is_empty() && plan.again.is_none() {
            self.queue.done_by_leader(&key);
        } else {
            self.queue.leave_to_leader(&key);
        }
        true
    }

    /// True if a key can be planned now.
    pub(crate) fn can_plan(&self, leads: bool, now: Instant) -> bool {
        let can_plan = !self.queue.is_empty() && (!leads || self.writes.can_begin(now));
        can_plan || leads && self.writes.can_reserve_waiting(now)
    }

    /// Returns the time of the earliest timer of a leader.
    pub(crate) fn next_timer(&self, now: Instant) -> Option<Instant> {
        let resume = self.writes.next_resume(self.queue.is_empty(), now);
        [self.queue.next_due(), self.writes.next_due(), resume].into_iter().flatten().min()
    }

    /// Returns the last writes of an agent that stops.
    pub(crate) fn last_requests(&mut self) -> Vec<Request<L::Source, L::Receipt>> {
        let (now, mut keys) = (self.clock.now(), Vec::new());
        self.logic.process(ProcessNews::Stops, now, &mut keys);
        let keys: BTreeSet<_> = keys.into_iter().collect();
        keys.iter().flat_map(|key| self.logic.plan(key, now).writes).collect()
    }

    /// Shows the queues in the metrics.
    pub(crate) fn report(&mut self) {
        self.reports.queues(&self.writes, self.queue.depths());
    }
}

/// Plans.
impl<L: Logic> Engine<L> {
    /// Plans one key and starts its writes as far as possible.
    ///
    /// Does nothing while a create of the key is in flight. A plan at this time would not see the new object, and so
    /// could not clean it up if the object is no longer needed.
    ///
    /// Other writes in flight block only writes to the same object, so one cluster that hangs does not block another.
    /// The outcome of a create requeues the key.
    fn plan(&mut self, key: &L::Key) {
        if self.writes.is_creating(key) {
            return self.writes.release_slots(key);
        }
        self.follow_clock();
        let (begun, working) = (Instant::now(), ProcessorTime::now());
        let at = self.clock.now();
        tracing::trace!(?key, "planning");
        let Plan { writes, events, again, effect, renews } = self.logic.plan(key, at);
        if let Err(broken) = invariants::check(&writes) {
            self.reports.broken_invariant(key, &broken);
            invariants::panic_in_tests(&broken, key);
            self.queue.take_oldest_change(key);
            self.queue.plan_again(key, Some(Instant::now() + BROKEN_INVARIANT_DELAY));
            return self.writes.release_slots(key);
        }
        self.apply_effect(key, effect, at);
        tracing::trace!(?key, writes = writes.len(), took = ?begun.elapsed(), "planned");
        let planning = working.elapsed();
        self.reports.metrics().planned(begun.elapsed());
        let (change, in_flight) = (self.queue.take_oldest_change(key), self.writes.in_flight());
        self.record(events, Occasion::Planned);
        self.queue.plan_again(key, again.map(|again| begun + again.since(at).clamp(AGAIN_SOONEST, AGAIN_LATEST)));
        self.begin_all(key, writes, renews);
        if let Some(change) = change.filter(|_| self.writes.in_flight() > in_flight) {
            self.reports.reacted(change, planning, self.clock.now());
        }
    }

    /// Starts the writes of a plan, or makes them wait.
    fn begin_all(&mut self, key: &L::Key, writes: Vec<Request<L::Source, L::Receipt>>, renews: bool) {
        self.writes.begin_plan();
        let mut wanted: BTreeMap<Write<L::Source>, Option<Instant>> = BTreeMap::new();
        for request in writes {
            let write = (Target::of(&request), request.verb.as_str());
            let delayed_until = match self.begin(key, &write, request, renews) {
                Begun::Delayed(until) => Some(until),
                Begun::Sent(..) | Begun::Waiting | Begun::Unneeded => None,
            };
            let earliest = wanted.entry(write).or_default();
            *earliest = [*earliest, delayed_until].into_iter().flatten().min();
        }
        self.writes.end_plan(key, &wanted, Instant::now());
    }

    fn begin(
        &mut self,
        key: &L::Key,
        write: &Write<L::Source>,
        request: Request<L::Source, L::Receipt>,
        renews: bool,
    ) -> Begun {
        let (target, verb) = write;
        let (Some(info), Some(cluster)) = (self.sources.info(target.source), self.sources.cluster(target.source))
        else {
            tracing::error!(source = ?target.source, "a plan writes to a source that this agent does not have");
            return Begun::Unneeded;
        };
        let (content, known_before) = (request.verb.content(), self.sources.known(target));
        let candidate = Candidate {
            key,
            flow: self.logic.flow(key),
            cluster,
            write,
            verb: &request.verb,
            content,
            known_before: &known_before,
            is_echo: self.sources.is_echo(target, content),
            renews,
        };
        let begun = self.writes.begin(&candidate, Instant::now());
        match begun {
            Begun::Sent(attempt, requested) => {
                self.tell_write(key, WriteNews::Begun(&request), self.clock.now());
                let sent = Sent { key: key.clone(), content, attempt, requested, known_before, request };
                self.actions.push_back(Action::Write(Box::new(sent)));
            }
            Begun::Unneeded => self.reports.metrics().suppressed(&info.side, info.resource.kind, verb),
            Begun::Waiting | Begun::Delayed(_) => {}
        }
        begun
    }

    fn apply_effect(&mut self, key: &L::Key, effect: Option<L::Effect>, at: Timestamp) {
        if let Some(effect) = effect {
            self.logic.planned(key, effect, at);
        }
    }
}

/// Calls of the agent's logic, and what they ask for.
impl<L: Logic> Engine<L> {
    /// Stores changes in the agent's view and queues the keys that they concern.
    fn learn(&mut self, id: L::Source, changes: Vec<Change<L::Object>>, arrival: Arrival) {
        let (working, Arrival { at, decoding }) = (ProcessorTime::now(), arrival);
        let mut keys = Vec::new();
        for change in changes {
            self.logic.observe(id, change, at, &mut keys);
        }
        if self.sources.info(id).is_some_and(|info| info.ends_denials) {
            keys.iter().for_each(|key| self.writes.clear_denied(key));
        }
        self.concern(keys, OldestChange { at, spent: decoding + working.elapsed() });
        self.rereads.is_due = true;
    }

    fn tell_watch(&mut self, id: L::Source, news: WatchNews, at: Timestamp) {
        let mut keys = Vec::new();
        self.logic.watch(id, news, at, &mut keys);
        self.requeue(keys);
        if matches!(news, WatchNews::State(_)) {
            self.reports.states(&self.sources);
        }
    }

    fn tell_process(&mut self, news: ProcessNews) {
        let mut keys = Vec::new();
        self.logic.process(news, self.clock.now(), &mut keys);
        self.requeue(keys);
    }

    /// Tells the agent that a write has ended, and records the Events that the agent returns.
    fn tell_ended(
        &mut self,
        info: &SourceInfo<L::Source>,
        sent: &mut SentOf<L>,
        outcome: &Outcome<L::Object>,
        is_new: bool,
    ) {
        let (end, receipt) = (outcome.end(), sent.request.receipt.take());
        let is_done = matches!(end, WriteEnd::Done { .. });
        let failure = sent.failure(info, &outcome.result);
        let news = WriteNews::Ended(WriteEnded {
            end,
            receipt: receipt.filter(|_| is_done),
            request: &sent.request,
            failure: failure.as_ref(),
            is_reported: is_new && end != WriteEnd::Conflict,
        });
        let events = self.tell_write(&sent.key, news, outcome.at);
        self.record(events, if is_done { Occasion::Done } else { Occasion::NotDone });
    }

    fn tell_write(
        &mut self,
        key: &L::Key,
        news: WriteNews<'_, L::Source, L::Receipt>,
        at: Timestamp,
    ) -> Vec<Event<L::Source>> {
        let mut keys = Vec::new();
        let events = self.logic.write(key, news, at, &mut keys);
        self.requeue(keys);
        events
    }

    /// Tells the agent that a fight has begun or is over. `by` is the name of the other writer, or `None` if the fight
    /// is over.
    fn tell_fight(&mut self, Turn { key, target }: Turn<L::Key, L::Source>, by: Option<String>) {
        let Some(info) = self.sources.info(target.source) else { return };
        Reports::fight(info, &target.name, by.as_deref());
        let (cluster, kind) = (info.side.clone(), info.resource.kind);
        let fight = Fight { source: target.source, cluster, kind, name: target.name, by };
        let mut keys = Vec::new();
        let events = self.logic.fight(&key, &fight, &mut keys);
        self.record(events, Occasion::NotDone);
        self.requeue(keys);
    }

    fn record(&mut self, events: Vec<Event<L::Source>>, occasion: Occasion) {
        self.actions.extend(events.into_iter().map(|event| Action::Record(event, occasion)));
    }

    /// Handles a step of the wall clock. The times that the agent remembers move by the same step, so no wait becomes
    /// longer or shorter.
    fn follow_clock(&mut self) {
        let Some(by) = self.steps.take(&self.clock) else { return };
        Reports::clock_set(by);
        self.queue.follow_clock(by);
        self.tell_process(ProcessNews::ClockSet { microseconds: by });
    }

    /// Queues the keys that a change concerns.
    fn concern(&mut self, keys: Vec<L::Key>, change: OldestChange) {
        for key in &keys {
            self.queue.note(key, change);
        }
        self.requeue(keys);
    }

    fn requeue(&mut self, keys: impl IntoIterator<Item = L::Key>) {
        for key in keys {
            self.queue.push(self.logic.flow(&key).id, key);
        }
    }
}
