//! Tests of agent processes with memkube over HTTPS: connections, flags and the ends of processes.

mod connections;
mod controllers;
mod endings;
mod flags;
