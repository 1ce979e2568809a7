//! Measurements of fleetnet on real control planes, each against its floor: the same writes and watches made by hand, in
//! the same run.
//!
//! ```text
//! ground (fleet, agents as processes) ── users (what they write) ── world (where: the agents' objects, the floor's)
//! floor  (import and change by hand)  ── follow (a watch that decodes nothing), templates (bodies as the agents made them)
//! controllers (the EndpointSlice controller beside kube-controller-manager's)
//! import, churn, restart (what is measured) ── stages, table (where the time of a change goes) ── report (JSON, targets)
//! slices (apart: the library of EndpointSlices alone, in memory)
//! ```

pub mod bare;
pub mod churn;
pub mod controllers;
pub mod exposition;
pub mod floor;
pub mod follow;
pub mod ground;
pub mod import;
pub mod limits;
pub mod objects;
pub mod quantiles;
pub mod report;
pub mod restart;
pub mod size;
pub mod slices;
pub mod stages;
pub mod table;
pub mod templates;
pub mod users;
pub mod world;
