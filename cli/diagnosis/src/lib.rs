//! Diagnosis of a fleet: finds the first broken step on the way of a Service from its exporter to its importer.
//!
//! | module | contents |
//! |---|---|
//! | [`codes`] | the one table of fault codes. Help, documentation, JSON output and alerts take their text from it |
//! | [`snapshot`] | objects of a fleet at one moment, as pure data |
//! | [`read`] | reads a [`Snapshot`] from API servers. The only module that does I/O |
//! | [`explain`] | the steps from exporter to importer, one function for each code |
//! | [`status`], [`services`], [`check`], [`latency`] | the other views of a fleet |
//! | [`migrate`] | what a change between Go agents and fleetnet does not carry over |
//! | [`connectivity`] | the connections that `test connectivity` tries, and the faults that their results show |
//! | [`agents`] | the namespaces of the agents, and how to recognize their Deployments |
//! | [`call`] | the names by which clients of an importer call a Service |
//! | [`sides`] | endpoints by exporter and importer, and the sides of a conflict |
//! | [`way`] | the time of each step of a change on its way from exporter to importer |
//! | [`objects`] | the objects of one Service on which the agents emit Events |
//! | [`order`], [`suggest`] | the natural order of names, and names that are like others |
//! | [`report`] | results of all these functions, which serialize to JSON |
//!
//! Invariant: everything outside of [`read`] is a pure function of a [`Snapshot`].

pub mod agents;
pub mod call;
pub mod check;
pub mod codes;
pub mod connectivity;
pub mod explain;
#[cfg(test)]
mod fixture;
pub mod latency;
mod limits;
pub mod migrate;
#[cfg(test)]
mod namespace_tests;
pub mod objects;
pub mod order;
pub mod read;
pub mod report;
pub mod services;
pub mod sides;
pub mod snapshot;
pub mod status;
pub mod suggest;
pub mod way;

pub use check::check;
pub use codes::Code;
pub use explain::explain;
pub use services::services;
pub use snapshot::Snapshot;
pub use status::status;
