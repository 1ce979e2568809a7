//! Agents as processes on servers in memory, over HTTPS: how they connect, what their flags do, and how they end.

mod connections;
mod endings;
mod flags;
mod server;
