//! Measurement of changes of slices at a steady rate. The agents and the baseline distribute the changes in turns.

use crate::baseline::{Baseline, Passed};
use crate::environment::{Environment, Memory, Role, agents_writes};
use crate::follow::Follow;
use crate::limits::CHANGE;
use crate::objects::{ready_endpoints, slice_name};
use crate::quantiles::{Quantiles, ratio};
use crate::size::Size;
use crate::stages::{self, Stages};
use crate::users::Users;
use crate::world::Kind;
use anyhow::Context as _;
use futures::future::join_all;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval, timeout};

/// Results of the measurement of changes.
#[derive(Clone, Debug, Serialize)]
pub struct Churn {
    /// Number of changes by users. The baseline makes the same number of changes.
    pub changes: usize,
    /// Number of changes that the importer never showed, because a later change of the same slice replaced them.
    pub overtaken: usize,
    /// Time from the user's patch until the watch shows the imported slice. For changes that the agents distribute.
    pub agents: Quantiles,
    /// Time from the patch until the watch shows the imported slice. For changes that the baseline distributes.
    pub baseline: Quantiles,
    /// Median time of the agents divided by the median time of the baseline.
    pub p50_ratio: f64,
    /// 99th percentile of the agents' times divided by the 99th percentile of the baseline's times.
    pub p99_ratio: f64,
    /// Number of writes by agents, without Leases and Events.
    pub agents_writes: usize,
    pub events: usize,
    /// Memory of each agent after the changes.
    pub memory: BTreeMap<Role, Memory>,
    /// Duration of each step of a change.
    pub stages: Stages,
}

/// Simulated user that changes slices and watches how the agents distribute the changes.
pub struct Changes {
    users: Arc<Users>,
    size: Size,
    follows: BTreeMap<Kind, Follow>,
}

impl Changes {
    /// Starts the watches of the three clusters.
    pub async fn watch(users: &Arc<Users>, size: Size) -> anyhow::Result<Arc<Self>> {
        let mut follows = BTreeMap::new();
        for kind in [Kind::Slice, Kind::EndpointSliceExport, Kind::EndpointSliceImport, Kind::ImportedSlice] {
            follows.insert(kind, Follow::start(users.client(kind), &users.world.collection(kind)).await?);
        }
        Ok(Arc::new(Self { users: Arc::clone(users), size, follows }))
    }

    /// Changes a slice and waits until the importer shows the change. Returns the time that this took, or `None` as
    /// [`Self::make`].
    pub async fn imported(&self, slice: u32, marker: u32) -> anyhow::Result<Option<Duration>> {
        let sent = self.patch(slice, marker).await?;
        match timeout(CHANGE, self.follows[&Kind::ImportedSlice].marker(marker)).await {
            Ok(imported) => Ok(Some(imported? - sent)),
            Err(_) => Ok(None),
        }
    }

    /// Changes a slice. Returns the time before the change.
    async fn patch(&self, slice: u32, marker: u32) -> anyhow::Result<Instant> {
        let name = slice_name(slice / self.size.slices, slice % self.size.slices);
        let body = json!({"endpoints": ready_endpoints(marker, self.size.endpoints)});
        let sent = Instant::now();
        self.users.patch(Kind::Slice, &name, "", &body).await?;
        Ok(sent)
    }

    /// Changes a slice and waits until the importer shows the change. Returns `None` if the importer does not show it
    /// within the time limit [`CHANGE`], for example because a later change of the slice replaced this change.
    pub async fn make(&self, slice: u32, marker: u32) -> anyhow::Result<Option<Passed>> {
        let sent = self.patch(slice, marker).await?;
        let Ok(imported) = timeout(CHANGE, self.follows[&Kind::ImportedSlice].marker(marker)).await else {
            return Ok(None);
        };
        let imported = imported?;
        let seen = |kind| async move {
            anyhow::Ok(timeout(CHANGE, self.follows[&kind].marker(marker)).await.context("not seen on the way")??)
        };
        let changed = seen(Kind::Slice).await?;
        let exported = seen(Kind::EndpointSliceExport).await?;
        let distributed = seen(Kind::EndpointSliceImport).await?;
        Ok(Some(Passed { sent, changed, exported, distributed, imported }))
    }
}

/// Returns the first marker for changes. A marker is the number in an address that identifies the state of a slice.
/// Lower markers belong to the initial slices.
#[must_use]
pub fn first_marker(size: Size) -> u32 {
    size.all_slices()
}

/// Makes all changes and measures how long they take.
pub async fn measure(
    environment: &Environment,
    users: &Arc<Users>,
    baseline: &Arc<Baseline>,
    size: Size,
) -> anyhow::Result<Churn> {
    let changes = Changes::watch(users, size).await?;
    let mark = environment.mark().await?;
    let before = environment.scrape().await?;
    let passed = in_turns(&changes, baseline, size).await?;
    let after = environment.scrape().await?;
    let memory = environment.memory()?;
    let ledger = environment.settled_since(&mark).await?;
    let by_agents: Vec<Passed> = passed.iter().filter_map(|(agents, _)| *agents).collect();
    let by_baseline: Vec<Passed> = passed.iter().map(|(_, baseline)| *baseline).collect();
    let (agents, baseline_total) = (total(&by_agents), total(&by_baseline));
    Ok(Churn {
        changes: passed.len(),
        overtaken: passed.len() - by_agents.len(),
        agents,
        baseline: baseline_total,
        p50_ratio: ratio(agents.p50_milliseconds, baseline_total.p50_milliseconds),
        p99_ratio: ratio(agents.p99_milliseconds, baseline_total.p99_milliseconds),
        agents_writes: agents_writes(&ledger),
        events: ledger.clusters().map(|it| it.of_agents().events().count()).sum(),
        memory,
        stages: stages::of(&by_agents, &by_baseline, &before, &after),
    })
}

/// Makes changes at a steady rate, alternately by users for the agents and by the baseline. So agents and baseline have
/// the same load. Returns the times of each pair of changes: the agents' times, which are `None` if the importer did
/// not show the change, and the baseline's times.
async fn in_turns(
    changes: &Arc<Changes>,
    baseline: &Arc<Baseline>,
    size: Size,
) -> anyhow::Result<Vec<(Option<Passed>, Passed)>> {
    let one = |index: u32| {
        let (slice, marker) = (index % size.all_slices(), first_marker(size) + index);
        let (changes, baseline) = (Arc::clone(changes), Arc::clone(baseline));
        (async move { changes.make(slice, marker).await }, async move { baseline.change(slice, marker).await })
    };
    if size.rate == 0 {
        let mut passed = Vec::new();
        for index in 0..size.changes() {
            let (by_agents, by_baseline) = one(index);
            passed.push((by_agents.await?, by_baseline.await?));
        }
        return Ok(passed);
    }
    let mut ticks = interval(Duration::from_secs(1) / (2 * size.rate));
    let mut made = Vec::new();
    for index in 0..size.changes() {
        let (by_agents, by_baseline) = one(index);
        ticks.tick().await;
        let by_agents = tokio::spawn(by_agents);
        ticks.tick().await;
        made.push((by_agents, tokio::spawn(by_baseline)));
    }
    let ends =
        made.into_iter().map(async |(by_agents, by_baseline)| anyhow::Ok((by_agents.await??, by_baseline.await??)));
    join_all(ends).await.into_iter().collect()
}

fn total(passed: &[Passed]) -> Quantiles {
    Quantiles::of(passed.iter().map(|it| it.imported - it.sent).collect())
}
