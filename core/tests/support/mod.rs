//! Helpers for the tests of the rules: builders of small objects, and a fleet in memory that executes the agents'
//! plans.

pub(crate) mod agent;
pub(crate) mod build;
pub(crate) mod cluster;
pub(crate) mod fleets;
pub(crate) mod interleavings;
pub(crate) mod mcs;
pub(crate) mod property;
pub(crate) mod requeued;
pub(crate) mod reworded;
pub(crate) mod sabotage;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod users;
pub(crate) mod view;
pub(crate) mod world;
