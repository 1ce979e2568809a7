//! State of the engine, without I/O: which writes are due, and which observations are new.

pub(crate) mod fights;
mod inquiries;
pub(crate) mod invariants;
pub mod leadership;
pub mod logic;
pub(crate) mod message;
pub(crate) mod outcome;
mod outcomes;
mod planning;
pub mod queue;
pub(crate) mod retries;
pub(crate) mod slots;
pub mod sources;
pub(crate) mod state;
pub(crate) mod turns;
pub(crate) mod unfinished;
pub mod versions;
pub(crate) mod write_body;
