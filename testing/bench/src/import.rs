//! Measurement of a first import: all Services are exported and imported at once, by the agents and by the baseline.

use crate::baseline::Baseline;
use crate::environment::{Environment, Memory, Role};
use crate::follow::Follow;
use crate::limits::IMPORT;
use crate::quantiles::ratio;
use crate::size::Size;
use crate::users::Users;
use crate::world::Kind;
use anyhow::Context as _;
use futures::future::{try_join, try_join_all};
use harness::audit::{FleetLedger, Ledger};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

/// Results of a first import.
#[derive(Clone, Debug, Serialize)]
pub struct Import {
    /// Time of the import by the agents, from the user's first write until watches showed all slices in the importer.
    pub agents_seconds: f64,
    /// Time of the same import by the baseline.
    pub baseline_seconds: f64,
    /// Time of the agents divided by the time of the baseline.
    pub ratio: f64,
    /// Numbers of writes until the agents settled.
    pub writes: Writes,
    /// Memory of each agent after the import.
    pub memory: BTreeMap<Role, Memory>,
}

/// Numbers of writes in all clusters, from the audit logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Writes {
    /// Number of writes by users.
    pub users: usize,
    /// Number of writes by agents, without Events and Leases. Includes failed writes.
    pub agents: usize,
    /// Number of writes by agents that failed (status 400 and above).
    pub agents_refused: usize,
    pub events: usize,
    /// Number of writes of Leases by agents.
    pub leases: usize,
    /// Number of writes by the baseline, in place of users and agents.
    pub baseline: usize,
}

/// Measures an import by the agents, and then an import by the baseline. Returns the results, and the baseline with its
/// imported objects.
pub async fn measure(
    environment: &Environment,
    users: &Arc<Users>,
    size: Size,
) -> anyhow::Result<(Import, Arc<Baseline>)> {
    let (agents_seconds, ledger) = by_agents(environment, users, size).await?;
    let memory = environment.memory()?;
    let baseline = Baseline::prepare(environment, users, size).await?;
    let begun = Instant::now();
    timeout(IMPORT, baseline.import_all()).await.context("the import of the baseline does not end")??;
    let baseline_seconds = begun.elapsed().as_secs_f64();
    let writes = Writes { baseline: baseline.users.writes(), ..count(&ledger, users.writes()) };
    let import =
        Import { agents_seconds, baseline_seconds, ratio: ratio(agents_seconds, baseline_seconds), writes, memory };
    Ok((import, baseline))
}

async fn by_agents(environment: &Environment, users: &Arc<Users>, size: Size) -> anyhow::Result<(f64, FleetLedger)> {
    let path = users.world.collection(Kind::ImportedSlice);
    let imported = Follow::start(users.client(Kind::ImportedSlice), &path).await?;
    let mark = environment.mark().await?;
    let begun = Instant::now();
    let write = |number| {
        let users = Arc::clone(users);
        async move { tokio::spawn(async move { users.export_and_import(number, size).await }).await? }
    };
    let written = try_join_all((0..size.services).map(write));
    let seen = try_join_all((0..size.all_slices()).map(|marker| imported.marker(marker)));
    let both = timeout(IMPORT, try_join(written, seen))
        .await
        .with_context(|| format!("not all slices were imported in {IMPORT:?}\n{}", harness::agent::tails()))?;
    let last = both?.1.into_iter().max().context("there is at least one slice")?;
    Ok(((last - begun).as_secs_f64(), environment.settled_since(&mark).await?))
}

fn count(ledger: &FleetLedger, users: usize) -> Writes {
    let sum = |of: fn(&Ledger) -> usize| ledger.clusters().map(of).sum();
    Writes {
        users,
        agents: sum(|it| it.of_agents().objects().count()),
        agents_refused: sum(|it| it.of_agents().objects().filter(|entry| entry.status >= 400).count()),
        events: sum(|it| it.of_agents().events().count()),
        leases: sum(|it| it.of_agents().leases().count()),
        baseline: 0,
    }
}
