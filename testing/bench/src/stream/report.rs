//! Results of the measurement, compared with targets.

use super::Size;
use super::change::Change;
use super::fan_out::FanOut;
use crate::report::{Target, processors, target};
use serde::Serialize;
use std::fmt::Write as _;

/// Results of all measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub size: Size,
    /// Number of processors that agents, servers and the bench share.
    pub processors: usize,
    /// True if the agents are optimized builds.
    pub optimized: bool,
    pub changes: Vec<Change>,
    pub fan_outs: Vec<FanOut>,
    /// Results compared with their targets.
    pub targets: Vec<Target>,
}

impl Report {
    /// Builds the report and compares the results with their targets.
    #[must_use]
    pub fn new(size: &Size, changes: Vec<Change>, fan_outs: Vec<FanOut>) -> Self {
        let processors = processors();
        let targets = targets(size, &changes, &fan_outs);
        Self { size: size.clone(), processors, optimized: !cfg!(debug_assertions), changes, fan_outs, targets }
    }

    /// Returns two tables in Markdown: changes for one importer, and for many importers.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| changes a second | slices | stream | overtaken | agents, ms: p50 / p99 | baseline, ms: p50 / p99 | ratio: p50 / p99 | \
             writes in the hub, a change |\n|---|---|---|---|---|---|---|---|\n",
        );
        for Change { has_stream, rate, slices, overtaken, agents, baseline, hub_writes_per_change, .. } in &self.changes
        {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {rate} | {slices} | {} | {overtaken} | {:.1} / {:.1} | {:.1} / {:.1} | {:.2} / {:.2} | {hub_writes_per_change:.2} |",
                if *has_stream { "yes" } else { "no" },
                agents.p50_milliseconds,
                agents.p99_milliseconds,
                baseline.p50_milliseconds,
                baseline.p99_milliseconds,
                agents.p50_milliseconds / baseline.p50_milliseconds,
                agents.p99_milliseconds / baseline.p99_milliseconds,
            );
        }
        text.push_str(
            "\n| importers | changes a second | stream | overtaken | arrived, ms: p50 / p99 | writes in the hub, a change | hub agent, \
             µs an arrival | hub agent, MiB |\n|---|---|---|---|---|---|---|---|\n",
        );
        for of in &self.fan_outs {
            let ways = [("no", &of.objects, of.memory_of_objects), ("yes", &of.streams, of.memory_of_streams)];
            for (stream, changes, memory) in ways {
                for it in changes {
                    let _ = writeln!(
                        text,
                        "| {} | {} | {stream} | {} | {:.1} / {:.1} | {:.2} | {:.0} | {:.1} |",
                        of.importers,
                        it.rate,
                        it.overtaken,
                        it.arrived.p50_milliseconds,
                        it.arrived.p99_milliseconds,
                        it.hub_writes_per_change,
                        it.hub_microseconds_per_arrival,
                        memory.resident_mib,
                    );
                }
            }
        }
        text
    }
}

fn targets(size: &Size, changes: &[Change], fan_outs: &[FanOut]) -> Vec<Target> {
    let Some(rate) = size.rates.last().copied() else { return Vec::new() };
    let mut targets = Vec::new();
    for it in changes.iter().filter(|it| it.has_stream && it.rate == rate) {
        let what = if it.slices == 1 { "one slice".to_owned() } else { format!("{} slices", it.slices) };
        targets.push(target(&format!("{rate} changes/s of {what}, p50, times the baseline"), 0.9, it.p50_ratio));
        targets.push(target(&format!("{rate} changes/s of {what}, p99, times the baseline"), 1.0, it.p99_ratio));
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
