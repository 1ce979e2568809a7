//! Tests of the EndpointSlice controller in a simulated cluster: its reactions and their timing.

mod bad_input;
mod batching;
mod builders;
mod foreign;
mod histories;
mod logging;
mod model;
mod phases;
mod real_engine;
mod reports;
mod server;
mod startup;
mod syncing;
mod topology;
mod trigger_times;
mod triggers;
mod undecodable;
mod webhooks;
mod world;
