//! Runs the agents of one process under one leader election ([`Manager`]). Stops them in the right order.

use std::future::Future;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{oneshot, watch as channel};
use tokio::task::{JoinHandle, JoinSet};

use crate::clock::Clock;
use crate::engine::leadership::Leadership;
use crate::engine::logic::{FlowId, Logic};
use crate::io::source::SourceSpec;
use crate::metrics::Metrics;
use crate::process::lease::{self, LeaseConfig, LeaseError};
use crate::process::shutdown::Shutdown;
use crate::run::Runner;
pub use crate::run::engine_loop::{Finished, Stop};
use crate::tasks::unless_panicked;

type Agent = Box<dyn FnOnce(channel::Receiver<Leadership>, Shutdown) -> BoxFuture<'static, Finished> + Send>;
type Task = Box<dyn FnOnce(channel::Receiver<Leadership>) -> BoxFuture<'static, ()> + Send>;

/// Agents of one process. They lead together, and all of them stop when one of them stops.
pub struct Manager {
    agents: Vec<Agent>,
    lease: Option<LeaseConfig>,
    tasks: Vec<Task>,
    clock: Clock,
    metrics: Metrics,
}

/// What the agents of a process share.
#[derive(Clone, Debug)]
pub struct ProcessContext {
    /// Name of this process as holder of Leases and in Events.
    pub identity: String,
    pub clock: Clock,
    pub metrics: Metrics,
}

impl ProcessContext {
    /// Returns a runner of this agent. The identity is the seed of its random numbers, so that replicas differ.
    #[must_use]
    pub fn runner<L: Logic>(&self, logic: L, sources: Vec<SourceSpec<L>>) -> Runner<L> {
        let Self { identity, clock, metrics } = self.clone();
        let seed = FlowId::of(&identity).0;
        Runner::new(logic, sources, identity, clock, metrics).with_seed(seed)
    }

    /// Returns a manager without agents.
    #[must_use]
    pub fn manager(&self) -> Manager {
        Manager::new(self.clock.clone(), self.metrics.clone())
    }
}

/// Reason why a process ended without a request to stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// All watches or the leader election have ended without a shutdown. Only a bug can cause this, because both retry
    /// after every failure.
    #[error("the watches or the leader election have ended: this is a bug in this agent, please report it")]
    Ended,
}

impl Manager {
    /// Returns a manager without agents, which leads without a Lease, for a single instance.
    #[must_use]
    pub fn new(clock: Clock, metrics: Metrics) -> Self {
        Self { agents: Vec::new(), lease: None, tasks: Vec::new(), clock, metrics }
    }

    /// Adds an agent.
    #[must_use]
    pub fn with_agent<L: Logic>(self, runner: Runner<L>) -> Self {
        self.with(move |leadership, shutdown| async move { runner.run(leadership, shutdown).await.1 })
    }

    /// Adds an agent that runs its own runners, one after the other.
    #[must_use]
    pub fn with<F: Future<Output = Finished> + Send + 'static>(
        mut self,
        agent: impl FnOnce(channel::Receiver<Leadership>, Shutdown) -> F + Send + 'static,
    ) -> Self {
        self.agents.push(Box::new(move |leadership, shutdown| Box::pin(agent(leadership, shutdown))));
        self
    }

    /// Makes the agents write only while this process holds these Leases.
    #[must_use]
    pub fn with_lease(mut self, lease: LeaseConfig) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Adds a task beside the agents, which asks for itself whether this process leads. It ends with [`Manager::run`].
    #[must_use]
    pub fn with_task(
        mut self,
        task: impl FnOnce(channel::Receiver<Leadership>) -> BoxFuture<'static, ()> + Send + 'static,
    ) -> Self {
        self.tasks.push(Box::new(task));
        self
    }

    /// Runs the agents until a stop is requested. Releases the Leases when the writes of all agents have ended.
    ///
    /// # Errors
    /// If the process ended for another reason than a request to stop.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), RunError> {
        let election = Election::begin(self.lease, &self.clock, &self.metrics)?;
        let mut beside = JoinSet::new();
        for task in self.tasks {
            beside.spawn(task(election.leadership.clone()));
        }
        let (trigger, stopped) = Shutdown::new();
        let begin = |agent: Agent| agent(election.leadership.clone(), stopped.clone());
        let mut running: FuturesUnordered<_> = self.agents.into_iter().map(begin).collect();
        let first = tokio::select! {
            biased;
            () = shutdown.requested() => None,
            first = running.next(), if !running.is_empty() => first,
        };
        trigger.request();
        let mut ended: Vec<Finished> = first.into_iter().collect();
        ended.extend(running.collect::<Vec<_>>().await);
        // A process that has released its Leases must not write.
        beside.shutdown().await;
        election.end(ended.iter().all(|agent| agent.drained)).await;
        // An agent that stopped because another agent stopped says that this was requested.
        let is_unrequested = ended.iter().any(|agent| agent.stop != Stop::Requested);
        if is_unrequested { Err(RunError::Ended) } else { Ok(()) }
    }
}

/// Running leader election, or its replacement for a process without a Lease.
struct Election {
    leadership: channel::Receiver<Leadership>,
    task: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    /// Sender for a process without a Lease. Kept alive, because a closed channel means that the election task has
    /// ended.
    _alone: Option<channel::Sender<Leadership>>,
}

impl Election {
    fn begin(lease: Option<LeaseConfig>, clock: &Clock, metrics: &Metrics) -> Result<Self, LeaseError> {
        let Some(config) = lease else {
            let alone = channel::Sender::new(Leadership::Leading { until: None });
            return Ok(Self { leadership: alone.subscribe(), task: None, _alone: Some(alone) });
        };
        let (release, released) = oneshot::channel();
        let (leadership, task) = lease::elect(config, clock, metrics.clone(), released)?;
        Ok(Self { leadership, task: Some((release, task)), _alone: None })
    }

    /// Ends the election and releases the Leases. If writes may still be in flight (`drained` is false), the Leases are
    /// not released and expire later.
    async fn end(self, drained: bool) {
        let Some((release, task)) = self.task else { return };
        if drained {
            // Sending fails if the election task has already finished, which is fine.
            let _ = release.send(());
        } else {
            drop(release);
        }
        // Nobody cancels the task.
        let _ = unless_panicked(task.await);
    }
}

#[cfg(test)]
#[path = "manager_tests.rs"]
mod tests;
