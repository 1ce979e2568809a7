//! Runs one agent: its watches and the engine. Stops them in the right order. [`crate::manager`] runs the agents of a
//! process.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch as channel};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::backoff::Jitter;
use crate::clock::Clock;
use crate::engine::{Engine, Surroundings};
use crate::events::{self, Recorder};
use crate::lease::Leadership;
use crate::limits::{EVENT_FLUSH_TIMEOUT, INBOX_MESSAGES, WATCH_CHANNEL_MESSAGES};
use crate::logic::{Logic, Resource, SourceSpec, WatchState};
use crate::metrics::Metrics;
use crate::response::ResponseSink;
use crate::shutdown::Shutdown;
use crate::tasks::unless_panicked;
use crate::turns::{Finished, Inputs};
use crate::watch::{self, WatchMessage};

/// Agent with its watches, ready to run.
pub struct Runner<L: Logic> {
    logic: L,
    sources: Vec<Arc<SourceSpec<L>>>,
    instance: String,
    clock: Clock,
    metrics: Metrics,
    seed: u64,
    status: channel::Sender<Vec<SourceStatus>>,
    messages: mpsc::Sender<WatchMessage<L::Source, L::Object>>,
    received: mpsc::Receiver<WatchMessage<L::Source, L::Object>>,
    inbox: mpsc::Receiver<L::Message>,
    outside: mpsc::Sender<L::Message>,
}

/// State of the agent's view of one source, for `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    pub cluster: String,
    pub resource: Resource,
    /// True if the agent works without this source.
    pub optional: bool,
    pub state: WatchState,
}

impl SourceStatus {
    /// True if the first list has ended, or if the kind is known to be absent.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.state, WatchState::Complete | WatchState::Absent)
    }
}

impl<L: Logic> Runner<L> {
    /// Returns an agent. `instance` is the name of this process in the agent's Events, such as the host name.
    #[must_use]
    pub fn new(logic: L, sources: Vec<SourceSpec<L>>, instance: String, clock: Clock, metrics: Metrics) -> Self {
        let sources = sources.into_iter().map(Arc::new).collect();
        let (messages, received) = mpsc::channel(WATCH_CHANNEL_MESSAGES);
        let (outside, inbox) = mpsc::channel(INBOX_MESSAGES);
        let status = channel::Sender::new(Vec::new());
        Self { logic, sources, instance, clock, metrics, seed: 0, status, messages, received, inbox, outside }
    }

    /// Sets the seed of random numbers: timeouts of watches and jitter. Replicas of an agent should have different
    /// seeds.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the channel that gets the state of each source, at each change.
    #[must_use]
    pub fn with_status(mut self, status: channel::Sender<Vec<SourceStatus>>) -> Self {
        self.status = status;
        self
    }

    /// Returns a channel with the state of each source, updated at each change. Empty until [`Runner::run`].
    #[must_use]
    pub fn status(&self) -> channel::Receiver<Vec<SourceStatus>> {
        self.status.subscribe()
    }

    /// Returns a sender of messages to this agent's logic ([`Logic::receive`]).
    #[must_use]
    pub fn inbox(&self) -> mpsc::Sender<L::Message> {
        self.outside.clone()
    }

    /// Returns a sink that shows this agent the responses to another agent's writes of this source. `None` if this
    /// agent does not watch the source.
    #[must_use]
    pub fn response_sink(&self, source: L::Source) -> Option<ResponseSink> {
        let spec = self.sources.iter().find(|spec| spec.source == source)?;
        Some(ResponseSink::new(spec, self.messages.downgrade(), self.clock.clone()))
    }

    /// Runs the agent until a stop is requested. The agent then stops planning, and waits for the writes in
    /// flight up to [`crate::limits::DRAIN_TIMEOUT`]. Returns the logic in its last state.
    pub async fn run(self, leadership: channel::Receiver<Leadership>, shutdown: Shutdown) -> (L, Finished) {
        let clusters = self.sources.iter().map(|source| source.cluster.name.as_str());
        let (recorder, postings) = Recorder::new(clusters, self.instance, self.clock.clone(), self.metrics.clone());
        let posting = tokio::spawn(events::post(postings, self.metrics.clone()));
        let surroundings = Surroundings {
            recorder,
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            jitter: Jitter::new(self.seed),
            status: self.status,
            leadership,
        };
        let engine = Engine::new(self.logic, self.sources.clone(), surroundings);
        let mut watches = JoinSet::new();
        for source in self.sources {
            let (messages, metrics, clock) = (self.messages.clone(), self.metrics.clone(), self.clock.clone());
            let progress = engine.progress(source.source);
            watches.spawn(watch::watch((source, progress), messages, metrics, clock, shutdown.clone(), self.seed));
        }
        drop(self.messages);
        drop(self.outside);
        let inputs = Inputs { messages: self.received, inbox: self.inbox, shutdown };
        let ended = tokio::select! {
            biased;
            ended = Box::pin(engine.run(inputs)) => ended,
            never = panicked(&mut watches) => match never {},
        };
        watches.abort_all();
        ended_well(&mut watches).await;
        flush(posting, EVENT_FLUSH_TIMEOUT).await;
        self.metrics.agent_ended();
        ended
    }
}

/// Waits for a panic in one of the watches and resumes the panic. Never returns otherwise.
async fn panicked(watches: &mut JoinSet<()>) -> Infallible {
    ended_well(watches).await;
    std::future::pending().await
}

/// Waits until all watches have ended. Resumes the panic of a watch, because an agent without this watch would miss
/// events.
async fn ended_well(watches: &mut JoinSet<()>) {
    while let Some(ended) = watches.join_next().await {
        // Ignore the error of a cancelled watch, because watches are cancelled when the agent stops.
        let _ = unless_panicked(ended);
    }
}

/// Posts the queued Kubernetes Events for at most `within`. Drops the remaining Events, because Events are best effort.
async fn flush(posting: JoinHandle<()>, within: Duration) {
    let abort = posting.abort_handle();
    if timeout(within, posting).await.is_err() {
        abort.abort();
    }
}
