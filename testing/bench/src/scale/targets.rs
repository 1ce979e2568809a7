//! Targets of the measurement.

use super::scenario::{Api, Scenario};
use super::steps::Measured;
use crate::report::{Target, target};

/// Fleet that the targets are for.
const TARGET: Scenario = Scenario { api: Api::Fleet, members: 100, services: 1000, importers: 10, shared: 0 };
/// Endpoints of each slice in the fleet that the targets are for.
pub(super) const ENDPOINTS: usize = 100;

/// Compares the results with their targets. Empty if the fleet of the targets was not measured.
pub(super) fn targets(scenarios: &[Measured]) -> Vec<Target> {
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
