//! Where the time of a change goes: the hops, as watches of ours saw them, and each agent's own share, as it told.

use crate::exposition::Summary;
use crate::floor::Passed;
use crate::ground::{Role, Scrape};
use crate::quantiles::Quantiles;
use serde::Serialize;
use std::collections::BTreeMap;

/// Both.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    /// The hops of changes that agents carried.
    pub agents: Hops,
    /// The hops of changes carried by hand.
    pub floor: Hops,
    /// What each agent says of itself.
    pub own: BTreeMap<Role, Own>,
}

/// From the user's patch over each write, as a watch shows it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Hops {
    /// From the user's patch until it is seen in the exporter.
    pub change: Quantiles,
    /// From there until the export is seen in the hub.
    pub export: Quantiles,
    /// From there until the import is seen in the hub.
    pub distribute: Quantiles,
    /// From there until the imported slice is seen in the importer.
    pub import: Quantiles,
}

/// What an agent's histograms say of the time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Own {
    /// Decoding what a watch shows.
    pub decode: Summary,
    /// Taking it into the view.
    pub view: Summary,
    /// Planning a key.
    pub plan: Summary,
    /// Our own share of a change: processor time of those three together, for each change that a write came of.
    pub share: Summary,
    /// From news that are decoded to the start of the write that came of it, with all waiting between.
    pub reaction: Summary,
    /// From the start of a write to its answer; mostly the server's.
    pub write: Summary,
    /// Processor time of the whole process for one change, and for what it sees of one made by hand: also for TLS,
    /// HTTP and writes.
    pub processor_microseconds: f64,
}

/// Sorts samples and scrapes into stages.
#[must_use]
pub fn of(
    agents: &[Passed],
    floor: &[Passed],
    before: &BTreeMap<Role, Scrape>,
    after: &BTreeMap<Role, Scrape>,
) -> Stages {
    let own = before.iter().filter_map(|(role, before)| Some((*role, own(before, after.get(role)?, agents.len()))));
    let own = own.collect();
    Stages { agents: hops(agents), floor: hops(floor), own }
}

fn hops(passed: &[Passed]) -> Hops {
    let of = |hop: fn(&Passed) -> std::time::Duration| Quantiles::of(passed.iter().map(hop).collect());
    Hops {
        change: of(|it| it.changed - it.sent),
        export: of(|it| it.exported - it.changed),
        distribute: of(|it| it.given - it.exported),
        import: of(|it| it.imported - it.given),
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
