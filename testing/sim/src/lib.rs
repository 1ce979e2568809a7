//! Simulated fleets in one process: a hub and members on memkube, with the real agents as tasks.
//!
//! This crate never sleeps on the system clock. On a runtime with paused time ([`paused`]), hours of virtual time take
//! only as long as the work in them.

pub mod agent;
pub mod board;
pub mod connection;
pub mod fleet;
pub mod limits;
pub mod manager;
pub mod partition;
pub mod server;
pub mod stream;

pub use agent::Agent;
pub use fleet::{Fleet, Options};
pub use server::Server;

use std::future::Future;

/// If a run with paused time can be repeated: tokio takes a seed for its random numbers. They decide which branch of a
/// `select!` is polled first, and in which order the receivers of a watch channel wake. False if `RUSTFLAGS` replaces
/// the flags in `.cargo/config.toml`.
pub const IS_REPEATABLE: bool = cfg!(tokio_unstable);

/// Runs `work` on one thread with tokio's paused time: when all tasks wait, the clock jumps to the next timer.
pub fn paused<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(b"fleetnet"));
    builder.enable_time().start_paused(true).build()?.block_on(work)
}
