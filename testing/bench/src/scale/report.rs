//! Results of all scenarios, compared with targets.

use super::scenario::{Api, Scenario};
use super::size::Size;
use super::steps::{Changes, Measured};
use crate::report::{Target, processors, target};
use serde::Serialize;
use std::fmt::Write as _;

/// Fleet that the targets are for.
const TARGET: Scenario = Scenario { api: Api::Fleet, members: 100, services: 1000, importers: 10, shared: 0 };
/// Endpoints of each slice in the fleet that the targets are for.
const TARGET_ENDPOINTS: usize = 100;

/// Results of all scenarios.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub size: Size,
    /// Number of processors that agents, servers and the bench share.
    pub processors: usize,
    /// True if the agents are optimized builds.
    pub optimized: bool,
    pub scenarios: Vec<Measured>,
    /// Results compared with their targets. Empty if the fleet of the targets was not measured.
    pub targets: Vec<Target>,
}

impl Report {
    /// Builds the report and compares the results with their targets.
    #[must_use]
    pub fn new(size: &Size, scenarios: Vec<Measured>) -> Self {
        let processors = processors();
        let targets = if size.endpoints == TARGET_ENDPOINTS { targets(&scenarios) } else { Vec::new() };
        Self { size: size.clone(), processors, optimized: !cfg!(debug_assertions), scenarios, targets }
    }

    /// Returns three tables in Markdown: the first distribution with memory and restarts, the changes, and the
    /// heartbeats.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| members | importers | copies | first distribution, s | hub agent, µs a copy | `/healthz`, longest, ms | hub agent, \
             MiB | member agent, MiB | hub agent ready, s | fresh change, s | member agent ready, s | fresh change, s |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for of in &self.scenarios {
            let (first, hub, member) = (&of.first, &of.hub_restart, &of.member_restart);
            let figures = [
                first.seconds,
                first.hub_microseconds_per_copy,
                first.healthz_longest_milliseconds,
                of.hub_memory.resident_mib,
                of.member_memory.resident_mib,
                hub.ready_seconds,
                hub.fresh_change_seconds,
                member.ready_seconds,
                member.fresh_change_seconds,
            ];
            let figures = figures.map(|figure| format!("{figure:.2}")).join(" | ");
            line(&mut text, &of.scenario, &format!("{} | {figures}", first.copies));
        }
        text.push_str(
            "\n| members | importers | changes a second | copies | overtaken | a copy, ms: p50 / p99 | the imported slice, ms: \
             p50 / p99 | hub agent, µs a copy | member agent, µs a slice |\n|---|---|---|---|---|---|---|---|---|\n",
        );
        for (scenario, changes) in self.all_changes() {
            line(&mut text, scenario, &changes_line(changes));
        }
        text.push_str("\n| members | importers | hub agent, µs a heartbeat | writes | idle, µs a second |\n|---|---|---|---|---|\n");
        for of in &self.scenarios {
            let it = of.heartbeats;
            let figures =
                format!("{:.0} | {} | {:.0}", it.microseconds, it.hub_writes, it.idle_microseconds_per_second);
            line(&mut text, &of.scenario, &figures);
        }
        text
    }

    fn all_changes(&self) -> impl Iterator<Item = (&Scenario, &Changes)> {
        self.scenarios.iter().flat_map(|of| of.changes.iter().map(move |changes| (&of.scenario, changes)))
    }
}

fn changes_line(of: &Changes) -> String {
    let (copied, imported) = (of.copied, of.imported);
    format!(
        "{} | {} | {} | {:.1} / {:.1} | {:.1} / {:.1} | {:.0} | {:.0}",
        of.rate,
        of.copies,
        of.overtaken,
        copied.p50_milliseconds,
        copied.p99_milliseconds,
        imported.p50_milliseconds,
        imported.p99_milliseconds,
        of.hub_microseconds_per_copy,
        of.member_microseconds_per_import,
    )
}

fn line(text: &mut String, scenario: &Scenario, figures: &str) {
    let Scenario { api, members, importers, shared, .. } = scenario;
    let mut importers = if *shared > 0 { format!("{shared} Services: all") } else { importers.to_string() };
    if *api == Api::Multicluster {
        importers.push_str(", standard API");
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "| {members} | {importers} | {figures} |");
}

fn targets(scenarios: &[Measured]) -> Vec<Target> {
    let Some(of) = scenarios.iter().find(|of| of.scenario == TARGET) else { return Vec::new() };
    let mut targets = vec![
        target("hub agent, resident memory, MiB", 256.0, of.hub_memory.resident_mib),
        target("member agent, resident memory, MiB", 64.0, of.member_memory.resident_mib),
        target("hub agent, restart until ready, seconds", 10.0, of.hub_restart.ready_seconds),
        target("hub agent, fresh change after that, seconds", 2.0, of.hub_restart.fresh_change_seconds),
        target("member agent, restart until ready, seconds", 10.0, of.member_restart.ready_seconds),
        target("member agent, fresh change after that, seconds", 2.0, of.member_restart.fresh_change_seconds),
        target("/healthz, longest, milliseconds", 100.0, of.first.healthz_longest_milliseconds),
        target("Leases lost", 0.0, f64::from(u8::from(!of.first.lease_kept))),
    ];
    let costs = |wanted: &dyn Fn(&Scenario) -> bool| {
        let is_target = |of: &Scenario| of.api == TARGET.api && of.members == TARGET.members;
        let of = scenarios.iter().find(|of| is_target(&of.scenario) && wanted(&of.scenario))?;
        Some(&of.changes)
    };
    let one = costs(&|scenario| scenario.importers == 1 && scenario.shared == 0);
    let all = costs(&|scenario| scenario.shared > 0);
    for (one, all) in one.into_iter().flatten().zip(all.into_iter().flatten()) {
        let name = format!("{} changes/s, a copy of {}, times one of 1", one.rate, TARGET.members);
        targets.push(target(&name, 1.2, all.hub_microseconds_per_copy / one.hub_microseconds_per_copy));
    }
    targets
}
