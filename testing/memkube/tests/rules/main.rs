//! Tests of the server's rules, in one process through `kube::Client`. The expected responses are those of
//! kube-apiserver 1.35.
#![allow(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod create;
mod definitions;
mod delete;
mod determinism;
mod faults;
mod garbage;
mod list;
mod namespaces;
mod past;
mod patch;
mod paths;
mod requests;
mod support;
mod update;
mod versions;
mod watch;
mod workloads;
