//! Measurement of restarts of all agents after an import.

use crate::churn::{Changes, first_marker};
use crate::environment::{Environment, agents_writes};
use crate::quantiles::Quantiles;
use crate::size::Size;
use crate::users::Users;
use anyhow::Context as _;
use serde::Serialize;
use std::sync::Arc;

/// Results of the measured restarts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Restart {
    /// Number of writes by agents after a restart in which users changed nothing. Leases and Events do not count.
    pub writes: usize,
    /// Number of restarts with a change. The user makes the change as soon as the old agents have released the Leases.
    pub restarts: u32,
    /// Time from the end of the old agents until the importer shows the user's change. Includes the start of the new
    /// processes.
    pub fresh_change: Quantiles,
    /// Number of writes by agents in all restarts with a change. Leases and Events do not count.
    pub writes_with_changes: usize,
}

/// Measures restarts of all agents: one restart without a change, and then `size.restarts` restarts with one change
/// each.
pub async fn measure(environment: &mut Environment, users: &Arc<Users>, size: Size) -> anyhow::Result<Restart> {
    let mark = environment.mark().await?;
    environment.stop_agents().await?;
    environment.start_agents().await?;
    let writes = agents_writes(&environment.settled_since(&mark).await?);

    let changes = Changes::watch(users, size).await?;
    let mark = environment.mark().await?;
    let mut samples = Vec::new();
    for restart in 0..size.restarts {
        let free = environment.stop_agents().await?;
        let marker = first_marker(size) + size.changes() + restart;
        let made = {
            let changes = Arc::clone(&changes);
            tokio::spawn(async move { changes.make(restart % size.all_slices(), marker).await })
        };
        environment.start_agents().await?;
        let passed = made.await??.context("a change after a restart was not imported")?;
        samples.push(passed.imported - free);
    }
    let writes_with_changes = agents_writes(&environment.settled_since(&mark).await?);
    Ok(Restart { writes, restarts: size.restarts, fresh_change: Quantiles::of(samples), writes_with_changes })
}
