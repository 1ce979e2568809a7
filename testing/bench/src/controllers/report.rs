//! Results of both EndpointSlice controllers, compared with targets.

use super::Size;
use super::contender::Contender;
use crate::environment::Memory;
use crate::quantiles::{Quantiles, ratio};
use crate::report::{Target, processors, target};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub size: Size,
    /// Number of processors that controllers, control planes and the bench share.
    pub processors: usize,
    /// True if the agent is an optimized build.
    pub optimized: bool,
    /// Results by controller.
    pub figures: BTreeMap<Contender, Figures>,
    /// Results compared with their targets.
    pub targets: Vec<Target>,
}

/// Results of one controller.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Time from the start of the controller's process until every endpoint is published, in milliseconds.
    pub start_milliseconds: f64,
    /// Number of slice writes for the start.
    pub start_writes: usize,
    /// Time from the patch of a pod's readiness until the pod's slice shows the new readiness.
    pub flap: Quantiles,
    /// Time from the server's response to the last patch of a rollout until slices show all changed pods.
    pub rollout: Quantiles,
    /// Time from the moment at which the bench sent the last patch of a rollout until slices show all changed pods.
    /// Includes the server's time for the patch.
    pub rollout_asked: Quantiles,
    /// Number of slice writes in all rollouts.
    pub rollout_writes: usize,
    /// Memory of the controller after the rollouts.
    pub memory: Memory,
    /// Processor time of the controller from its start to the end of the rollouts.
    pub processor_seconds: f64,
    /// Time from the restart of the controller until it has published a pod's change, in milliseconds. The slices exist
    /// before the restart.
    pub restart_milliseconds: f64,
    /// Number of slice writes after a restart. Does not count the write for the pod that the bench changes after the
    /// restart.
    pub restart_writes: usize,
    /// Results with many pods in the cluster. Measured after the restart.
    pub many: Many,
}

/// Results of one controller with many pods.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Many {
    /// Time from the patch of a pod's readiness until the pod's slice shows the new readiness.
    pub flap: Quantiles,
    pub memory: Memory,
    /// Processor time of the controller since the restart.
    pub processor_seconds: f64,
}

impl Report {
    /// Builds the report and compares the results with their targets.
    #[must_use]
    pub fn new(size: Size, figures: BTreeMap<Contender, Figures>) -> Self {
        let processors = processors();
        let targets = match (figures.get(&Contender::MemberAgent), figures.get(&Contender::KubeControllerManager)) {
            (Some(ours), Some(theirs)) => targets(ours, theirs),
            _ => Vec::new(),
        };
        Self { size, processors, optimized: !cfg!(debug_assertions), figures, targets }
    }

    /// Returns a table of both controllers' results for people.
    #[must_use]
    pub fn table(&self) -> String {
        let of = |figure: &dyn Fn(&Figures) -> String| {
            Contender::ALL.map(|each| self.figures.get(&each).map(figure).unwrap_or_default()).join(" | ")
        };
        let quantiles = |of: Quantiles| {
            let Quantiles { p50_milliseconds, p99_milliseconds, longest_milliseconds, .. } = of;
            format!("{p50_milliseconds:.1} / {p99_milliseconds:.1} / {longest_milliseconds:.1} ms")
        };
        let rows = [
            ("start until all is published", of(&|it| format!("{:.0} ms", it.start_milliseconds))),
            ("a pod's readiness: p50 / p99 / longest", of(&|it| quantiles(it.flap))),
            ("a rollout, from its last change: p50 / p99 / longest", of(&|it| quantiles(it.rollout))),
            ("the same from when that was asked for", of(&|it| quantiles(it.rollout_asked))),
            ("slices written in all rollouts", of(&|it| it.rollout_writes.to_string())),
            ("resident memory", of(&|it| format!("{:.1} MiB", it.memory.resident_mib))),
            ("processor time", of(&|it| format!("{:.2} s", it.processor_seconds))),
            ("slices written at a restart", of(&|it| it.restart_writes.to_string())),
            ("restart until a change is published", of(&|it| format!("{:.0} ms", it.restart_milliseconds))),
            ("many pods: a pod's readiness", of(&|it| quantiles(it.many.flap))),
            ("many pods: resident memory", of(&|it| format!("{:.1} MiB", it.many.memory.resident_mib))),
            ("many pods: processor time", of(&|it| format!("{:.2} s", it.many.processor_seconds))),
        ];
        let rows = rows.map(|(name, figures)| format!("| {name} | {figures} |\n")).concat();
        format!("| | kube-controller-manager | member agent |\n|---|---|---|\n{rows}")
    }
}

#[allow(clippy::cast_precision_loss, reason = "writes are a few thousand")]
fn targets(ours: &Figures, theirs: &Figures) -> Vec<Target> {
    let times = |ours: f64, theirs: f64| ratio(ours, theirs);
    vec![
        target("readiness, p50, times theirs", 1.0, times(ours.flap.p50_milliseconds, theirs.flap.p50_milliseconds)),
        target("readiness, p99, times theirs", 1.0, times(ours.flap.p99_milliseconds, theirs.flap.p99_milliseconds)),
        target("rollout, p99, milliseconds", 50.0, ours.rollout.p99_milliseconds),
        target("rollouts, writes, times theirs", 1.0, times(ours.rollout_writes as f64, theirs.rollout_writes as f64)),
        target("restart, writes", 0.0, ours.restart_writes as f64),
        target("memory, times theirs", 1.0, times(ours.memory.resident_mib, theirs.memory.resident_mib)),
        target("processor time, times theirs", 1.0, times(ours.processor_seconds, theirs.processor_seconds)),
        target(
            "many pods: memory, times theirs",
            1.0,
            times(ours.many.memory.resident_mib, theirs.many.memory.resident_mib),
        ),
        target(
            "many pods: processor time, times theirs",
            1.0,
            times(ours.many.processor_seconds, theirs.many.processor_seconds),
        ),
    ]
}
