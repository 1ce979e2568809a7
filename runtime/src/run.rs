//! Runs one agent: its watches and the engine. Stops them in the right order. [`crate::manager`] runs the agents of a
//! process.

pub(crate) mod engine_loop;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch as channel};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::backoff::Jitter;
use crate::clock::Clock;
use crate::engine::leadership::Leadership;
use crate::engine::logic::Logic;
use crate::engine::message::WatchMessage;
use crate::engine::sources::SourceStatus;
use crate::engine::state::{Engine, Surroundings};
use crate::io::events::{self, Recorder};
use crate::io::response::ResponseSink;
use crate::io::source::SourceSpec;
use crate::io::watch;
use crate::limits::{EVENT_FLUSH_TIMEOUT, INBOX_MESSAGES, WATCH_CHANNEL_MESSAGES};
use crate::metrics::Metrics;
use crate::process::shutdown::Shutdown;
use crate::tasks::unless_panicked;
use engine_loop::{EngineLoop, Finished, Inputs};

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
        Some(ResponseSink::new(source, Arc::clone(&spec.decode), self.messages.downgrade(), self.clock.clone()))
    }

    /// Runs the agent until a stop is requested. The agent then stops planning, and waits for the writes in
    /// flight up to [`crate::limits::DRAIN_TIMEOUT`]. Returns the logic in its last state.
    pub async fn run(self, leadership: channel::Receiver<Leadership>, shutdown: Shutdown) -> (L, Finished) {
        let clusters = self.sources.iter().map(|source| source.cluster.name.as_str());
        let (recorder, postings) = Recorder::new(clusters, self.instance, self.clock.clone(), self.metrics.clone());
        let posting = tokio::spawn(events::post(postings, self.metrics.clone()));
        let surroundings = Surroundings {
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            jitter: Jitter::new(self.seed),
            status: self.status,
        };
        let infos = self.sources.iter().map(|source| source.info()).collect();
        let engine = Engine::new(self.logic, infos, surroundings);
        let mut watches = JoinSet::new();
        for source in self.sources.iter().map(Arc::clone) {
            let (messages, metrics, clock) = (self.messages.clone(), self.metrics.clone(), self.clock.clone());
            let progress = engine.progress(source.source);
            let watch = watch::watch((source, progress), messages, metrics, clock, self.seed);
            watches.spawn(until_shutdown(shutdown.clone(), watch));
        }
        drop(self.messages);
        drop(self.outside);
        let engine = EngineLoop::new(engine, &self.sources, recorder, self.clock, leadership);
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

/// Runs a watch until a shutdown is requested or the watch ends.
async fn until_shutdown(shutdown: Shutdown, watch: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = shutdown.requested() => {}
        () = watch => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_watch_ends_with_a_shutdown() {
        let (trigger, shutdown) = Shutdown::new();
        let watch = tokio::spawn(until_shutdown(shutdown, std::future::pending()));
        trigger.request();
        watch.await.expect("it ends");
    }
}
