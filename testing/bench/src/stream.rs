//! Measurement of the slice stream: what it saves, and what it costs.
//!
//! ```text
//! change (one importer): real control planes and agents, without and with a stream, each beside the baseline
//! fan_out (many importers): hub agent as a process, hub in memory, streams of the bench (subscribers) in place of member agents
//! certificate (of the hub agent)
//! ```

pub mod certificate;
pub mod change;
pub mod fan_out;
mod size;
pub mod subscribers;

pub use size::Size;

use crate::report::{self, Target, target};
use change::Change;
use fan_out::FanOut;
use serde::Serialize;

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub changes: Vec<Change>,
    pub fan_outs: Vec<FanOut>,
}

pub type Report = report::Report<Size, Figures>;

/// Measures changes for one importer on real control planes, and then for many importers on servers in memory.
pub async fn measure(size: &Size) -> anyhow::Result<Report> {
    let changes = change::measure(size).await?;
    let mut fan_outs = Vec::new();
    for importers in size.importers.iter().copied() {
        eprintln!("{importers} importers");
        fan_outs.push(fan_out::measure(importers, size).await?);
    }
    let targets = targets(size, &changes, &fan_outs);
    Ok(Report::new(size.clone(), Figures { changes, fan_outs }, targets))
}

fn targets(size: &Size, changes: &[Change], fan_outs: &[FanOut]) -> Vec<Target> {
    let Some(rate) = size.rates.last().copied() else { return Vec::new() };
    let mut targets = Vec::new();
    for it in changes.iter().filter(|it| it.has_stream && it.rate == rate) {
        let what = if it.slices == 1 { "one slice".to_owned() } else { format!("{} slices", it.slices) };
        targets.push(target(&format!("{rate} changes/s of {what}, p50, times the baseline"), 0.9, it.times.p50_ratio));
        targets.push(target(&format!("{rate} changes/s of {what}, p99, times the baseline"), 1.0, it.times.p99_ratio));
        if it.slices == 1 {
            targets.push(target(
                &format!("{rate} changes/s, writes a change, 1 importer"),
                1.02,
                it.hub_writes_per_change,
            ));
        }
    }
    for of in fan_outs {
        let writes = of.streams.iter().filter(|it| it.rate == rate).map(|it| it.hub_writes_per_change);
        let name = format!("{rate} changes/s, writes a change, {} importers", of.importers);
        targets.extend(writes.map(|writes| target(&name, 1.0 + f64::from(of.importers) / 50.0, writes)));
    }
    if let Some(of) = fan_outs.last() {
        let more = of.memory_of_streams.resident_mib - of.memory_of_objects.resident_mib;
        targets.push(target(&format!("memory of {} streams in the hub agent, MiB", of.importers), 32.0, more));
    }
    targets
}
