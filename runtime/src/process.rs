//! What a process needs besides its agents: leader election, metrics and probes, rights of clients, tokens, logs.

pub mod access;
pub mod admin;
pub mod lease;
pub mod listeners;
pub mod logging;
mod pace;
pub mod reviews;
pub mod shutdown;
pub mod token;
