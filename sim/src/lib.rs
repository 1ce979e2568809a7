//! Whole fleets in one process: a hub and members on memkube, with the real agents as tasks.
//!
//! Nothing here sleeps on the system's clock: on a runtime with paused time ([`paused`]) a fleet lives through hours in
//! the time that its work takes.

pub mod agent;
pub mod fleet;
pub mod limits;
pub mod line;
pub mod server;

pub use agent::{Agent, LeaseTimes};
pub use fleet::{Fleet, Options};
pub use server::Server;

use std::future::Future;

/// Runs on one thread with paused time: whenever all tasks wait, the clock jumps to the next timer.
///
/// # Errors
/// Where the system has no runtime to give, or as `work`.
pub fn paused<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(work)
}
