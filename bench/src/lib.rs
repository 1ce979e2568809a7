//! Measurements of fleetnet on real control planes. Each run also measures the baseline: the same writes and watches, made by the
//! bench without agents.
//!
//! ```text
//! environment (fleet, agents as processes) ── users (what they write) ── world (where: the agents' objects, the baseline's)
//! baseline    (the baseline's writes)      ── follow (a watch that decodes nothing), templates (copies of the agents' objects)
//! controllers (the EndpointSlice controller beside kube-controller-manager's)
//! import, churn, restart (measurements)     ── stages, table (time of a change by step)           ── report (JSON, targets)
//! slices (the EndpointSlice library alone, in memory)
//! ```

pub mod bare;
pub mod baseline;
pub mod churn;
pub mod controllers;
pub mod environment;
pub mod exposition;
pub mod follow;
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
