//! Shared code of the hub agent and the member agent: conversion between core and the runtime, start of a process,
//! common flags and metrics.
//!
//! The crates of the two agents do not depend on each other. So this crate has the code that both agents need.

pub mod blocking_reasons;
pub mod build_info;
pub mod convert;
pub mod flags;
pub mod go_flags;
pub mod host_port;
pub mod launch;
pub mod limits;
pub mod mailbox;
pub mod metrics;
pub mod traces;
