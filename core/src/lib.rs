//! Rules of fleetnet as pure functions: from the known state of all objects to the writes that are due.
//!
//! ```text
//!  event ──► view (model + indexes) ──► requeued keys ──► plan(&view, &key, now) ──► Plan { writes, again }
//! ```
//!
//! This crate does no I/O, reads no clock, draws no random number and never waits. The caller passes the time with each
//! event. Iteration is ordered, so the same view always gives the same plan.
//! Two agents use this crate: the member agent ([`member`]: export and import) and the hub agent ([`hub`]: conflict
//! resolution and distribution).
//!
//! | file | rules |
//! |---|---|
//! | [`hub`] | conflict resolution, claims, rights, distribution |
//! | [`member`] | export, import, ownership of the cluster id |
//! | [`handshake`] | heartbeats of members, and announcements of both sides ([`features`]) |
//! | `handover` | make-before-break between two slices of a Service |
//! | [`carried`] | what clients of an importer reach of a source slice |
//! | [`conditions`] | conditions and Events for users. [`reasons`] has their reasons |

// Unit tests share the builders of the integration tests, which refer to this crate by its external name.
#[cfg(test)]
extern crate self as fleetnet_core;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the integration tests use all of it")]
mod support;

pub mod admission;
pub mod annotations;
pub mod carried;
pub mod clocks;
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
mod message;
pub mod model;
pub mod names;
pub mod plan;
mod planner;
pub mod ranges;
#[cfg(test)]
mod read_cost_tests;
mod reads;
pub mod reasons;
pub mod undecodable;
mod variants;
pub mod watches;
mod work;
#[cfg(test)]
mod work_tests;
