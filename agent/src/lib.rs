//! Shared code of the hub agent and the member agent: conversion between core and the runtime, start of a process, common flags
//! and metrics.
//!
//! Neither agent's crate depends on the other's. This crate has only what both need.

pub mod blocking_reasons;
pub mod convert;
pub mod flags;
pub mod go_flags;
pub mod launch;
pub mod metrics;
