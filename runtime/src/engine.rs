//! Engine: the single task that owns the agent's view, plans the keys that changed and passes writes to the writer.
//!
//! ```text
//! watches --message--> versions --change--> Logic::observe --keys--> dirty queue --plan--> held back? suppressed? slot? --> writer
//!                         ^                                                                                                   |
//!                         '------------------------------- outcome: the answer is an observation -----------------------------'
//! ```
//!
//! The result depends only on the order of the inputs. Maps are ordered, inputs have a fixed order of precedence, and random
//! numbers have a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backoff::Jitter;
use crate::clock::{Clock, ProcessorTime, Steps};
use crate::demand::Demand;
use crate::events::{Occasion, Recorder};
use crate::fights::{Asked, Fights, State};
use crate::invariants::{self, Broken};
use crate::limits::{AGAIN_LATEST, AGAIN_SOONEST, BROKEN_INVARIANT_DELAY, WRITES_PER_SECOND_CEILING};
use crate::logic::{Change, Event, Logic, Plan, Request, SourceSpec, Verb, WatchState};
use crate::metrics::Metrics;
use crate::outcomes::Ended;
use crate::queue::{FairQueue, Timers};
use crate::retries::{Attempt, Retries};
use crate::rivals::Inquiries;
use crate::run::SourceStatus;
use crate::slots::{ClusterIndex, Lane, Slots, Target};
use crate::versions::Versions;
use crate::watch::{WatchEvent, WatchMessage};
use crate::writer;
use fleetnet_types::Timestamp;

/// State of the engine. The module [`crate::turns`] drives it.
pub(crate) struct Engine<L: Logic> {
    pub(crate) logic: L,
    pub(crate) sources: BTreeMap<L::Source, Source<L>>,
    pub(crate) dirty: FairQueue<L::Key>,
    /// Keys that still had writes to make when last planned, while another replica leads. Requeued when this replica takes
    /// over.
    left_to_leader: BTreeSet<L::Key>,
    pub(crate) leads: bool,
    /// Oldest change for which each queued key will be planned. Removed after the plan.
    news: BTreeMap<L::Key, News>,
    /// Times at which plans asked to be made again. On the monotonic clock, so a step of the wall clock moves none of them.
    pub(crate) again: Timers<L::Key, Instant>,
    pub(crate) retries: Retries<L::Key, (Target<L::Source>, &'static str)>,
    pub(crate) fights: Fights<L::Key, L::Source>,
    pub(crate) slots: Slots<L::Key, Target<L::Source>>,
    pub(crate) writes: JoinSet<Ended<L>>,
    /// Running lookups of the other writer in each new fight over an object.
    pub(crate) inquiries: Inquiries<L>,
    /// Keys with creates in flight, and the number of these creates.
    pub(crate) creating: BTreeMap<L::Key, usize>,
    recorder: Recorder,
    pub(crate) clock: Clock,
    steps: Steps,
    pub(crate) metrics: Metrics,
    status: watch::Sender<Vec<SourceStatus>>,
}

pub(crate) struct Source<L: Logic> {
    pub(crate) spec: Arc<SourceSpec<L>>,
    pub(crate) cluster: ClusterIndex,
    pub(crate) versions: Versions<L::Object>,
    state: WatchState,
    pub(crate) demand: Demand,
    /// Relist epoch of the source, from [`Logic::reading`]. A new value means that the agent needs all objects again.
    pub(crate) reading: u64,
    /// True if the current or next list reports every object again, also unchanged ones.
    pub(crate) is_retold: bool,
    /// True if the server served this kind before, so that its absence is a loss.
    pub(crate) was_complete: bool,
    /// True while the watch is connected to its server, or has not failed yet.
    in_touch: bool,
}

/// Time and cost of a message from a watch.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) at: Timestamp,
    /// Processor time that decoding the message took.
    pub(crate) decoding: Duration,
}

/// Change that caused a key to be planned.
struct News {
    at: Timestamp,
    /// Processor time of decoding the change and storing it in the agent's view.
    spent: Duration,
}

/// Inputs of an engine besides its agent logic and its sources.
pub(crate) struct Surroundings {
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) jitter: Jitter,
    pub(crate) status: watch::Sender<Vec<SourceStatus>>,
}

impl<L: Logic> Source<L> {
    fn new(spec: Arc<SourceSpec<L>>, cluster: ClusterIndex, logic: &L) -> Self {
        let (wanted, reading) = (logic.wants(spec.source), logic.reading(spec.source));
        Self {
            spec,
            cluster,
            versions: Versions::default(),
            state: Self::first_state(wanted),
            demand: Demand::new(wanted),
            reading,
            is_retold: false,
            was_complete: false,
            in_touch: true,
        }
    }

    pub(crate) const fn first_state(wanted: bool) -> WatchState {
        if wanted { WatchState::Incomplete } else { WatchState::Unwatched }
    }

    /// True if the source is subscribed, so that its view may have objects.
    pub(crate) fn is_wanted(&self) -> bool {
        self.demand.is_wanted()
    }
}

impl<L: Logic> Engine<L> {
    pub(crate) fn new(logic: L, specs: Vec<Arc<SourceSpec<L>>>, surroundings: Surroundings) -> Self {
        let mut clusters: Vec<String> = Vec::new();
        let mut sources = BTreeMap::new();
        for spec in specs {
            let name = &spec.cluster.name;
            let cluster = clusters.iter().position(|known| known == name).unwrap_or_else(|| {
                clusters.push(name.clone());
                clusters.len() - 1
            });
            sources.insert(spec.source, Source::new(spec, cluster, &logic));
        }
        let Surroundings { recorder, clock, metrics, jitter, status } = surroundings;
        let engine = Self {
            logic,
            sources,
            dirty: FairQueue::default(),
            left_to_leader: BTreeSet::new(),
            leads: false,
            news: BTreeMap::new(),
            again: Timers::default(),
            retries: Retries::new(jitter),
            fights: Fights::default(),
            slots: Slots::new(clusters.len(), WRITES_PER_SECOND_CEILING),
            writes: JoinSet::new(),
            inquiries: Inquiries::new(clusters.len()),
            creating: BTreeMap::new(),
            recorder,
            steps: Steps::of(&clock),
            clock,
            metrics,
            status,
        };
        engine.publish_states();
        engine
    }

    /// Handles a message of a watch.
    pub(crate) fn on_watch(&mut self, message: WatchMessage<L::Source, L::Object>) {
        let begun = Instant::now();
        self.take_in(message);
        self.metrics.viewed(begun.elapsed());
    }

    fn take_in(&mut self, message: WatchMessage<L::Source, L::Object>) {
        message.log();
        let WatchMessage { source: id, round, at, decoding, event } = message;
        self.follow_clock();
        // An event that was received before the wall clock was set back must not lie in the future.
        let at = at.min(self.clock.now());
        let arrival = Arrival { at, decoding };
        let Some(source) = self.sources.get_mut(&id).filter(|source| source.demand.is_current(round)) else {
            return;
        };
        let mut news = Vec::new();
        match event {
            WatchEvent::ListStarted => source.versions.list_started(),
            WatchEvent::Applied(observed) => source.versions.seen(observed, &mut news),
            WatchEvent::Undecodable(unreadable) => {
                let (cluster, kind) = (&source.spec.cluster.name, source.spec.resource.kind);
                self.metrics.unreadable(cluster, kind);
                tracing::warn!(
                    cluster,
                    kind,
                    namespace = &*unreadable.name.namespace,
                    name = &*unreadable.name.name,
                    why = unreadable.why,
                    "an object cannot be read: what was known of it is kept; repair or delete it"
                );
                source.versions.unreadable(&unreadable, &mut news);
            }
            WatchEvent::Deleted { name, uid, resource_version } => {
                source.versions.deleted(&name, &uid, resource_version, &mut news);
            }
            WatchEvent::ListEnded { resource_version } => {
                source.versions.list_ended(resource_version, &mut news);
                source.was_complete = true;
                let is_retold = std::mem::take(&mut source.is_retold);
                self.learn(id, news, arrival);
                self.set_in_touch(id, true, at);
                if is_retold {
                    let mut keys = Vec::new();
                    self.logic.read_anew(id, at, &mut keys);
                    self.mark_dirty(keys);
                }
                return self.change_state(id, WatchState::Complete, at);
            }
            WatchEvent::NotServed { status, .. } => {
                self.set_in_touch(id, false, at);
                return self.on_not_served(id, status, at);
            }
            // The watch has logged the failure. The agent's view of the source stays as it is: nothing newer is known.
            WatchEvent::Failed { .. } => return self.set_in_touch(id, false, at),
            WatchEvent::Resumed => return self.set_in_touch(id, true, at),
        }
        self.learn(id, news, arrival);
    }

    fn set_in_touch(&mut self, id: L::Source, in_touch: bool, at: Timestamp) {
        let Some(source) = self.sources.get_mut(&id) else { return };
        if std::mem::replace(&mut source.in_touch, in_touch) != in_touch {
            let mut keys = Vec::new();
            self.logic.in_touch(id, in_touch, at, &mut keys);
            self.mark_dirty(keys);
        }
    }

    /// Handles a kind that the server does not serve (403 or 404). The agent's view of it stays, unless the whole kind has
    /// vanished.
    fn on_not_served(&mut self, id: L::Source, status: u16, at: Timestamp) {
        let Some(source) = self.sources.get(&id) else { return };
        let state = match (source.was_complete, source.spec.optional) {
            (true, _) if status == 404 || source.spec.freezes_when_forbidden => WatchState::Unknown,
            (true, _) => source.state,
            (false, true) => WatchState::Absent,
            (false, false) => WatchState::Incomplete,
        };
        self.change_state(id, state, at);
    }

    pub(crate) fn change_state(&mut self, id: L::Source, state: WatchState, at: Timestamp) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        if source.state == state {
            return;
        }
        source.state = state;
        tracing::info!(
            cluster = source.spec.cluster.name, resource = %source.spec.resource, state = state.as_str(),
            objects = source.versions.len(), "the view of a kind changed its state"
        );
        let mut keys = Vec::new();
        self.logic.watch_state(id, state, at, &mut keys);
        self.mark_dirty(keys);
        self.publish_states();
    }

    fn publish_states(&self) {
        let status = |source: &Source<L>| SourceStatus {
            cluster: source.spec.cluster.name.clone(),
            resource: source.spec.resource,
            optional: source.spec.optional,
            state: source.state,
        };
        let statuses: Vec<SourceStatus> = self.sources.values().map(status).collect();
        for status in &statuses {
            self.metrics.watch_state(&status.cluster, status.resource.kind, status.state);
        }
        self.status.send_replace(statuses);
    }

    /// Handles a step of the wall clock. The times that the agent remembers move by the same step, so no wait becomes longer or
    /// shorter.
    pub(crate) fn follow_clock(&mut self) {
        let Some(by) = self.steps.take(&self.clock) else { return };
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let seconds = by as f64 / 1e6;
        tracing::warn!(seconds, "the wall clock was set by {seconds:+.1} s; times written before differ by that much");
        for news in self.news.values_mut() {
            news.at = news.at.plus_micros(by);
        }
        self.logic.clock_set(by);
    }

    /// Stores changes in the agent's view and queues the keys that they concern.
    pub(crate) fn learn(&mut self, id: L::Source, news: Vec<Change<L::Object>>, arrival: Arrival) {
        let (working, Arrival { at, decoding }) = (ProcessorTime::now(), arrival);
        let mut keys = Vec::new();
        for change in news {
            self.logic.observe(id, change, at, &mut keys);
        }
        if self.logic.clears_backoff(id) {
            for key in &keys {
                self.retries.clear_denied(key);
            }
        }
        let spent = decoding + working.elapsed();
        for key in &keys {
            if !self.news.contains_key(key) {
                self.news.insert(key.clone(), News { at, spent });
            }
        }
        self.mark_dirty(keys);
    }

    pub(crate) fn mark_dirty(&mut self, keys: impl IntoIterator<Item = L::Key>) {
        for key in keys {
            if tracing::enabled!(tracing::Level::TRACE) && !self.dirty.contains(&key) {
                tracing::trace!(?key, "queued");
            }
            self.dirty.push(self.logic.lane(&key), key);
        }
    }

    /// Plans one key and starts its writes as far as possible.
    ///
    /// Does nothing while a create of the key is in flight. Such a plan would not see the new object, would not clean it up,
    /// and would leave it behind.
    ///
    /// Other writes in flight block only their own targets, so one cluster that hangs does not block another. The outcome of a
    /// create requeues the key.
    pub(crate) fn plan(&mut self, key: &L::Key) {
        if self.creating.contains_key(key) {
            // The key's reserved slot goes to the next key, because the creates in flight may take long.
            return self.slots.planned(key);
        }
        self.follow_clock();
        let (begun, working) = (Instant::now(), ProcessorTime::now());
        let at = self.clock.now();
        tracing::trace!(?key, "planning");
        let Plan { writes, events, again, effect } = self.logic.plan(key, at);
        if let Err(broken) = invariants::check(&writes, self.creating.contains_key(key)) {
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
        self.again.set(key, again.map(|again| begun + again.since(at).clamp(AGAIN_SOONEST, AGAIN_LATEST)));
        let mut wanted: BTreeMap<(Target<L::Source>, &'static str), Option<Instant>> = BTreeMap::new();
        for request in writes {
            let write = (target_of(&request), request.verb.as_str());
            let held_until = self.begin(key, &write, request);
            let earliest = wanted.entry(write).or_default();
            *earliest = [*earliest, held_until].into_iter().flatten().min();
        }
        self.retries.planned(key, &wanted, Instant::now());
        self.slots.planned(key);
        if let Some(news) = news.filter(|_| self.slots.in_flight() > in_flight) {
            self.metrics.shared(news.spent + planning);
            self.metrics.reacted(self.clock.now().since(news.at));
        }
    }

    /// Drops a plan that breaks an invariant: none of it is carried out. The key is planned again later.
    fn drop_plan(&mut self, key: &L::Key, broken: &Broken) {
        let invariant = broken.invariant.as_str();
        tracing::error!(
            ?key,
            invariant,
            "bug in this agent: {broken}. Nothing of this plan is carried out, and the key is planned again in \
             {BROKEN_INVARIANT_DELAY:?}. Report this line; if the object must change now, change it by hand"
        );
        // fault A15.4: self.metrics.broken_invariant(invariant); ~>
        self.metrics.broken_invariant(invariant);
        invariants::panic_in_tests(broken, key);
        self.news.remove(key);
        // fault A15.3: Some(Instant::now() + BROKEN_INVARIANT_DELAY) ~> None
        self.again.set(key, Some(Instant::now() + BROKEN_INVARIANT_DELAY));
        self.slots.planned(key);
    }

    /// Plans one key while another replica leads, without writing. Remembers the key if it has writes that the leader has not
    /// made yet.
    pub(crate) fn leave_to_leader(&mut self, key: &L::Key) {
        self.follow_clock();
        let at = self.clock.now();
        let plan = self.logic.plan(key, at);
        self.apply_effect(key, plan.effect, at);
        self.news.remove(key);
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

    pub(crate) fn left_to_leader(&self) -> usize {
        self.left_to_leader.len()
    }

    /// Starts to lead, and requeues the keys whose writes the previous leader has not made.
    pub(crate) fn take_over(&mut self) {
        if !std::mem::replace(&mut self.leads, true) {
            let mut keys = Vec::new();
            self.logic.leads(self.clock.now(), &mut keys);
            self.mark_dirty(keys);
        }
        let left = std::mem::take(&mut self.left_to_leader);
        self.mark_dirty(left);
    }

    /// Starts a write of a plan. Returns the end of its delay if it must wait. A key that waits for a slot or a target is
    /// queued there.
    fn begin(
        &mut self,
        key: &L::Key,
        write: &(Target<L::Source>, &'static str),
        request: Request<L::Source, L::Receipt>,
    ) -> Option<Instant> {
        let (target, _) = write;
        let Some(source) = self.sources.get(&target.source) else {
            tracing::error!(source = ?target.source, "a plan writes to a source that this agent does not have");
            return None;
        };
        if self.slots.is_busy(target) {
            self.slots.wait_for_target(target, key);
            return None;
        }
        let spec = &source.spec;
        let content = writer::content(&request.verb);
        if source.versions.echoed(&target.name, content) {
            self.metrics.suppressed(&spec.cluster.name, spec.resource.kind, request.verb.as_str());
            return None;
        }
        let now = Instant::now();
        let timeless = writer::timeless_content(&request.verb);
        let attempt = Attempt { content: timeless, version: version_asked_for(&request.verb) };
        let held_before = self.held(target);
        let asked_content = if self.logic.renews(key) { content } else { timeless };
        let asked = Asked::by(&request.verb, asked_content, &held_before);
        if let Some(until) = self.retries.held_until(key, write, attempt, now) {
            return Some(until);
        }
        if let Some(until) = self.fights.held_until(target, asked, &held_before, now) {
            if let Some(turn) = self.fights.begun(target) {
                self.inquiries.ask(source.cluster, Arc::clone(spec), turn);
            }
            return Some(until);
        }
        let id = self.logic.lane(key);
        let lane = Lane { id, most_in_flight: self.logic.most_in_flight(id) };
        if !self.slots.begin(source.cluster, target, lane, key, now) {
            return None;
        }
        if matches!(request.verb, Verb::Create { .. }) {
            *self.creating.entry(key.clone()).or_default() += 1;
        }
        let (spec, key) = (Arc::clone(spec), key.clone());
        self.logic.begun(&key, &request);
        let carry_out = writer::carry_out(spec, request, self.clock.clone());
        self.writes.spawn(async move {
            let (request, outcome) = carry_out.await;
            Ended { key, content, attempt, asked, held_before, request, outcome }
        });
        None
    }

    pub(crate) fn held(&self, target: &Target<L::Source>) -> State {
        let source = self.sources.get(&target.source)?;
        source.versions.held(&target.name).map(|(uid, version)| (uid.clone(), version))
    }

    pub(crate) fn record(&mut self, record: &Event<L::Source>, occasion: Occasion) {
        if let Some(source) = self.sources.get(&record.source) {
            self.recorder.record(&source.spec, record, occasion);
        }
    }
}

pub(crate) fn target_of<S: Copy, R>(request: &Request<S, R>) -> Target<S> {
    Target { source: request.source, name: request.name.clone() }
}

fn version_asked_for(verb: &Verb) -> u64 {
    match verb {
        Verb::Patch { resource_version, .. } | Verb::Replace { resource_version, .. } => *resource_version,
        Verb::Create { .. } | Verb::Delete { .. } => 0,
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
