//! Engine: the single task that owns the agent's view and its queues. [`crate::engine::planning`] plans keys and starts writes.
//!
//! ```text
//! watches --message--> versions --change--> Logic::observe --keys--> queue --plan--> held back? suppressed? slot? --> writer
//!                         ^                                                                                                   |
//!                         '------------------------------- outcome: the response is an observation ---------------------------'
//! ```
//!
//! The actions of the engine depend only on the order of its inputs. Maps are ordered, inputs have a fixed order of
//! precedence, and random numbers have a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as channel;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::backoff::Jitter;
use crate::clock::{Clock, ProcessorTime, Steps};
use crate::engine::fights::{Fights, State};
use crate::engine::inquiries::Inquiries;
use crate::engine::leadership::Leadership;
use crate::engine::logic::{Change, Event, Logic, ProcessNews, WatchNews, WatchState};
use crate::engine::message::{WatchEvent, WatchMessage};
use crate::engine::outcomes::Ended;
use crate::engine::queue::{FairQueue, Timers};
use crate::engine::retries::Retries;
use crate::engine::slots::{ClusterIndex, Slots, Target};
use crate::engine::sources::SourceStatus;
use crate::engine::unfinished::Unfinished;
use crate::engine::versions::{Progress, Versions};
use crate::io::events::{Occasion, Recorder};
use crate::io::source::SourceSpec;
use crate::io::{watch, writer};
use crate::limits::WRITES_PER_SECOND_CEILING;
use crate::metrics::Metrics;
use crate::tasks::unless_panicked;
use fleetnet_types::{ObjectName, Timestamp};

/// State of the engine. The module [`crate::engine::turns`] drives it.
pub(crate) struct Engine<L: Logic> {
    pub(crate) logic: L,
    pub(crate) sources: BTreeMap<L::Source, Source<L>>,
    pub(crate) queue: FairQueue<L::Key>,
    /// Keys that were last planned while another replica was the leader, if that plan had writes or asked for a later
    /// plan. The engine requeues these keys when this replica becomes the leader.
    pub(crate) left_to_leader: BTreeSet<L::Key>,
    /// True if the queues are those of a leader: this replica has planned as the leader. `None` before the first turn.
    pub(crate) leads: Option<bool>,
    pub(crate) leadership: channel::Receiver<Leadership>,
    /// For each queued key, the oldest change since the key's last plan. For the latency metrics.
    pub(crate) news: BTreeMap<L::Key, News>,
    /// Time of each key's next plan, if the last plan asked for one. On the monotonic clock, so a step of the wall
    /// clock does not move it.
    pub(crate) again: Timers<L::Key, Instant>,
    pub(crate) retries: Retries<L::Key, (Target<L::Source>, &'static str)>,
    pub(crate) fights: Fights<L::Key, L::Source>,
    pub(crate) slots: Slots<L::Key, Target<L::Source>>,
    pub(crate) writes: JoinSet<Ended<L>>,
    /// Running GETs about fights. In a fight, another writer undoes this agent's writes to an object. The GET shows the
    /// name of this writer.
    pub(crate) inquiries: Inquiries<L>,
    /// Running GET of an object that the view did not keep before. At most one runs at a time.
    pub(crate) rereads: JoinSet<(ObjectName, writer::Reread<L>)>,
    /// Source of the object that the running GET reads.
    pub(crate) reread: Option<L::Source>,
    /// Planned writes that are not carried out yet.
    pub(crate) unfinished: Unfinished<L::Key, (Target<L::Source>, &'static str)>,
    /// Name of each cluster, with the reported start of its oldest unfinished write.
    pub(crate) clusters: Vec<(String, Option<Instant>)>,
    /// Keys with creates in flight, and the number of these creates.
    pub(crate) creating: BTreeMap<L::Key, usize>,
    recorder: Recorder,
    pub(crate) clock: Clock,
    steps: Steps,
    pub(crate) metrics: Metrics,
    status: channel::Sender<Vec<SourceStatus>>,
}

pub(crate) struct Source<L: Logic> {
    pub(crate) spec: Arc<SourceSpec<L>>,
    pub(crate) cluster: ClusterIndex,
    pub(crate) versions: Versions<L::Object>,
    state: WatchState,
    /// Number of restores of the server that its watches had noticed when they requested the last list of this source.
    restores: u64,
    /// True if the source was completely listed before. The view then has objects, which become outdated if the server
    /// stops providing the kind.
    pub(crate) was_complete: bool,
    /// True while the watch is connected to its server, or has not failed yet.
    is_connected: bool,
}

/// Time and cost of a message that arrived from a watch.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) at: Timestamp,
    /// Processor time that decoding the message took.
    pub(crate) decoding: Duration,
}

/// Oldest change that caused the engine to queue a key.
pub(crate) struct News {
    pub(crate) at: Timestamp,
    /// Processor time of decoding the change and storing it in the agent's view.
    pub(crate) spent: Duration,
}

/// Inputs of an engine besides its agent logic and its sources.
pub(crate) struct Surroundings {
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) jitter: Jitter,
    pub(crate) status: channel::Sender<Vec<SourceStatus>>,
    pub(crate) leadership: channel::Receiver<Leadership>,
}

impl<L: Logic> Source<L> {
    fn new(spec: Arc<SourceSpec<L>>, cluster: ClusterIndex) -> Self {
        Self {
            spec,
            cluster,
            versions: Versions::default(),
            state: WatchState::Incomplete,
            restores: 0,
            was_complete: false,
            is_connected: true,
        }
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
            sources.insert(spec.source, Source::new(spec, cluster));
        }
        let Surroundings { recorder, clock, metrics, jitter, status, leadership } = surroundings;
        let engine = Self {
            logic,
            sources,
            queue: FairQueue::default(),
            left_to_leader: BTreeSet::new(),
            leads: None,
            leadership,
            news: BTreeMap::new(),
            again: Timers::default(),
            retries: Retries::new(jitter),
            fights: Fights::default(),
            slots: Slots::new(clusters.len(), WRITES_PER_SECOND_CEILING),
            writes: JoinSet::new(),
            inquiries: Inquiries::new(clusters.len()),
            rereads: JoinSet::new(),
            reread: None,
            unfinished: Unfinished::new(clusters.len()),
            clusters: clusters.into_iter().map(|name| (name, None)).collect(),
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

    /// Returns the progress of the observations of a source, for its watch.
    pub(crate) fn progress(&self, source: L::Source) -> Progress {
        self.sources.get(&source).map(|source| source.versions.progress()).unwrap_or_default()
    }

    /// Handles a message of another part of the process.
    pub(crate) fn on_message(&mut self, message: L::Message) {
        self.follow_clock();
        let (working, at) = (ProcessorTime::now(), self.clock.now());
        tracing::trace!(?message, "received");
        let mut keys = Vec::new();
        self.logic.receive(message, at, &mut keys);
        self.concern(keys, at, working.elapsed());
    }

    /// Handles a message of a watch.
    pub(crate) fn on_watch(&mut self, message: WatchMessage<L::Source, L::Object>) {
        let begun = Instant::now();
        self.take_in(message);
        self.metrics.viewed(begun.elapsed());
    }

    fn take_in(&mut self, message: WatchMessage<L::Source, L::Object>) {
        watch::log(&message);
        let WatchMessage { source: id, at, decoding, event } = message;
        self.follow_clock();
        // If the wall clock was set back after the event arrived, the event's time is in the future. Use the present
        // time instead.
        let at = at.min(self.clock.now());
        let arrival = Arrival { at, decoding };
        let Some(source) = self.sources.get_mut(&id) else { return };
        let mut news = Vec::new();
        match event {
            WatchEvent::ListStarted { requested, restores } => {
                source.versions.list_started(requested);
                if restores > source.restores {
                    source.versions.list_follows_restore();
                }
                self.doubt_lists_before(restores, id, at);
                if let Some(source) = self.sources.get_mut(&id) {
                    source.restores = restores;
                }
                self.tell_watch(id, WatchNews::Listing(true), at);
            }
            WatchEvent::Applied(observed) => source.versions.seen(observed, &mut news),
            WatchEvent::Undecodable(undecodable) => {
                let (cluster, kind) = (&source.spec.cluster.name, source.spec.resource.kind);
                self.metrics.undecodable(cluster, kind);
                tracing::warn!(
                    side = cluster,
                    kind,
                    namespace = &*undecodable.name.namespace,
                    name = &*undecodable.name.name,
                    why = undecodable.why,
                    "an object is undecodable: its last decoded state stays in force. Repair or delete the object"
                );
                source.versions.undecodable(&undecodable, &mut news);
            }
            WatchEvent::Deleted { name, uid, resource_version } => {
                source.versions.deleted(&name, &uid, resource_version, &mut news);
            }
            WatchEvent::ListEnded { resource_version } => {
                source.versions.list_ended(resource_version, &mut news);
                source.was_complete = true;
                self.learn(id, news, arrival);
                self.set_connected(id, true, at);
                self.tell_watch(id, WatchNews::Listing(false), at);
                if self.is_before_restore(id) {
                    return;
                }
                return self.change_state(id, WatchState::Complete, at);
            }
            WatchEvent::NotServed { status, .. } => {
                self.set_connected(id, false, at);
                return self.on_not_served(id, status, at);
            }
            // The watch has already logged the failure. The view does not change, because no newer state is known.
            WatchEvent::Failed { .. } => return self.set_connected(id, false, at),
            WatchEvent::Resumed => return self.set_connected(id, true, at),
            WatchEvent::Response(observed) => {
                source.versions.answered(observed, &mut news);
            }
            WatchEvent::Gone { name, uid } => source.versions.gone(&name, &uid, &mut news),
        }
        self.learn(id, news, arrival);
    }

    /// True if the last list of a source was requested before a restore of the server that the list of another kind
    /// shows.
    fn is_before_restore(&self, id: L::Source) -> bool {
        let Some(source) = self.sources.get(&id) else { return false };
        let mut of_server = self.sources.values().filter(|other| other.cluster == source.cluster);
        of_server.any(|other| other.restores > source.restores)
    }

    /// Makes the kinds of a source's server unknown that were listed before the server's latest restore, until they are
    /// listed again.
    fn doubt_lists_before(&mut self, restores: u64, id: L::Source, at: Timestamp) {
        let Some(cluster) = self.sources.get(&id).map(|source| source.cluster) else { return };
        let is_doubtful =
            |source: &Source<L>| source.cluster == cluster && source.was_complete && source.restores < restores;
        let doubtful: Vec<_> = self.sources.iter().filter(|(_, it)| is_doubtful(it)).map(|(id, _)| *id).collect();
        for doubtful in doubtful {
            self.tell_watch(doubtful, WatchNews::Restored, at);
            self.change_state(doubtful, WatchState::Unknown, at);
        }
    }

    fn tell_watch(&mut self, id: L::Source, news: WatchNews, at: Timestamp) {
        let mut keys = Vec::new();
        self.logic.watch(id, news, at, &mut keys);
        self.requeue(keys);
    }

    fn tell_process(&mut self, news: ProcessNews) {
        let mut keys = Vec::new();
        self.logic.process(news, self.clock.now(), &mut keys);
        self.requeue(keys);
    }

    fn set_connected(&mut self, id: L::Source, is_connected: bool, at: Timestamp) {
        let Some(source) = self.sources.get_mut(&id) else { return };
        if std::mem::replace(&mut source.is_connected, is_connected) != is_connected {
            self.tell_watch(id, WatchNews::Connected(is_connected), at);
        }
    }

    /// Handles a 403 or 404 to a list or watch of a source. The new state of the view:
    ///
    /// - The source was completely listed before: unknown after a 404, and after a 403 if the source sets
    ///   `freezes_when_forbidden`. After any other 403, the view stays in use.
    /// - The source was never completely listed: absent if the source is optional, otherwise incomplete.
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
            side = source.spec.cluster.name, resource = %source.spec.resource, state = state.as_str(),
            objects = source.versions.len(), "the view of a kind changed its state"
        );
        self.tell_watch(id, WatchNews::State(state), at);
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
        for Source { spec, state, .. } in self.sources.values() {
            self.metrics.watch_state(&spec.cluster.name, spec.label, *state);
        }
        self.status.send_replace(statuses);
    }

    /// Handles a step of the wall clock. The times that the agent remembers move by the same step, so no wait becomes
    /// longer or shorter.
    pub(crate) fn follow_clock(&mut self) {
        let Some(by) = self.steps.take(&self.clock) else { return };
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let seconds = by as f64 / 1e6;
        tracing::warn!(seconds, "the wall clock jumped by {seconds:+.1} s: times written before differ by that much");
        for news in self.news.values_mut() {
            news.at = news.at.plus_micros(by);
        }
        self.tell_process(ProcessNews::ClockSet { microseconds: by });
    }

    /// Stores changes in the agent's view and queues the keys that they concern.
    pub(crate) fn learn(&mut self, id: L::Source, news: Vec<Change<L::Object>>, arrival: Arrival) {
        let (working, Arrival { at, decoding }) = (ProcessorTime::now(), arrival);
        let mut keys = Vec::new();
        for change in news {
            self.logic.observe(id, change, at, &mut keys);
        }
        if self.sources.get(&id).is_some_and(|source| source.spec.ends_denials) {
            for key in &keys {
                self.retries.clear_denied(key);
            }
        }
        self.concern(keys, at, decoding + working.elapsed());
        self.read_again();
    }

    /// Reads an object that the view did not keep before and has room for now.
    fn read_again(&mut self) {
        if self.reread.is_some() {
            return;
        }
        let Some((id, name)) = self.logic.wanted_again() else { return };
        let Some(source) = self.sources.get(&id) else { return };
        self.rereads.spawn(writer::read(Arc::clone(&source.spec), name));
        self.reread = Some(id);
    }

    /// Handles the end of a read of an object that the view did not keep before. The view may not have the object
    /// although its version is known.
    pub(crate) fn on_reread(&mut self, joined: Result<(ObjectName, writer::Reread<L>), JoinError>) {
        let (id, found) = (self.reread.take(), unless_panicked(joined).ok());
        let Some((id, (name, found))) = id.zip(found) else { return self.read_again() };
        let mut news = Vec::new();
        match (self.sources.get_mut(&id), found) {
            (Some(source), writer::Reread::Found(observed)) => {
                let is_known =
                    source.versions.known(&observed.name) == Some((&observed.uid, observed.resource_version));
                if is_known {
                    news.push(Change::Applied(observed.object));
                } else {
                    source.versions.answered(observed, &mut news);
                }
            }
            (Some(_), writer::Reread::Undecodable) => news.push(Change::Undecodable { name }),
            (_, writer::Reread::Nothing) | (None, _) => {}
        }
        self.learn(id, news, Arrival { at: self.clock.now(), decoding: Duration::ZERO });
    }

    /// Queues the keys that a change of the time `at` concerns. `spent` is the processor time of storing it.
    fn concern(&mut self, keys: Vec<L::Key>, at: Timestamp, spent: Duration) {
        for key in &keys {
            if !self.news.contains_key(key) {
                self.news.insert(key.clone(), News { at, spent });
            }
        }
        self.requeue(keys);
    }

    pub(crate) fn requeue(&mut self, keys: impl IntoIterator<Item = L::Key>) {
        for key in keys {
            if tracing::enabled!(tracing::Level::TRACE) && !self.queue.contains(&key) {
                tracing::trace!(?key, "queued");
            }
            self.queue.push(self.logic.flow(&key).id, key);
        }
    }

    pub(crate) fn left_to_leader(&self) -> usize {
        self.left_to_leader.len()
    }

    /// Starts to lead, and requeues the keys whose writes the previous leader has not made.
    pub(crate) fn take_over(&mut self) {
        if self.leads.replace(true) != Some(true) {
            self.clusters.iter().for_each(|(name, _)| self.metrics.oldest_unfinished(name, None));
            self.tell_process(ProcessNews::Leads);
        }
        let left = std::mem::take(&mut self.left_to_leader);
        self.requeue(left);
    }

    /// Stops leading. The next leader makes the writes that are left. This process remembers them in case that it leads
    /// again.
    pub(crate) fn step_down(&mut self) {
        // The first turn also tells the logic, which may have led in an earlier engine.
        if self.leads.replace(false) == Some(false) {
            return;
        }
        self.unfinished = Unfinished::new(self.clusters.len());
        self.clusters.iter_mut().for_each(|(_, reported)| *reported = None);
        self.metrics.no_unfinished();
        self.tell_process(ProcessNews::Follows);
    }

    pub(crate) fn known(&self, target: &Target<L::Source>) -> State {
        let source = self.sources.get(&target.source)?;
        source.versions.known(&target.name).map(|(uid, version)| (uid.clone(), version))
    }

    pub(crate) fn record(&mut self, record: &Event<L::Source>, occasion: Occasion) {
        if let Some(source) = self.sources.get(&record.source) {
            self.recorder.record(&source.spec, record, occasion);
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
