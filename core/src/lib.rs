//! The rules of fleetnet, pure: what should be written, given what is known.
//!
//! ```text
//!  event ──► view (model + indexes) ──► dirty keys ──► plan(&view, &key, now) ──► Plan { writes, again }
//! ```
//!
//! Nothing here does I/O, reads a clock, draws a random number or waits: time comes in as data, iteration is ordered, and
//! the same view always gives the same plan. Two agents stand on it: the member agent ([`member`]: export and import) and
//! the hub agent ([`hub`]: resolve and distribute).
//!
//! | file | its rules |
//! |---|---|
//! | [`export`] | a member's Service and slices to the hub, and what the hub said of it back |
//! | [`resolve`] | many exports of one Service to one import; who may import it ([`claims`]) |
//! | [`distribute`] | which importer gets which slice |
//! | [`rights`] | who may export from, and import from, a namespace of the hub |
//! | [`import`] | MultiClusterService, ServiceImport, derived Service and imported slices |
//! | [`handshake`] | that a member is there, and what each side may tell the other ([`features`]) |
//! | [`identity`] | which of several clusters with one id acts in the hub |
//! | [`conditions`] | what users are told, and when, in the words of [`reasons`] |

#![allow(missing_docs, reason = "this crate is not published: comments say why, not what")]

// Unit tests use the builders of the integration tests, which know the crate by its name.
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
pub mod ids;
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
