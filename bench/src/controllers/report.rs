//! The figures of both, and what they were to be.

use super::Size;
use super::contender::Contender;
use crate::ground::Memory;
use crate::quantiles::{Quantiles, ratio};
use crate::report::{Target, target};
use serde::Serialize;
use std::collections::BTreeMap;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured.
    pub size: Size,
    /// Processors that there are for contenders, control planes and the bench together.
    pub processors: usize,
    /// The agent was built for speed.
    pub optimized: bool,
    /// Of each.
    pub figures: BTreeMap<Contender, Figures>,
    /// Figures against targets.
    pub targets: Vec<Target>,
}

/// What one of them came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// From its start as a process until every endpoint is published.
    pub start_milliseconds: f64,
    /// Slices written for that.
    pub start_writes: usize,
    /// From the patch of a pod's readiness until its slice shows it.
    pub flap: Quantiles,
    /// From when the last pod of a rollout had changed, which is when the server had answered, until all its pods show.
    pub rollout: Quantiles,
    /// The same from when the last patch was sent, which waits for the server as all the others of the rollout do.
    pub rollout_asked: Quantiles,
    /// Slices written in all rollouts.
    pub rollout_writes: usize,
    /// What it takes of memory after these.
    pub memory: Memory,
    /// What it has taken of processors until then.
    pub processor_seconds: f64,
    /// From its start over what is published already until it has published a change made meanwhile.
    pub restart_milliseconds: f64,
    /// Slices written at a restart, that change apart.
    pub restart_writes: usize,
    /// With many pods, since that restart.
    pub many: Many,
}

/// What it came to with many pods.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Many {
    /// From the patch of a pod's readiness until its slice shows it.
    pub flap: Quantiles,
    /// What it takes of memory.
    pub memory: Memory,
    /// What it has taken of processors since its restart.
    pub processor_seconds: f64,
}

impl Report {
    /// Puts a run together.
    #[must_use]
    pub fn new(size: Size, figures: BTreeMap<Contender, Figures>) -> Self {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let targets = match (figures.get(&Contender::MemberAgent), figures.get(&Contender::KubeControllerManager)) {
            (Some(ours), Some(theirs)) => targets(ours, theirs),
            _ => Vec::new(),
        };
        Self { size, processors, optimized: !cfg!(debug_assertions), figures, targets }
    }

    /// Both side by side, as a table for people.
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
