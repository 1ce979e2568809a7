//! Tests of the commands on API servers in memory, called as a user does: with kubeconfigs, over HTTPS.

#![allow(clippy::unwrap_used)]

mod clusters;
mod connectivity;
mod fleet;
mod gather;
mod guide;
mod hub;
mod join;
mod leave;
mod migrate;
mod namespace;
mod page;
mod program;
mod rotate;
mod terminal;
mod ui;
mod version;
mod views;
