//! End-to-end tests on real control planes, and their harness.
//!
//! A test takes a fleet and starts agents as processes of their own. It acts as a user through the API servers, waits on
//! watches for the results, and reads the costs from the servers' audit logs:
//!
//! ```text
//! fleet (hub + members, shared by the tests of one process)
//!   └─ control_plane (etcd + kube-apiserver) ── audit (all writes by user, counted exactly)
//! agent (hub-agent, member-agent)
//!   └─ process ── bin/fleetnet-supervisor (ends its child when the test ends in any way)
//! endpoints (a cluster whose EndpointSlices an agent makes; the test writes the pods and Nodes)
//! kubectl (the real one)
//! eventually (waits on a watch, and shows what it saw last) ── watchdog (a time limit for each test)
//! turn (what several tests may not use at once)
//! scenarios (actions and assertions) ── environment (a fleet with its users, on control planes or in memory)
//! conformance (the same calls on a control plane and on memkube, compared)
//! ```

pub mod agent;
pub mod audit;
pub mod binaries;
pub mod conformance;
pub mod control_plane;
pub mod endpoints;
pub mod environment;
pub mod eventually;
pub mod fleet;
pub mod gate;
pub mod kubeconfig;
pub mod kubectl;
pub mod limits;
pub mod log;
pub mod process;
pub mod proxy;
pub mod routes;
pub mod scenarios;
pub mod snapshot;
pub mod turn;
pub mod user;
mod watchdog;

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Runtime for all tests of a process: they share clients and log readers, which outlive the test that made them.
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
/// If it takes longer than [`limits::TEST`]; the message shows what it waited for.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    run_within(limits::TEST, test)
}

/// Runs a test as [`run`] does, with another time limit, for a test that has much to do.
pub fn run_within<T>(limit: Duration, test: impl Future<Output = T>) -> T {
    RUNTIME.block_on(watchdog::watched(limit, test))
}
