//! End-to-end tests on real control planes, and the harness that they stand on.
//!
//! A test takes the fleet, starts agents as processes of their own, acts as a user through the API servers, waits on
//! watches for what must come, and reads from the servers' audit logs what it cost:
//!
//! ```text
//! fleet (hub + members, shared by the tests of one process)
//!   └─ control_plane (etcd + kube-apiserver) ── audit (who wrote what, counted exactly)
//! agent (hub-agent, member-agent)
//!   └─ process ── bin/fleetnet-supervisor (ends its child when the test ends, however that ends)
//! endpoints (a cluster whose EndpointSlices an agent makes; pods and Nodes as nobody but the test reports them)
//! kubectl (the real one)
//! eventually (waits on a watch, and tells what it saw last) ── watchdog (a time limit for each test)
//! turn (what several tests may not use at once)
//! scenes (what is played and asserted) ── stage (a fleet with its users, on control planes or in memory)
//! conformance (the same calls on a control plane and on memkube, compared)
//! ```

pub mod agent;
pub mod audit;
pub mod binaries;
pub mod conformance;
pub mod control_plane;
pub mod endpoints;
pub mod eventually;
pub mod fleet;
pub mod gate;
pub mod kubeconfig;
pub mod kubectl;
pub mod limits;
pub mod log;
pub mod picture;
pub mod process;
pub mod proxy;
pub mod routes;
pub mod scenes;
pub mod stage;
pub mod turn;
pub mod user;
mod watchdog;

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::Runtime;

/// One runtime for all tests of a process: what they share (clients, log readers) outlives the test that made it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(limits::WORKER_THREADS)
        .enable_all()
        .build()
        .expect("threads and timers are to be had before any test runs")
});

/// Runs a test to its end.
///
/// # Panics
/// Where it takes longer than [`limits::TEST`], with what it waited for.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    run_within(limits::TEST, test)
}

/// As [`run`], with a limit of its own, for a test that has much to do.
///
/// # Panics
/// As [`run`].
pub fn run_within<T>(limit: Duration, test: impl Future<Output = T>) -> T {
    RUNTIME.block_on(watchdog::watched(limit, test))
}
