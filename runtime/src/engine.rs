//! The owner loop: the one task that owns the agent's view, plans what is dirty and hands writes to the writer.
//!
//! ```text
//! watches --message--> versions --change--> Logic::observe --keys--> dirty queue --plan--> held back? suppressed? slot? --> writer
//!                         ^                                                                                                   |
//!                         '------------------------------- outcome: the answer is an observation -----------------------------'
//! ```
//!
//! Everything here is a function of the order of the inputs: maps are ordered, inputs are taken in a fixed order of
//! precedence, and what is random is seeded.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backoff::Jitter;
use crate::clock::{Clock, Timestamp};
use crate::events::Recorder;
use crate::limits::AGAIN_SOONEST;
use crate::logic::{Change, Logic, Plan, Refusal, Request, SourceSpec, Verb, WatchState};
use crate::metrics::Metrics;
use crate::queue::{FairQueue, Timers};
use crate::retries::{Attempt, Class, Leave, Retries};
use crate::run::SourceStatus;
use crate::slots::{ClusterIndex, Slots, Target};
use crate::versions::Versions;
use crate::watch::{WatchEvent, WatchMessage};
use crate::writer::{self, Outcome, Seen, Verdict};

/// The engine's state. [`crate::turns`] drives it.
pub(crate) struct Engine<L: Logic> {
    logic: L,
    sources: BTreeMap<L::Source, Source<L>>,
    pub(crate) dirty: FairQueue<L::Key>,
    pub(crate) again: Timers<L::Key, Timestamp>,
    pub(crate) retries: Retries<L::Key, Target<L::Source>>,
    pub(crate) slots: Slots<L::Key, Target<L::Source>>,
    pub(crate) writes: JoinSet<Ended<L>>,
    recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    status: watch::Sender<Vec<SourceStatus>>,
}

struct Source<L: Logic> {
    spec: Arc<SourceSpec<L>>,
    cluster: ClusterIndex,
    versions: Versions<L::Object>,
    state: WatchState,
    /// The kind was served at some time, so that its absence is a loss.
    was_complete: bool,
}

/// A write that has ended, with what was known when it began.
pub(crate) struct Ended<L: Logic> {
    key: L::Key,
    attempt: Attempt,
    held_before: Option<(Box<str>, u64)>,
    request: Request<L>,
    outcome: Outcome<L::Object>,
}

/// What an engine needs besides its logic and its sources.
pub(crate) struct Surroundings {
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) jitter: Jitter,
    pub(crate) status: watch::Sender<Vec<SourceStatus>>,
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
            let versions = Versions::default();
            let source = Source { spec, cluster, versions, state: WatchState::Incomplete, was_complete: false };
            sources.insert(source.spec.source, source);
        }
        let Surroundings { recorder, clock, metrics, jitter, status } = surroundings;
        let engine = Self {
            logic,
            sources,
            dirty: FairQueue::default(),
            again: Timers::default(),
            retries: Retries::new(jitter),
            slots: Slots::new(clusters.len()),
            writes: JoinSet::new(),
            recorder,
            clock,
            metrics,
            status,
        };
        engine.publish_states();
        engine
    }

    /// Takes in what a watch brings.
    pub(crate) fn on_watch(&mut self, message: WatchMessage<L::Source, L::Object>) {
        let WatchMessage { source: id, at, event } = message;
        let Some(source) = self.sources.get_mut(&id) else { return };
        let mut news = Vec::new();
        match event {
            WatchEvent::ListStarted => source.versions.list_started(),
            WatchEvent::Applied(observed) => source.versions.seen(observed, &mut news),
            WatchEvent::Unreadable(unreadable) => {
                let (cluster, kind) = (&source.spec.cluster.name, source.spec.resource.kind);
                self.metrics.unreadable(cluster, kind);
                tracing::warn!(
                    cluster, kind, namespace = &*unreadable.namespace, name = &*unreadable.name, why = unreadable.why,
                    "an object cannot be read: what was known of it is kept; repair or delete it"
                );
                source.versions.unreadable(&unreadable, &mut news);
            }
            WatchEvent::Deleted { namespace, name, uid, resource_version } => {
                source.versions.deleted(&namespace, &name, &uid, resource_version, &mut news);
            }
            WatchEvent::ListEnded { resource_version } => {
                source.versions.list_ended(resource_version, &mut news);
                source.was_complete = true;
                self.learn(id, news, at);
                return self.change_state(id, WatchState::Complete, at);
            }
            WatchEvent::NotServed { status, message } => return self.on_not_served(id, status, &message, at),
            WatchEvent::Failed { message } => {
                let (cluster, kind) = (&source.spec.cluster.name, source.spec.resource.kind);
                tracing::warn!(cluster, kind, message, "a watch failed; it is begun anew, and what is known is kept");
            }
        }
        self.learn(id, news, at);
    }

    /// What is held stays the best knowledge there is, except where the whole kind has vanished.
    fn on_not_served(&mut self, id: L::Source, status: u16, message: &str, at: Timestamp) {
        let Some(source) = self.sources.get(&id) else { return };
        let (cluster, resource) = (&source.spec.cluster.name, source.spec.resource);
        let state = match (source.was_complete, source.spec.optional) {
            (true, _) if status == 404 => WatchState::Unknown,
            (true, _) => source.state,
            (false, true) => WatchState::Absent,
            (false, false) => WatchState::Incomplete,
        };
        let remedy = if status == 404 { "install its CRD" } else { "grant get, list and watch on it" };
        if source.spec.optional && state == WatchState::Absent {
            tracing::info!(cluster, %resource, status, message, "an optional kind is not there: the feature is off; to use it, {remedy}");
        } else {
            tracing::error!(cluster, %resource, status, message, "a kind that is needed cannot be watched: {remedy}");
        }
        self.change_state(id, state, at);
    }

    fn change_state(&mut self, id: L::Source, state: WatchState, at: Timestamp) {
        let Some(source) = self.sources.get_mut(&id) else { return };
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

    /// Brings news into the view.
    fn learn(&mut self, id: L::Source, news: Vec<Change<L::Object>>, at: Timestamp) {
        let mut keys = Vec::new();
        for change in news {
            self.logic.observe(id, change, at, &mut keys);
        }
        if self.logic.clears_backoff(id) {
            for key in &keys {
                self.retries.clear_slow(key);
            }
        }
        self.mark_dirty(keys);
    }

    pub(crate) fn mark_dirty(&mut self, keys: impl IntoIterator<Item = L::Key>) {
        for key in keys {
            self.dirty.push(self.logic.lane(&key), key);
        }
    }

    /// Takes in what came of a write: what was learned, then what it means for trying again, then who may go on.
    pub(crate) fn on_ended(&mut self, ended: Ended<L>) {
        let target = target_of(&ended.request);
        let Some(source) = self.sources.get(&target.source) else { return };
        let (spec, cluster) = (Arc::clone(&source.spec), source.cluster);
        self.count(&spec, &ended);
        self.learn_from_answer(&target, &ended);
        let waiting = self.slots.end(cluster, &target);
        self.settle_retries(&spec, cluster, &target, &ended);
        if ended.outcome.verdict == Verdict::Done
            && let Some(receipt) = ended.request.receipt
        {
            for record in self.logic.written(receipt, ended.outcome.at) {
                self.record(&record);
            }
        }
        self.mark_dirty(waiting);
        self.mark_dirty([ended.key]);
    }

    fn learn_from_answer(&mut self, target: &Target<L::Source>, ended: &Ended<L>) {
        let Some(source) = self.sources.get_mut(&target.source) else { return };
        let mut news = Vec::new();
        match &ended.outcome.seen {
            Seen::Object(observed) => {
                let is_held = source.versions.answered(observed.clone(), &mut news);
                if is_held && ended.outcome.verdict == Verdict::Done {
                    source.versions.remember_echo(&target.namespace, &target.name, ended.attempt.content);
                }
            }
            Seen::Gone => {
                let meant = match &ended.request.verb {
                    Verb::Delete { uid } => Some(uid),
                    Verb::Create { .. } | Verb::Patch { .. } => ended.held_before.as_ref().map(|(uid, _)| uid),
                };
                if let Some(uid) = meant {
                    source.versions.gone(&target.namespace, &target.name, uid, &mut news);
                }
            }
            Seen::Nothing => {}
        }
        self.learn(target.source, news, ended.outcome.at);
    }

    fn settle_retries(
        &mut self,
        spec: &SourceSpec<L>,
        cluster: ClusterIndex,
        target: &Target<L::Source>,
        ended: &Ended<L>,
    ) {
        let now = Instant::now();
        let (class, retry_after) = match &ended.outcome.verdict {
            Verdict::Done => return self.retries.succeeded(&ended.key, target),
            // The next plan sees what the conflict was with. Where nothing new was learned it would be in vain.
            Verdict::Conflict { .. } if self.held(target) != ended.held_before => return,
            Verdict::Conflict { .. } => (Class::Ordinary, None),
            Verdict::Refused { .. } => (Class::Parked, None),
            Verdict::Denied { .. } => (Class::Slow, None),
            Verdict::Failed { retry_after, .. } => (Class::Ordinary, *retry_after),
        };
        let wait = self.retries.failed(&ended.key, target, ended.attempt, class, retry_after, now);
        if retry_after.is_some() {
            self.slots.pause(cluster, now + wait);
        }
        if let Verdict::Refused { status, reason, message } = &ended.outcome.verdict {
            self.tell_refusal(spec, ended, *status, reason, message);
        }
    }

    fn tell_refusal(&mut self, spec: &SourceSpec<L>, ended: &Ended<L>, status: u16, reason: &str, message: &str) {
        let refusal = Refusal {
            source: spec.source,
            cluster: spec.cluster.name.clone(),
            kind: spec.resource.kind.to_owned(),
            namespace: ended.request.namespace.clone(),
            name: ended.request.name.clone(),
            verb: ended.request.verb.as_str(),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        for record in self.logic.refused(&ended.key, &refusal) {
            self.record(&record);
        }
    }

    fn count(&self, spec: &SourceSpec<L>, ended: &Ended<L>) {
        let (cluster, kind) = (spec.cluster.name.as_str(), spec.resource.kind);
        let (verb, verdict) = (ended.request.verb.as_str(), &ended.outcome.verdict);
        self.metrics.wrote(cluster, kind, verb, verdict.as_str(), ended.outcome.took);
        let (namespace, name) = (&*ended.request.namespace, &*ended.request.name);
        match verdict {
            Verdict::Done => tracing::debug!(cluster, kind, namespace, name, verb, "written"),
            Verdict::Conflict { message } => {
                tracing::debug!(cluster, kind, namespace, name, verb, message, "the object is not what it was taken for: planned anew");
            }
            Verdict::Refused { message, .. } => tracing::error!(
                cluster, kind, namespace, name, verb, message,
                "a write was refused for its content; it is not sent again until it changes"
            ),
            Verdict::Denied { message, .. } => tracing::warn!(
                cluster, kind, namespace, name, verb, message,
                "a write was denied; check the role of this agent and that the namespace and the CRD exist"
            ),
            Verdict::Failed { message, .. } => {
                tracing::warn!(cluster, kind, namespace, name, verb, message, "a write failed and will be tried again");
            }
        }
    }

    /// Plans one key and begins what may begin.
    pub(crate) fn plan(&mut self, key: &L::Key) {
        let begun = Instant::now();
        let at = self.clock.now();
        let Plan { writes, events, again } = self.logic.plan(key, at);
        self.metrics.planned(begun.elapsed());
        for record in &events {
            self.record(record);
        }
        self.again.set(key, again.map(|again| again.max(at + AGAIN_SOONEST)));
        let mut wanted: BTreeMap<Target<L::Source>, Option<Instant>> = BTreeMap::new();
        for request in writes {
            let target = target_of(&request);
            let held_until = self.begin(key, &target, request);
            let earliest = wanted.entry(target).or_default();
            *earliest = [*earliest, held_until].into_iter().flatten().min();
        }
        self.retries.planned(key, &wanted, Instant::now());
        self.slots.planned(key);
    }

    /// Begins a write, or says until when it is held back. Where something else must come first, the key waits for it.
    fn begin(&mut self, key: &L::Key, target: &Target<L::Source>, request: Request<L>) -> Option<Instant> {
        let Some(source) = self.sources.get(&target.source) else {
            tracing::error!(source = ?target.source, "a plan writes to a source that this agent does not have");
            return None;
        };
        if self.slots.is_busy(target) {
            self.slots.wait_for_target(target, key);
            return None;
        }
        let spec = &source.spec;
        let attempt = Attempt { content: writer::content(&request.verb), version: version_asked_for(&request.verb) };
        if source.versions.echoed(&target.namespace, &target.name, attempt.content) {
            self.metrics.suppressed(&spec.cluster.name, spec.resource.kind, request.verb.as_str());
            return None;
        }
        let now = Instant::now();
        match self.retries.may_send(key, target, attempt, now) {
            Leave::Now => {}
            Leave::At(until) => return Some(until),
            Leave::No => return None,
        }
        let lane = self.logic.lane(key);
        if !self.slots.begin(source.cluster, target, lane, key, now) {
            return None;
        }
        let (spec, key, held_before) = (Arc::clone(spec), key.clone(), self.held(target));
        let carry_out = writer::carry_out(spec, request, self.clock.clone());
        self.writes.spawn(async move {
            let (request, outcome) = carry_out.await;
            Ended { key, attempt, held_before, request, outcome }
        });
        None
    }

    fn held(&self, target: &Target<L::Source>) -> Option<(Box<str>, u64)> {
        let source = self.sources.get(&target.source)?;
        source.versions.held(&target.namespace, &target.name).map(|(uid, version)| (uid.into(), version))
    }

    fn record(&mut self, record: &crate::logic::EventRecord<L::Source>) {
        if let Some(source) = self.sources.get(&record.source) {
            self.recorder.record(&source.spec, record);
        }
    }
}

fn target_of<L: Logic>(request: &Request<L>) -> Target<L::Source> {
    Target { source: request.source, namespace: request.namespace.clone(), name: request.name.clone() }
}

fn version_asked_for(verb: &Verb) -> u64 {
    match verb {
        Verb::Patch { resource_version, .. } => *resource_version,
        Verb::Create { .. } | Verb::Delete { .. } => 0,
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
