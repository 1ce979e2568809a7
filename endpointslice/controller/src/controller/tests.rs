//! Tests of the EndpointSlice controller: its reactions and their timing, with the real engine on memkube, in virtual
//! time. What needs no server is tested on the controller alone.

mod bad_input;
mod batching;
mod builders;
mod foreign;
mod histories;
mod logging;
mod oracle;
mod phases;
mod reports;
mod startup;
mod syncing;
mod topology;
mod trigger_times;
mod triggers;
mod undecodable;
mod webhooks;
mod world;
