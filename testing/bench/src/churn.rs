//! Measurement of changes of slices at a steady rate. The agents and the baseline distribute the changes in turns.

use crate::baseline::{Baseline, Passed};
use crate::environment::{Environment, Memory, Role, agents_writes};
use crate::follow::Follow;
use crate::limits::CHANGE;
use crate::objects::{ready_endpoints, slice_name};
use crate::quantiles::Compared;
use crate::size::Size;
use crate::stages::{self, Stages};
use crate::users::Users;
use crate::world::Kind;
use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;
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
    /// Time from the user's patch until the watch shows the imported slice.
    #[serde(flatten)]
    pub times: Compared,
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
    let first = first_marker(size);
    let load = Load { rate: size.rate, slices: size.all_slices(), markers: first..first + size.changes() };
    let make = |slice, marker| {
        let changes = Arc::clone(&changes);
        async move { changes.make(slice, marker).await }
    };
    let passed = in_turns(make, baseline, load).await?;
    let after = environment.scrape().await?;
    let memory = environment.memory()?;
    let ledger = environment.settled_since(&mark).await?;
    let by_agents: Vec<Passed> = passed.iter().filter_map(|(agents, _)| *agents).collect();
    let by_baseline: Vec<Passed> = passed.iter().map(|(_, baseline)| *baseline).collect();
    Ok(Churn {
        changes: passed.len(),
        overtaken: passed.len() - by_agents.len(),
        times: Compared::of(total(&by_agents), total(&by_baseline)),
        agents_writes: agents_writes(&ledger),
        events: ledger.clusters().map(|it| it.of_agents().events().count()).sum(),
        memory,
        stages: stages::of(&by_agents, &by_baseline, &before, &after),
    })
}

/// Changes to make.
#[derive(Clone, Debug)]
pub struct Load {
    /// Changes per second; 0: one after the other.
    pub rate: u32,
    /// Number of slices that change in turn.
    pub slices: u32,
    /// Marker of each change.
    pub markers: Range<u32>,
}

/// Makes changes at a steady rate, alternately by users for the agents and by the baseline. So agents and baseline have
/// the same load. `by_agents` makes the change of a slice to a marker. Returns its result and the baseline's times for
/// each change.
pub async fn in_turns<T, F>(
    by_agents: impl Fn(u32, u32) -> F,
    baseline: &Arc<Baseline>,
    Load { rate, slices, markers }: Load,
) -> anyhow::Result<Vec<(T, Passed)>>
where
    T: Send + 'static,
    F: Future<Output = anyhow::Result<T>> + Send + 'static,
{
    let by_baseline = |slice, marker| {
        let baseline = Arc::clone(baseline);
        async move { baseline.change(slice, marker).await }
    };
    let changes =
        markers.enumerate().map(|(index, marker)| (u32::try_from(index).unwrap_or(u32::MAX) % slices, marker));
    let mut passed = Vec::new();
    if rate == 0 {
        for (slice, marker) in changes {
            passed.push((by_agents(slice, marker).await?, by_baseline(slice, marker).await?));
        }
        return Ok(passed);
    }
    let mut ticks = interval(Duration::from_secs(1) / (2 * rate));
    let mut made = Vec::new();
    for (slice, marker) in changes {
        ticks.tick().await;
        let by_agents = tokio::spawn(by_agents(slice, marker));
        ticks.tick().await;
        made.push((by_agents, tokio::spawn(by_baseline(slice, marker))));
    }
    for (by_agents, by_baseline) in made {
        passed.push((by_agents.await??, by_baseline.await??));
    }
    Ok(passed)
}

fn total(passed: &[Passed]) -> Vec<Duration> {
    passed.iter().map(|it| it.imported - it.sent).collect()
}
