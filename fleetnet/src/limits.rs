//! Every limit of the command line.

use std::time::Duration;

/// Members of a fleet on memkube. All import from all, so what is copied grows with the square.
pub(crate) const MEMBERS_MAX: u16 = 50;
/// Members of a fleet on real control planes: each is an etcd and a kube-apiserver.
pub(crate) const REAL_MEMBERS_MAX: u16 = 5;
/// Changes that `--once` can be asked for.
pub(crate) const CHANGES_MAX: u32 = 10_000;
/// Threads of the sandbox: one would do, two let the view be drawn while agents plan.
pub(crate) const WORKER_THREADS: usize = 2;
/// What is told and not yet shown. Whoever tells more waits.
pub(crate) const TOLD: usize = 1024;
/// Between two frames of the terminal view.
pub(crate) const FRAME: Duration = Duration::from_millis(100);
/// What clusters show is told at most so often.
pub(crate) const ANNOUNCE: Duration = Duration::from_millis(50);
/// A watch that broke is begun anew after this.
pub(crate) const WATCH_AGAIN: Duration = Duration::from_millis(100);
/// The server ends a watch of ours after so long, in seconds.
pub(crate) const WATCH_SECONDS: u32 = 290;
/// How long the agents may take to be ready, and the first imports to come, on a machine that is busy.
pub(crate) const SET_UP: Duration = Duration::from_secs(60);
/// How long a change may take to arrive everywhere.
pub(crate) const ARRIVAL: Duration = Duration::from_secs(20);
/// The same where somebody watches, and may have deleted what it should arrive in.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How long an agent may take to stop when it is asked to.
pub(crate) const STOP: Duration = Duration::from_secs(8);
/// An agent that ended by itself is started again after this.
pub(crate) const RESTART: Duration = Duration::from_secs(1);
/// How long a step of a scenario can be looked at before the next, where somebody watches.
pub(crate) const STEP: Duration = Duration::from_millis(1500);
/// Latency samples kept of each pair of clusters; older ones are forgotten.
pub(crate) const SAMPLES: usize = 1000;
/// Of fewer samples the 99th percentile would be the largest one under a better name.
pub(crate) const PERCENTILE_SAMPLES: usize = 100;
/// Differences that a verdict lists; it tells how many more there are.
pub(crate) const DIFFERENCES_TOLD: usize = 20;
/// How long all may take to be as it should be once the last change has arrived.
pub(crate) const SETTLES: Duration = Duration::from_secs(5);
/// Clusters that the terminal view names one by one; of more it gives the number.
pub(crate) const CLUSTERS_NAMED: usize = 3;
/// Changes and steps that the terminal view remembers.
pub(crate) const REMEMBERED: usize = 100;
/// Requests that memkube remembers one by one; the sandbox needs its counts only.
pub(crate) const AUDIT_ENTRIES: usize = 16;
