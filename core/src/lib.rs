//! Rules of fleetnet as pure functions: from everything that is known to the writes that must follow.
//!
//! ```text
//!  event ──► view (model + indexes) ──► dirty keys ──► plan(&view, &key, now) ──► Plan { writes, again }
//! ```
//!
//! This crate does no I/O, reads no clock, draws no random number and never waits. Times come in with the events, iteration is
//! ordered, and the same view always gives the same plan. Two agents use it: the member agent ([`member`]: export and import)
//! and the hub agent ([`hub`]: conflict resolution and distribution).
//!
//! | file | rules |
//! |---|---|
//! | [`export`] | a member's Services and slices to the hub, and the hub's outcome back |
//! | [`resolve`] | from many exports of one Service to one import; the members that may import it ([`claims`]) |
//! | [`distribute`] | the importers that get a slice |
//! | [`rights`] | the members that may export from, and import from, a namespace of the hub |
//! | [`import`] | MultiClusterService, ServiceImport, derived Service and imported slices |
//! | [`handshake`] | heartbeats of members, and announcements of both sides ([`features`]) |
//! | [`identity`] | the one of several clusters with one id that acts in the hub |
//! | [`conditions`] | conditions and Events for users, with the names of [`reasons`] |

#![allow(missing_docs, reason = "this crate is not published: comments say why, not what")]

// Unit tests use the builders of the integration tests, which refer to the crate by its name.
#[cfg(test)]
extern crate self as fleetnet_core;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the integration tests use all of it")]
mod support;

pub mod claims;
pub mod conditions;
mod disputes;
pub mod distribute;
pub mod export;
mod feature_set;
pub mod features;
pub mod handshake;
pub mod hub;
pub mod identity;
pub mod import;
pub mod index;
pub mod latency;
pub mod limits;
pub mod member;
pub mod model;
pub mod names;
pub mod plan;
pub mod ranges;
pub mod reasons;
pub mod resolve;
pub mod rights;
mod succession;
pub mod unreadable;
pub mod watches;
mod work;
#[cfg(test)]
mod work_tests;
