//! Rules of fleetnet as pure functions: from everything that is known to the writes that must follow.
//!
//! ```text
//!  event ──► view (model + indexes) ──► requeued keys ──► plan(&view, &key, now) ──► Plan { writes, again }
//! ```
//!
//! This crate does no I/O, reads no clock, draws no random number and never waits. Times come in with the events, iteration is
//! ordered, and the same view always gives the same plan. Two agents use it: the member agent ([`member`]: export and import)
//! and the hub agent ([`hub`]: conflict resolution and distribution).
//!
//! | file | rules |
//! |---|---|
//! | [`hub`] | conflict resolution, claims, rights, distribution |
//! | [`member`] | export, import, ownership of the cluster id |
//! | [`handshake`] | heartbeats of members, and announcements of both sides ([`features`]) |
//! | `handover` | make-before-break between two slices of a Service |
//! | [`conditions`] | conditions and Events for users, with the names of [`reasons`] |

// Unit tests share the builders of the integration tests, which refer to this crate by its external name.
#[cfg(test)]
extern crate self as fleetnet_core;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the integration tests use all of it")]
mod support;

pub mod conditions;
mod disputes;
mod feature_set;
pub mod features;
mod handover;
pub mod handshake;
pub mod hub;
pub mod index;
pub mod limits;
pub mod member;
pub mod model;
pub mod names;
pub mod plan;
pub mod ranges;
pub mod reasons;
pub mod undecodable;
pub mod watches;
mod work;
#[cfg(test)]
mod work_tests;
