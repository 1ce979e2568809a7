//! Changes for one importer on real control planes, first with objects alone and then with a slice stream. The baseline
//! makes the three writes of a change with objects, in turns with the agents.

use super::Size;
use super::certificate::Certificate;
use crate::baseline::Baseline;
use crate::churn::{Changes, Load, in_turns};
use crate::environment::{Environment, Memory, Role};
use crate::import;
use crate::quantiles::Compared;
use crate::size;
use crate::users::Users;
use crate::world::World;
use harness::fleet::manifests;
use hub_agent::OBJECT_LAG;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Number of Services, each with one slice.
const SERVICES: u32 = 10; // no limit: it is the size of a measurement

/// Changes at one rate, of one slice or of all slices in turn.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub has_stream: bool,
    /// Changes per second.
    pub rate: u32,
    /// Number of slices that change in turn.
    pub slices: u32,
    pub changes: usize,
    /// Number of changes that the importer never showed, because a later change of the same slice replaced them.
    pub overtaken: usize,
    /// Time from the user's patch until the watch shows the imported slice.
    #[serde(flatten)]
    pub times: Compared,
    /// Number of writes in the hub for each change.
    pub hub_writes_per_change: f64,
    /// Memory of each agent after the changes.
    pub memory: BTreeMap<Role, Memory>,
}

/// State of the measurement.
struct Measurement {
    environment: Environment,
    changes: Arc<Changes>,
    baseline: Arc<Baseline>,
    next_marker: u32,
}

/// Measures changes without and with a stream.
pub async fn measure(size: &Size) -> anyhow::Result<Vec<Change>> {
    let environment = Environment::take().await?;
    manifests::apply(&environment.fleet.hub, manifests::SLICE_STREAM).await?;
    let users = Users::of(&environment, World::of_agents(&environment)).await?;
    let world = size::Size { services: SERVICES, slices: 1, endpoints: size.endpoints, ..size::SMOKE };
    let (_, baseline) = import::measure(&environment, &users, world).await?;
    let changes = Changes::watch(&users, world).await?;
    let certificate = Certificate::make()?;
    let mut measured = Vec::new();
    let mut measurement = Measurement { environment, changes, baseline, next_marker: SERVICES };
    for has_stream in [false, true] {
        // Both ways begin with new processes.
        let environment = &mut measurement.environment;
        environment.stop_agents().await?;
        if has_stream {
            environment.start_agents_with_streams(&certificate).await?;
        } else {
            environment.start_agents().await?;
        }
        let loads = size.rates.iter().map(|rate| (*rate, 1)).chain(size.rates.last().map(|rate| (*rate, SERVICES)));
        for (rate, slices) in loads {
            measured.push(measurement.change(has_stream, rate, slices, size.seconds).await?);
        }
    }
    Ok(measured)
}

impl Measurement {
    /// Makes changes at a steady rate, in turns with the baseline.
    async fn change(&mut self, has_stream: bool, rate: u32, slices: u32, seconds: u32) -> anyhow::Result<Change> {
        let mark = self.environment.mark().await?;
        let markers = self.next_marker..self.next_marker + rate * seconds;
        self.next_marker = markers.end;
        let imported = |slice, marker| {
            let changes = Arc::clone(&self.changes);
            async move { changes.imported(slice, marker).await }
        };
        let made = in_turns(imported, &self.baseline, Load { rate, slices, markers }).await?;
        let changes = made.len();
        let agents: Vec<Duration> = made.iter().filter_map(|(agents, _)| *agents).collect();
        let baseline = made.iter().map(|(_, passed)| passed.imported - passed.sent).collect();
        if has_stream {
            sleep(OBJECT_LAG).await;
        }
        let ledger = self.environment.settled_since(&mark).await?;
        let writes = ledger.hub.of_agents().objects().count();
        let overtaken = changes - agents.len();
        #[allow(clippy::cast_precision_loss, reason = "some thousands")]
        let hub_writes_per_change = writes as f64 / changes as f64;
        Ok(Change {
            has_stream,
            rate,
            slices,
            changes,
            overtaken,
            times: Compared::of(agents, baseline),
            hub_writes_per_change,
            memory: self.environment.memory()?,
        })
    }
}
