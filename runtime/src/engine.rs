//! State of the engine, without I/O: which writes are due, and which observations are new.

pub(crate) mod action;
mod fair_queue;
mod fights;
mod inquiries;
pub(crate) mod invariants;
pub mod leadership;
pub mod logic;
pub(crate) mod message;
pub(crate) mod outcome;
mod queue;
mod reports;
mod retries;
mod sent;
pub(crate) mod slots;
pub(crate) mod source_info;
pub mod sources;
pub(crate) mod state;
mod timers;
mod unfinished;
pub(crate) mod versions;
pub(crate) mod write_body;
mod writes;
