//! End-to-end tests on real control planes. The crate `harness` starts the control planes and the agents.
//!
//! ```text
//! scenarios (actions and assertions) ── environment (a fleet with its users, on control planes or in memory)
//! snapshot (the objects of a fleet, to compare two fleets)
//! conformance (the same calls on a control plane and on memkube, compared)
//! ```

pub mod conformance;
pub mod environment;
pub mod scenarios;
pub mod snapshot;
