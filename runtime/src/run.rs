//! Runs an agent: its watches, the engine and leader election. Stops them in the right order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch as channel};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::backoff::Jitter;
use crate::clock::Clock;
use crate::engine::{Engine, Surroundings};
use crate::events::{self, Recorder};
use crate::lease::{self, Leadership, LeaseConfig, LeaseError};
use crate::limits::{EVENT_FLUSH_TIMEOUT, WATCH_CHANNEL_MESSAGES};
use crate::logic::{Logic, Resource, SourceSpec, WatchState};
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::tasks::unless_panicked;
use crate::turns::{Inputs, Stop};
use crate::watch;

pub struct Runner<L: Logic> {
    logic: L,
    sources: Vec<Arc<SourceSpec<L>>>,
    lease: Option<LeaseConfig>,
    instance: String,
    clock: Clock,
    metrics: Metrics,
    seed: u64,
    status: channel::Sender<Vec<SourceStatus>>,
    leader_task: Option<BoxFuture<'static, ()>>,
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
    /// True if the first list has ended, the kind is known to be absent, or the source is not subscribed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.state, WatchState::Complete | WatchState::Absent | WatchState::Unwatched)
    }
}

/// Reason why an agent ended without a request to stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another process may lead now, so this process must stop writing.
    #[error(
        "leadership was lost: another replica may have taken the Lease, or it could not be renewed in time; this \
         process ends, so that it starts again as a candidate"
    )]
    LeadershipLost,
    #[error("leader election failed: {0}")]
    Lease(#[from] LeaseError),
    /// All watches have ended without a shutdown. Only a bug can cause this, because a watch retries after every failure.
    #[error("the watches have ended: this is a bug in this agent, please report it")]
    WatchesEnded,
}

impl<L: Logic> Runner<L> {
    /// Returns an agent that leads without a Lease, for a single instance. `instance` is the name of this process in its Events,
    /// such as the host name.
    #[must_use]
    pub fn new(logic: L, sources: Vec<SourceSpec<L>>, instance: String, clock: Clock, metrics: Metrics) -> Self {
        let status = channel::Sender::new(Vec::new());
        let sources = sources.into_iter().map(Arc::new).collect();
        Self { logic, sources, lease: None, instance, clock, metrics, seed: 0, status, leader_task: None }
    }

    /// Makes the agent write only while this process holds these Leases.
    #[must_use]
    pub fn with_lease(mut self, lease: LeaseConfig) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets the seed of random numbers: timeouts of watches and jitter. Replicas of an agent should have different seeds.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds a task beside the engine. It begins when this process leads for the first time, and ends with [`Runner::run`].
    #[must_use]
    pub fn with_leader_task(mut self, task: BoxFuture<'static, ()>) -> Self {
        self.leader_task = Some(task);
        self
    }

    /// Returns a channel with the state of each source, updated at each change. Empty until [`Runner::run`].
    #[must_use]
    pub fn status(&self) -> channel::Receiver<Vec<SourceStatus>> {
        self.status.subscribe()
    }

    /// Runs the agent until a stop is requested or leadership is lost.
    ///
    /// In both cases the agent stops planning, waits for the writes in flight up to [`crate::limits::DRAIN_TIMEOUT`], and then
    /// releases the Leases.
    ///
    /// # Errors
    /// If the agent ended for another reason than a request to stop.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), RunError> {
        let clusters = self.sources.iter().map(|source| source.cluster.name.as_str());
        let (recorder, postings) = Recorder::new(clusters, self.instance, self.clock.clone(), self.metrics.clone());
        let posting = tokio::spawn(events::post(postings, self.metrics.clone()));
        let election = Election::begin(self.lease, &self.clock, &self.metrics);
        let mut beside = JoinSet::new();
        if let Some(task) = self.leader_task {
            beside.spawn(once_leading(election.leadership.clone(), task));
        }
        let (messages, received) = mpsc::channel(WATCH_CHANNEL_MESSAGES);
        let surroundings = Surroundings {
            recorder,
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            jitter: Jitter::new(self.seed),
            status: self.status,
        };
        let engine = Engine::new(self.logic, self.sources, surroundings);
        let mut watches = JoinSet::new();
        for (source, wanted) in engine.watched() {
            let (messages, metrics, clock) = (messages.clone(), self.metrics.clone(), self.clock.clone());
            watches.spawn(watch::watch(source, wanted, messages, metrics, clock, shutdown.clone(), self.seed));
        }
        drop(messages);
        let inputs = Inputs { messages: received, leadership: election.leadership.clone(), shutdown };
        let ended = tokio::select! {
            biased;
            ended = Box::pin(engine.run(inputs)) => ended,
            never = panicked(&mut watches) => match never {},
        };
        // A process that does not lead any more must not write.
        beside.shutdown().await;
        watches.abort_all();
        ended_well(&mut watches).await;
        flush(posting, EVENT_FLUSH_TIMEOUT).await;
        let elected = election.end(ended.drained).await;
        match ended.stop {
            Stop::Requested => Ok(elected?),
            Stop::LeadershipLost => Err(elected.err().map_or(RunError::LeadershipLost, RunError::Lease)),
            Stop::WatchesEnded => Err(RunError::WatchesEnded),
        }
    }
}

/// Runs a task as soon as this process leads. A process that has lost leadership never leads again.
async fn once_leading(mut leadership: channel::Receiver<Leadership>, task: BoxFuture<'static, ()>) {
    // fault K11.6 (run_tests::only_a_leader_runs_its_task): matches!(state, Leadership::Leading) ~> true
    if leadership.wait_for(|state| matches!(state, Leadership::Leading)).await.is_ok() {
        task.await;
    }
}

/// Waits for a panic in one of the watches and resumes the panic. Never returns otherwise.
async fn panicked(watches: &mut JoinSet<()>) -> Infallible {
    ended_well(watches).await;
    std::future::pending().await
}

/// Waits until all watches have ended. Resumes the panic of a watch, because an agent without this watch would miss events.
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

type ElectionTask = JoinHandle<Result<(), LeaseError>>;

/// Running leader election, or its replacement for an agent without a Lease.
struct Election {
    leadership: channel::Receiver<Leadership>,
    task: Option<(oneshot::Sender<()>, ElectionTask)>,
    /// Sender for an agent without a Lease. Kept alive, because a closed channel means that the election task has ended.
    _alone: Option<channel::Sender<Leadership>>,
}

impl Election {
    fn begin(lease: Option<LeaseConfig>, clock: &Clock, metrics: &Metrics) -> Self {
        let Some(config) = lease else {
            let alone = channel::Sender::new(Leadership::Leading);
            return Self { leadership: alone.subscribe(), task: None, _alone: Some(alone) };
        };
        let (release, released) = oneshot::channel();
        let (leadership, task) = lease::elect(config, clock, metrics.clone(), released);
        Self { leadership, task: Some((release, task)), _alone: None }
    }

    /// Ends the election and releases the Leases. If writes may still be in flight (`drained` is false), the Leases are not
    /// released and expire later.
    async fn end(self, drained: bool) -> Result<(), LeaseError> {
        let Some((release, task)) = self.task else {
            return Ok(());
        };
        // fault K5.2: drained ~> true
        if drained {
            // Sending fails if the election task has already finished, which is fine.
            let _ = release.send(());
        } else {
            drop(release);
        }
        unless_panicked(task.await).unwrap_or(Ok(()))
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
