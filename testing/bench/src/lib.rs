//! Measurements of fleetnet on real control planes. Each run also measures the baseline: the same writes and watches,
//! made by the bench without agents.
//!
//! ```text
//! environment (fleet, agents as processes) ── users (writes of users) ── world (namespaces and API group of the objects)
//! baseline    (writes of the baseline)      ── follow (watch that decodes nothing), templates (copies of the agents' objects)
//! all ── import, churn, restart (measurements) ── stages (time of each step of a change)
//! report (figures and targets of any measurement) ── table (figures as tables)
//! scale       (cost by the numbers of members, Services and importers, on memkube)
//! silence     (time until importers stop using a dead member's endpoints, on memkube)
//! requests    (lost requests and delays of changes, with real traffic)
//! slices      (measurement of the EndpointSlice library alone, in memory)
//! ```

pub mod all;
pub mod bare;
pub mod baseline;
pub mod churn;
pub mod environment;
pub mod exposition;
pub mod follow;
pub mod import;
pub mod limits;
pub mod objects;
pub mod quantiles;
pub mod report;
pub mod requests;
pub mod restart;
pub mod scale;
pub mod silence;
pub mod size;
pub mod slices;
pub mod soak;
pub mod stages;
pub mod stream;
pub mod table;
pub mod templates;
pub mod users;
pub mod world;
