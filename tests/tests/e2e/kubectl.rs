//! The real kubectl on memkube over HTTPS: each documented verb, on built-in kinds and on kinds of the fleet, with its exit
//! code and its output.

mod built_in;
mod cluster;
mod fleet;
mod following;
mod server;
