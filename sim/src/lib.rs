//! Simulated fleets in one process: a hub and members on memkube, with the real agents as tasks.
//!
//! This crate never sleeps on the system clock. On a runtime with paused time ([`paused`]), hours of virtual time take only as
//! long as the work in them.

pub mod agent;
pub mod board;
pub mod fleet;
pub mod limits;
pub mod line;
pub mod server;

pub use agent::{Agent, LeaseTimes};
pub use fleet::{Fleet, Options};
pub use server::Server;

use std::future::Future;

/// Runs `work` on one thread with tokio's paused time: when all tasks wait, the clock jumps to the next timer.
pub fn paused<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(work)
}
