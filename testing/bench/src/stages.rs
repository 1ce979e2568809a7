//! Time of each step of a change: as watches observed it, and as each agent measured it.

use crate::baseline::Passed;
use crate::environment::{Role, Scrape};
use crate::exposition::Summary;
use crate::quantiles::Quantiles;
use serde::Serialize;
use std::collections::BTreeMap;

/// Time of each step of the measured changes.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    /// Durations of the steps of changes that the agents distribute.
    pub agents: Hops,
    /// Durations of the steps of the same changes, made by the bench without agents.
    pub baseline: Hops,
    /// Times that each agent measured itself.
    pub own: BTreeMap<Role, Own>,
}

/// Durations of the steps of a change, from the user's patch to the imported slice. Each step ends when a watch of the
/// bench shows its result.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Hops {
    /// Time from the user's patch until the source slice is observed in the exporter.
    pub change: Quantiles,
    /// Time from the observation of the source slice until the EndpointSliceExport is observed in the hub.
    pub export: Quantiles,
    /// Time from the observation of the EndpointSliceExport until the EndpointSliceImport is observed in the hub.
    pub distribute: Quantiles,
    /// Time from the observation of the EndpointSliceImport until the imported slice is observed in the importer.
    pub import: Quantiles,
}

/// Times that an agent measured itself, from its histograms.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Own {
    /// Time to decode one watch event.
    pub decode: Summary,
    /// Time to store one watch event in the agent's view.
    pub view: Summary,
    /// Time to plan one key.
    pub plan: Summary,
    /// Processor time that the agent spent on decoding, storing and planning for one change. Only changes that caused a
    /// write count.
    pub share: Summary,
    /// Time from a decoded event to the start of the resulting write, including all waiting.
    pub reaction: Summary,
    /// Time from the start of a write to its response. Most of this time is the server's.
    pub write: Summary,
    /// Processor time of the whole process for one change, including TLS, HTTP and writes. The agent also receives the
    /// watch events of the baseline's changes, so this time includes them.
    pub processor_microseconds: f64,
}

/// Computes the time of each step from the observed samples and the agents' scrapes.
#[must_use]
pub fn of(
    agents: &[Passed],
    baseline: &[Passed],
    before: &BTreeMap<Role, Scrape>,
    after: &BTreeMap<Role, Scrape>,
) -> Stages {
    let own = before.iter().filter_map(|(role, before)| Some((*role, own(before, after.get(role)?, agents.len()))));
    let own = own.collect();
    Stages { agents: hops(agents), baseline: hops(baseline), own }
}

fn hops(passed: &[Passed]) -> Hops {
    let of = |hop: fn(&Passed) -> std::time::Duration| Quantiles::of(passed.iter().map(hop).collect());
    Hops {
        change: of(|it| it.changed - it.sent),
        export: of(|it| it.exported - it.changed),
        distribute: of(|it| it.distributed - it.exported),
        import: of(|it| it.imported - it.distributed),
    }
}

fn own(before: &Scrape, after: &Scrape, changes: usize) -> Own {
    let of = |name: &str| after.metrics.since(&before.metrics, &format!("fleetnet_{name}_duration_seconds"));
    #[allow(clippy::cast_precision_loss, reason = "some thousands")]
    let processor = (after.processor - before.processor).as_secs_f64() * 1e6 / changes.max(1) as f64;
    Own {
        decode: of("decode"),
        view: of("view"),
        plan: of("plan"),
        share: of("own_share"),
        reaction: of("reaction"),
        write: of("write"),
        processor_microseconds: (processor * 10.0).round() / 10.0,
    }
}
