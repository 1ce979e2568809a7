//! Foundation of every agent: watches, object versions, work queues, the engine loop, the writer, leader election,
//! metrics, health and shutdown.
//!
//! This crate has no code about fleets. An agent implements the trait [`Logic`].

pub mod access;
pub mod admin;
mod answers;
pub mod backoff;
pub mod client;
pub mod clock;
mod decoder;
mod engine;
pub mod events;
mod fights;
/// Entry points of the fuzz targets to private decoders.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod invariants;
pub mod lease;
pub mod limits;
pub mod listeners;
pub mod logging;
mod logic;
pub mod manager;
pub mod metrics;
mod outcomes;
mod pace;
mod planning;
pub mod queue;
mod response;
mod restores;
mod retries;
pub mod reviews;
mod rivals;
pub mod run;
pub mod shutdown;
mod slots;
mod tasks;
#[cfg(test)]
mod test_kit;
pub mod token;
mod turns;
mod unfinished;
pub mod versions;
mod watch;
mod write_body;
mod writer;

pub use answers::with_causes;
pub use logic::{
    Change, Decoder, Event, Fight, Flow, FlowId, Logic, NAMESPACE_TERMINATING, Observed, Plan, ProcessNews, Removal,
    Request, Resource, Severity, SourceSpec, Undecodable, Urgency, Verb, WatchNews, WatchState, WriteEnd, WriteEnded,
    WriteFailure, WriteNews,
};
pub use response::ResponseSink;
pub use write_body::WriteBody;
