//! Fleet for the tests of bad responses. A test sets faults, and checks the state of the fleet at the end.

use super::faults::ServerFaults;
use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use fleetnet_runtime::limits::LeaseTimes;
use harness::audit::Ledger;
use harness::user::{Consume, addresses_of};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use memkube::Verb;
use parking_lot::Mutex;
use scenarios::environment::{Backend as _, Environment};
use scenarios::snapshot::{Snapshot, differences, take_snapshot};
use sim::fleet::Place;
use sim::server::FLEET_SYSTEM;
use sim::{Fleet, Options, Server};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tracing_subscriber::fmt::MakeWriter;

/// Endpoints of the exporter's slice before and after the change that a test makes.
pub(crate) const BEFORE: [&str; 1] = ["10.1.0.1"];
pub(crate) const AFTER: [&str; 2] = ["10.1.0.2", "10.1.0.3"];
/// Default duration of a fault.
pub(crate) const FAULT_DURATION: Duration = Duration::from_secs(300);
/// Duration that is longer than the longest delay (30 s) between retries, except retries of denied and rejected writes.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// Duration that is longer than the longest back-off after 403 and 404, which is 5 minutes.
pub(crate) const LONGEST_BACK_OFF: Duration = Duration::from_secs(310);
/// Time without writes that proves that the fleet has settled.
const QUIET: Duration = Duration::from_secs(90);

/// State that a fleet reaches without faults, for comparison.
static WITHOUT_FAULTS: LazyLock<Snapshot> = LazyLock::new(|| {
    let snapshot = sim::paused(async {
        let mut trial = Trial::new(rare_leases(), Log::default()).await?;
        trial.start_agents().await?;
        trial.act().await?;
        sleep(SOON).await;
        take_snapshot(&trial.env).await
    });
    snapshot.expect("there are no faults")
});

/// Fleet of an exporter and an importer, with faults.
pub(crate) struct Trial {
    pub(crate) env: Environment<OnMemkube>,
    /// Faults of the hub.
    pub(crate) hub: ServerFaults,
    /// Faults of the exporter's API server.
    pub(crate) exporter: ServerFaults,
    /// Faults of the importer's API server.
    pub(crate) importer: ServerFaults,
    /// Log of all agents.
    pub(crate) log: Log,
    /// Derived Service before the faults.
    derived: Option<Service>,
}

/// Returns long durations of leader election. These tests do not test leader election, and renewals of Leases would be
/// most of their requests.
fn rare_leases() -> LeaseTimes {
    let [duration, renew_deadline, retry_period] = [150, 100, 20].map(Duration::from_secs);
    LeaseTimes { duration, renew_deadline, retry_period }
}

/// Runs a test on a fleet whose agents do not run yet.
pub(crate) fn run(test: impl AsyncFnOnce(&mut Trial) -> anyhow::Result<()>) -> anyhow::Result<()> {
    run_with(rare_leases(), test)
}

/// Runs a test on a fleet whose agents do not run yet, with these durations of leader election.
pub(crate) fn run_with(
    lease: LeaseTimes,
    test: impl AsyncFnOnce(&mut Trial) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    LazyLock::force(&WITHOUT_FAULTS);
    let log = Log::default();
    let lines = tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(lines);
    sim::paused(async {
        let mut trial = Trial::new(lease, log.clone()).await?;
        test(&mut trial).await.with_context(|| log.tail())
    })
}

/// Runs a test on a settled fleet in which a Service was exported, imported and changed.
pub(crate) fn run_settled(test: impl AsyncFnOnce(&mut Trial) -> anyhow::Result<()>) -> anyhow::Result<()> {
    run(async |trial| {
        trial.settle().await?;
        trial.change().await?;
        trial.env.user(1).sees("app", &AFTER).await?;
        sleep(SOON).await;
        test(trial).await
    })
}

impl Trial {
    async fn new(lease: LeaseTimes, log: Log) -> anyhow::Result<Self> {
        // Writes about silent members would count in these tests. `silence_on_memkube.rs` tests them.
        let fleet = Fleet::new(Options { lease, silence: None, ..Options::members(2) }).await?;
        let [hub, exporter, importer] =
            [&fleet.hub, &fleet.members[0].server, &fleet.members[1].server].map(with_faults);
        let backend = OnMemkube(fleet);
        let namespace = backend.namespace("work").await?;
        let members = backend.members();
        let env = Environment { backend, namespace, members };
        Ok(Self { env, hub, exporter, importer, log, derived: None })
    }

    pub(crate) fn fleet(&mut self) -> &mut Fleet {
        &mut self.env.backend.0
    }

    pub(crate) async fn start_agents(&mut self) -> anyhow::Result<()> {
        self.env.backend.start_agents().await
    }

    /// Starts all agents. Does not wait until they are ready.
    pub(crate) fn launch_agents(&mut self) -> anyhow::Result<()> {
        let fleet = self.fleet();
        fleet.places().try_for_each(|place| fleet.start(place))
    }

    /// Starts all agents, and exports and imports a Service.
    pub(crate) async fn settle(&mut self) -> anyhow::Result<()> {
        self.start_agents().await?;
        self.env.export_and_import(&BEFORE).await?;
        self.derived = Some(self.env.user(1).derived_service("app").await?);
        sleep(Duration::from_secs(5)).await;
        Ok(())
    }

    /// Creates all objects of the users. Does not wait for effects.
    pub(crate) async fn create_objects(&self) -> anyhow::Result<()> {
        let (exporter, importer) = (self.env.user(0), self.env.user(1));
        exporter.export_new("app", &AFTER).await?;
        importer.import("app", "app", Consume::LoadBalancer).await?;
        Ok(())
    }

    /// Exports and imports a Service, and changes its endpoints. Waits until the change arrives.
    async fn act(&self) -> anyhow::Result<()> {
        self.env.export_and_import(&BEFORE).await?;
        self.change().await?;
        self.env.user(1).sees("app", &AFTER).await.map(drop)
    }

    /// Changes the endpoints of the exporter's slice, as a test does during the faults.
    pub(crate) async fn change(&self) -> anyhow::Result<()> {
        self.env.user(0).set_endpoints("app-1", &AFTER).await
    }

    /// Asserts that the import continues: the derived Service is the same object as before, the importer has these
    /// endpoints, and no agent has deleted a Service or slice there.
    pub(crate) async fn nothing_is_lost(&self, addresses: &[&str]) -> anyhow::Result<()> {
        let client = &self.env.members[1].client;
        let services: Api<Service> = Api::namespaced(client.clone(), FLEET_SYSTEM);
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), FLEET_SYSTEM);
        let before = self.derived.as_ref().context("the fleet was settled before")?;
        let now = services.get_opt(&before.name_any()).await?.context("the derived Service is gone")?;
        ensure!(now.uid() == before.uid(), "the derived Service was created again");
        let slices = slices.list(&ListParams::default()).await?;
        let found: BTreeSet<&str> = slices.items.iter().flat_map(addresses_of).collect();
        ensure!(found == addresses.iter().copied().collect(), "imported is {found:?}, not {addresses:?}");
        let server = &self.env.backend.0.members[1].server;
        ensure!(deletions(server).is_empty(), "deleted at the importer: {:?}", deletions(server));
        Ok(())
    }

    /// Asserts that within this time the fleet reaches the same state as a fleet without faults, and that the agents
    /// then make no writes.
    pub(crate) async fn recovers(&self, within: Duration) -> anyhow::Result<()> {
        self.reaches(within, Clone::clone).await?;
        self.is_quiet().await?;
        let wrong = differences(&WITHOUT_FAULTS, &take_snapshot(&self.env).await?);
        ensure!(wrong.is_empty(), "it was right and is not any more:\n{}", wrong.join("\n"));
        Ok(())
    }

    /// Like [`Self::recovers`], but compares only objects in the members. Objects in the hub may have different names.
    pub(crate) async fn recovers_for_users(&self, within: Duration) -> anyhow::Result<()> {
        self.reaches(within, of_users).await?;
        self.is_quiet().await
    }

    async fn reaches(&self, within: Duration, part: fn(&Snapshot) -> Snapshot) -> anyhow::Result<()> {
        let ended = Instant::now();
        loop {
            let wrong = differences(&part(&WITHOUT_FAULTS), &part(&take_snapshot(&self.env).await?));
            if wrong.is_empty() {
                return Ok(());
            }
            ensure!(ended.elapsed() < within, "after {within:?}:\n{}", wrong.join("\n"));
            // Compare rarely, because the comparisons are the largest part of the work of these tests.
            sleep(within / 20).await;
        }
    }

    /// Asserts that agents make no more writes, and that every agent still runs.
    pub(crate) async fn is_quiet(&self) -> anyhow::Result<()> {
        let mark = self.env.backend.mark().await?;
        sleep(QUIET).await;
        let ledger = self.env.backend.since(&mark).await?.objects();
        ensure!(ledger.clusters().map(Ledger::count).sum::<usize>() == 0, "the fleet is not settled:\n{ledger}");
        let fleet = &self.env.backend.0;
        for place in fleet.places() {
            let agent = fleet.agent(place).context("every agent was started")?;
            let ended = futures::FutureExt::now_or_never(agent.ended());
            ensure!(ended.is_none(), "{} has ended: {ended:?}", agent.name());
        }
        Ok(())
    }

    /// Returns the value of the metric with this name, of the agent at this place.
    pub(crate) fn metric(&self, place: Place, name: &str) -> anyhow::Result<f64> {
        let metrics = self.env.backend.0.agent(place).context("the agent runs")?.metrics()?;
        let values = metrics.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        Ok(values.sum())
    }
}

/// Returns only the members' objects of a snapshot.
pub(crate) fn of_users(snapshot: &Snapshot) -> Snapshot {
    let seen = snapshot.iter().filter(|(name, _)| !name.starts_with("hub/"));
    seen.map(|(name, object)| (name.clone(), object.clone())).collect()
}

fn with_faults(server: &Server) -> ServerFaults {
    let faults = ServerFaults::default();
    server.memkube().set_faults(Some(Arc::new(faults.clone())));
    faults
}

/// Returns the Services and slices that agents deleted or tried to delete.
fn deletions(server: &Server) -> Vec<String> {
    let entries = server.memkube().audit().entries.into_iter();
    let deletes = entries.filter(|entry| {
        entry.call.verb == Verb::Delete
            && entry.call.user.name.contains("agent")
            && ["services", "endpointslices"].contains(&&*entry.call.target.resource)
    });
    deletes.map(|entry| format!("{} {}", entry.call.target.resource, entry.call.target.name)).collect()
}

/// Log of all agents of one test.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Returns the number of log lines that contain all of these texts.
    pub(crate) fn lines_with(&self, parts: &[&str]) -> usize {
        let text = String::from_utf8_lossy(&self.0.lock()).into_owned();
        text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }

    /// Checks that a log line contains all of these texts.
    pub(crate) fn has(&self, parts: &[&str]) -> anyhow::Result<()> {
        ensure!(self.lines_with(parts) > 0, "no line of the log has all of {parts:?}");
        Ok(())
    }

    fn tail(&self) -> String {
        let text = String::from_utf8_lossy(&self.0.lock()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        format!("--- the last lines of the agents\n{}", lines[lines.len().saturating_sub(40)..].join("\n"))
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
