//! Agents as processes on servers in memory, over HTTPS: how they connect, what their flags do, and how they end.

mod connections;
mod controllers;
mod endings;
mod flags;
mod server;
