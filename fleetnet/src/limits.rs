//! Limits of the command `fleetnet`.

use std::time::Duration;

/// Most members of a fleet on memkube. All members import from all, so the number of imported slices grows with the square.
pub(crate) const MEMBERS_MAX: u16 = 50;
/// Most members of a fleet on real control planes: each runs an etcd and a kube-apiserver.
pub(crate) const REAL_MEMBERS_MAX: u16 = 5;
/// Largest value of `--changes`.
pub(crate) const CHANGES_MAX: u32 = 10_000;
/// Threads of the sandbox. With two, the view is drawn while agents plan.
pub(crate) const WORKER_THREADS: usize = 2;
/// Events of the sandbox that wait to be shown. Senders wait when the queue is full.
pub(crate) const TOLD: usize = 1024;
/// Time between two frames of the terminal view.
pub(crate) const FRAME: Duration = Duration::from_millis(100);
/// Shortest time between two events about the clusters' state.
pub(crate) const ANNOUNCE: Duration = Duration::from_millis(50);
/// Delay before a broken watch starts again.
pub(crate) const WATCH_AGAIN: Duration = Duration::from_millis(100);
/// Lifetime in seconds of a watch of the sandbox, after which the server ends it.
pub(crate) const WATCH_SECONDS: u32 = 290;
/// Time limit for agents to become ready and for the first imports. Long enough for a busy machine.
pub(crate) const SET_UP: Duration = Duration::from_secs(60);
/// Time limit for a change to reach all importers.
pub(crate) const ARRIVAL: Duration = Duration::from_secs(20);
/// Time limit like [`ARRIVAL`] for an interactive sandbox, in which somebody may have deleted the importing objects.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Time limit for an agent to stop on request.
pub(crate) const STOP: Duration = Duration::from_secs(8);
/// Delay before an agent that ended by itself is restarted.
pub(crate) const RESTART: Duration = Duration::from_secs(1);
/// Pause after each step of a scenario in an interactive sandbox, so that people can look at it.
pub(crate) const STEP: Duration = Duration::from_millis(1500);
/// Latency samples kept for each pair of clusters. The oldest are dropped.
pub(crate) const SAMPLES: usize = 1000;
/// Samples needed for a 99th percentile. With fewer, it would just be the largest sample.
pub(crate) const PERCENTILE_SAMPLES: usize = 100;
/// Most differences that a verdict lists. It gives the number of the others.
pub(crate) const DIFFERENCES_TOLD: usize = 20;
/// Time limit for the fleet to reach the expected state, counted from when the last change arrived.
pub(crate) const SETTLES: Duration = Duration::from_secs(5);
/// Most clusters that the terminal view lists by name. It shows more as a number.
pub(crate) const CLUSTERS_NAMED: usize = 3;
/// Number of recent changes and steps that the terminal view keeps.
pub(crate) const REMEMBERED: usize = 100;
/// Requests that memkube records one by one. Few, because the sandbox needs only the counts.
pub(crate) const AUDIT_ENTRIES: usize = 16;
