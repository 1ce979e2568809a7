//! Tests of the server's rules, in one process through `kube::Client`. The expected responses are those of
//! kube-apiserver 1.35.
#![allow(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod definitions;
mod determinism;
mod faults;
mod kinds;
mod past;
mod paths;
mod requests;
mod support;
mod verbs;
mod watch;
mod workloads;
