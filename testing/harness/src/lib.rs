//! Control planes, agents and proxies in processes of their own, for end-to-end tests, measurements and
//! `fleetnet sandbox --real`.
//!
//! A test uses a fleet and starts agents in separate processes. The test acts as a user through the API servers, and
//! watches for the results. The test counts writes in the servers' audit logs:
//!
//! ```text
//! fleet (hub + members, shared by the tests of one process)
//!   └─ control_plane (etcd + kube-apiserver) ── audit (all writes by user, counted exactly)
//! agent (hub-agent, member-agent)
//!   ├─ process ── bin/fleetnet-supervisor (ends its child when the test ends in any way)
//!   └─ deployment (an agent with the settings of its Deployment)
//! endpoints (a cluster with an agent as EndpointSlice controller; the test writes the pods and Nodes)
//! pods (a fake of scheduler and kubelet: all pods run)
//! in_memory (a simulated cluster, in the process of the test, for agents as processes)
//! kubectl, helm (calls of the real kubectl and Helm)
//! prometheus (Debian's Prometheus)
//! coredns (a real CoreDNS, and questions to it)
//! collector (a collector of traces, in the process of the test or a real one)
//! eventually (waits on a watch; the error shows the last state) ── watchdog (a time limit for each test)
//! turn (exclusive use of shared servers, one test at a time)
//! ```

pub mod agent;
pub mod audit;
pub mod binaries;
pub mod collector;
pub mod control_plane;
pub mod coredns;
pub mod deployment;
pub mod endpoints;
pub mod eventually;
pub mod fleet;
pub mod gate;
pub mod helm;
pub mod in_memory;
pub mod kubeconfig;
pub mod kubectl;
pub mod limits;
pub mod log;
mod outcome;
pub mod pods;
pub mod process;
pub mod prometheus;
pub mod routes;
mod running;
mod served;
pub mod tinyproxy;
pub mod turn;
pub mod user;
pub mod watchdog;

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Runtime for all tests of a process. Clients and log readers run on it longer than the test that started them.
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
/// If the test takes longer than [`limits::TEST`]. The message shows the waits of the test.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    run_within(limits::TEST, test)
}

/// Runs a test as [`run`] does, with another time limit.
pub fn run_within<T>(limit: Duration, test: impl Future<Output = T>) -> T {
    RUNTIME.block_on(watchdog::watched(limit, test))
}
