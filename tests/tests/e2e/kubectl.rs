//! The real kubectl on memkube over HTTPS: each verb that is promised, on built-in kinds and on kinds of the fleet, with
//! its exit code and what it prints.

mod built_in;
mod cluster;
mod fleet;
mod following;
mod server;
