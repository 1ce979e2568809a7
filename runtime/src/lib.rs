//! Foundation of every agent: watches, object versions, work queues, the engine loop, the writer, leader election,
//! metrics, health and shutdown.
//!
//! This crate has no code about fleets. An agent implements the trait [`Logic`].
//!
//! A part uses only the parts below it:
//!
//! ```text
//! run, manager      one agent with its watches; the agents of a process under one leader election
//!    |
//! process           Leases, metrics and probes, rights of clients, requests for tokens, logs, shutdown
//!    |
//! io                clients, watches, writes, Events
//!    |
//! engine            state without I/O: queue, versions of objects, retries, slots, fights, unfinished writes
//!    |
//! backoff, clock, errors, limits, metrics, tasks
//! ```

pub mod backoff;
pub mod clock;
pub mod engine;
pub mod errors;
/// Entry points of the fuzz targets to private decoders.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod io;
pub mod limits;
pub mod manager;
pub mod metrics;
pub mod process;
pub mod run;
mod tasks;
#[cfg(test)]
mod test_kit;

pub use engine::logic::{
    Change, Event, Fight, Flow, FlowId, Logic, NAMESPACE_TERMINATING, Observed, Plan, ProcessNews, Removal, Request,
    Resource, Severity, Undecodable, Urgency, Verb, WatchNews, WatchState, WriteEnd, WriteEnded, WriteFailure,
    WriteNews,
};
pub use engine::write_body::WriteBody;
pub use io::decoder::Decoder;
pub use io::response::ResponseSink;
pub use io::source::SourceSpec;
