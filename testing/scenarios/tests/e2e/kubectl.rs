//! Tests of the real kubectl on memkube over HTTPS: exit code and output of each documented verb, for built-in kinds
//! and kinds of the fleet.

mod built_in;
mod cluster;
mod fleet;
mod following;
mod server;
