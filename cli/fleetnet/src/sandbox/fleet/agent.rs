//! Agents that are restarted when they fail, as containers in Kubernetes are.

use crate::limits::{RESTART, STOP};
use crate::sandbox::event::{AgentState, Event};
use crate::sandbox::view::Stage;
use sim::agent::Ended;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Agent that is restarted when it fails.
pub(crate) struct Agent {
    name: String,
    running: Arc<Mutex<sim::Agent>>,
    keeper: JoinHandle<()>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Agent {
    /// Runs the agent that `start` returns. Calls `start` again after each failure.
    pub(crate) fn keep(
        start: impl Fn() -> anyhow::Result<sim::Agent> + Send + Sync + 'static,
        stage: Stage,
        failures: Failures,
    ) -> anyhow::Result<Self> {
        let agent = start()?;
        let name = agent.name().to_owned();
        let running = Arc::new(Mutex::new(agent));
        let keeper = tokio::spawn(keep(name.clone(), Arc::clone(&running), start, stage, failures));
        Ok(Self { name, running, keeper })
    }

    /// Returns the agent's name, such as `hub-agent` or `member-agent of member-1`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the agent has listed all kinds that it watches, or until the agent ends.
    pub(crate) async fn ready(&self) {
        self.running.lock().await.ready().await;
    }

    /// Returns the agent's metrics in the text format of `/metrics`.
    pub(crate) async fn metrics(&self) -> anyhow::Result<String> {
        self.running.lock().await.metrics()
    }

    /// Stops the agent: it finishes its current work and releases its Leases. After a time limit, the agent is killed.
    pub(crate) async fn stop(self) {
        self.keeper.abort();
        self.running.lock().await.stop(STOP).await;
    }

    /// Kills the agent, and waits until its task has ended.
    pub(crate) async fn kill(self) {
        self.keeper.abort();
        self.running.lock().await.kill().await;
    }
}

/// Failures of agents as sentences, oldest first. Clones share the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Arc<watch::Sender<Vec<String>>>);

impl Failures {
    pub(in crate::sandbox) fn note(&self, why: String) {
        self.0.send_modify(|all| all.push(why));
    }

    /// Returns all failures of agents so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Waits for the first failure of an agent.
    pub(crate) async fn any(&self) {
        // The wait cannot fail, because `self` owns the channel's sender.
        let _ = self.0.subscribe().wait_for(|all| !all.is_empty()).await;
    }
}

/// Restarts an agent after each failure. Returns when the agent ends without a failure.
async fn keep(
    name: String,
    running: Arc<Mutex<sim::Agent>>,
    start: impl Fn() -> anyhow::Result<sim::Agent>,
    stage: Stage,
    failures: Failures,
) {
    loop {
        let ended = running.lock().await.ended();
        let Some(Ended::Failed(why)) = ended.await else { return };
        failures.note(format!("{name} ended by itself: {why}"));
        let (agent, state) = (name.clone(), AgentState::Failed);
        stage.emit(Event::Agent { agent, state, why: Some(why) }).await;
        sleep(RESTART).await;
        let (state, why) = match start() {
            Ok(successor) => {
                *running.lock().await = successor;
                (AgentState::Restarted, None)
            }
            Err(error) => (AgentState::Failed, Some(format!("{error:#}"))),
        };
        stage.emit(Event::Agent { agent: name.clone(), state, why }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_runtime::clock::{Clock, to_jiff};
    use fleetnet_runtime::limits::LeaseTimes;
    use fleetnet_types::Timestamp;
    use k8s_openapi::api::coordination::v1::Lease;
    use kube::Api;
    use kube::api::ListParams;
    use sim::agent::Setup;
    use sim::server::FLEET_SYSTEM;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    async fn holder(leases: &Api<Lease>) -> anyhow::Result<Option<(String, String)>> {
        let lease = leases.list(&ListParams::default()).await?.items.pop();
        Ok(lease.and_then(|lease| Some((lease.metadata.name?, lease.spec?.holder_identity?))))
    }

    /// Waits until the Lease is held by another holder than `other`. Returns the name of the Lease.
    async fn lease_of_other_holder(leases: &Api<Lease>, other: &str) -> anyhow::Result<String> {
        loop {
            if let Some((lease, holder)) = holder(leases).await?
                && holder != other
            {
                return Ok(lease);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    #[test]
    fn an_agent_that_ends_is_reported_and_another_starts_in_its_place() -> anyhow::Result<()> {
        sim::paused(async {
            let clock = Clock::virtual_at(Timestamp::from_seconds(1_800_000_000));
            let now = clock.clone();
            let options = memkube::Options::new(Arc::new(move || to_jiff(now.now())), 1);
            let server = sim::Server::start("hub", options).await?;
            let (stage, mut events) = Stage::recorded();
            let failures = Failures::default();
            let cluster = Arc::new(server.cluster("hub", "hub-agent"));
            let starts = Arc::new(AtomicUsize::new(0));
            let start = move || {
                // The first one ends at once, because its settings contradict each other.
                let is_first = starts.fetch_add(1, Ordering::Relaxed) == 0;
                let duration = if is_first { Duration::ZERO } else { LeaseTimes::default().duration };
                let lease = LeaseTimes { duration, ..LeaseTimes::default() };
                sim::agent::of_hub(
                    Arc::clone(&cluster),
                    Setup { clock: clock.clone(), lease, ..Setup::usual("hub-agent") },
                )
            };
            let agent = Agent::keep(start, stage, failures.clone())?;
            for expected in [AgentState::Failed, AgentState::Restarted] {
                let Some(Event::Agent { agent, state, .. }) = events.next().await else {
                    panic!("no event is emitted")
                };
                assert_eq!((agent.as_str(), state), ("hub-agent", expected));
            }
            let why = "hub-agent ended by itself: leader election is not possible";
            assert!(failures.all()[0].starts_with(why), "{failures:?}");
            let leases: Api<Lease> = Api::namespaced(server.admin(), FLEET_SYSTEM);
            lease_of_other_holder(&leases, "").await?;
            agent.stop().await;
            Ok(())
        })
    }
}
