//! Soak: a fleet with two replicas of each agent runs for a long time. Users change slices at a steady rate, and faults
//! occur at random. At the end, each importer must have what the exporters have, and the agents must be silent.

mod replicas;
mod services;
mod size;
mod trouble;
mod usage;

pub use size::{SMOKE, Size};

use crate::environment::{agents_writes, settled};
use crate::limits::{SETTLED, SILENCE};
use crate::report::{self, Target, target};
use anyhow::Context as _;
use fastrand::Rng;
use harness::fleet::Fleet;
use replicas::Replicas;
use serde::Serialize;
use services::Services;
use std::collections::BTreeMap;
use std::sync::Arc;
use trouble::Trouble;
use usage::{Usage, measure};

/// Results of the soak.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Number of changes of slices.
    pub changes: u32,
    /// Number of faults of each kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// Number of writes by agents, without Leases, heartbeats and Events, by the status of the response.
    pub writes: BTreeMap<u16, usize>,
    /// Largest use of resources by one process of each agent.
    pub most: BTreeMap<String, Usage>,
    /// Largest use of resources by one process of each agent after the time of silence.
    pub at_rest: BTreeMap<String, Usage>,
    /// Slices that an importer does not have as the exporter has them.
    pub different: Vec<String>,
    /// Writes by agents, without Leases, heartbeats and Events, in a time of silence at the end.
    pub late_writes: Vec<String>,
}

pub type Report = report::Report<Size, Figures>;

/// Runs the soak on a fleet of two members.
///
/// # Errors
/// If control planes or agents do not start, a user's request fails, or an agent ends without a cause.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let fleet = Arc::new(Fleet::take(2).await?);
    let mut replicas = Replicas::start(&fleet).await?;
    let services = Arc::new(Services::create(&fleet, size).await?);
    services.arrived().await.context("before all faults")?;
    let mark = fleet.mark().await?;

    let mut rng = Rng::with_seed(size.seed);
    let users = tokio::spawn(Arc::clone(&services).change(size, rng.fork()));
    let mut trouble = Trouble::new(size, rng);
    let (mut most, mut at_rest) = (BTreeMap::new(), BTreeMap::new());
    while trouble.goes_on() {
        trouble.one(&fleet, &mut replicas).await.context("while faults occur")?;
        measure(&replicas, &mut most).await?;
    }
    services.stop();
    let changes = users.await.context("the users do not panic")??;
    replicas.all_run().await?;
    services.arrived().await.context("after all faults")?;
    settled(SETTLED, async || fleet.since(&mark).await, agents_writes).await?;

    let silent = fleet.mark().await?;
    tokio::time::sleep(if size.seconds == 0 { crate::limits::QUIET } else { SILENCE }).await;
    measure(&replicas, &mut at_rest).await?;
    let late = fleet.since(&silent).await?.objects();
    let late_writes = late.clusters().flat_map(|ledger| ledger.of_agents().0).map(|entry| format!("{entry:?}"));
    let late_writes: Vec<String> = late_writes.collect();
    let mut writes: BTreeMap<u16, usize> = BTreeMap::new();
    for entry in fleet.since(&mark).await?.objects().clusters().flat_map(|ledger| ledger.of_agents().0) {
        *writes.entry(entry.status).or_default() += 1;
    }
    let different = services.different().await?;
    let figures = Figures { changes, faults: trouble.counts, writes, most, at_rest, different, late_writes };
    let targets = targets(size, &figures);
    Ok(Report::new(size, figures, targets))
}

fn targets(size: Size, figures: &Figures) -> Vec<Target> {
    let Figures { changes, writes, most, different, late_writes, .. } = figures;
    let changes = *changes;
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let all = most.values().fold(Usage::default(), |mut all, used| {
        all.include(*used);
        all
    });
    let expected = f64::from(size.seconds.saturating_mul(size.rate).max(1));
    vec![
        target("changes that users did not make in time, %", 10.0, 100.0 * (1.0 - f64::from(changes) / expected)),
        target("slices that differ at the end", 0.0, number(different.len())),
        target("writes of agents in the silence at the end", 0.0, number(late_writes.len())),
        // One for the export, one for the import in the hub, one for the imported slice.
        target("writes of agents for each change", 3.0, number(writes.values().sum()) / f64::from(changes.max(1))),
        target("resident memory of an agent, MiB", 64.0, all.resident_mib),
        // Cuts leave half-open connections beside the new ones for a while.
        target("open files of an agent", 200.0, number(all.files)),
        target("tasks of an agent", 400.0, number(all.tasks)),
    ]
}
