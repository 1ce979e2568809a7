//! Tests of agents as processes with servers in memory, over HTTPS: their connections, flags and ends.

mod connections;
mod controllers;
mod endings;
mod flags;
mod server;
