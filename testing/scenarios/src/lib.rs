//! End-to-end tests on real control planes. The crate `harness` starts the control planes and the agents.
//!
//! ```text
//! main_job ── announced, carried, conflicts, definitions, deletion, trust (scenarios, by what they are about)
//! actions, handover ── ledger (counts of writes) ── marker, rich (objects)
//! environment (a fleet with its users, on control planes or in memory)
//! snapshot (the objects of a fleet, to compare two fleets)
//! conformance (the same calls on a control plane and on memkube, compared)
//! ```

pub mod actions;
pub mod announced;
pub mod carried;
pub mod conflicts;
pub mod conformance;
pub mod definitions;
pub mod deletion;
pub mod environment;
pub mod handover;
mod ledger;
pub mod main_job;
pub mod marker;
pub mod rich;
pub mod snapshot;
pub mod trust;
