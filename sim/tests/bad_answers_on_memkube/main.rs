//! Tests of bad answers: faults of servers, networks and people in a fleet that is in use. Each test asserts this:
//!
//! - Nothing that was imported is lost.
//! - The agents retry less and less often.
//! - A log line, a condition, an Event or a metric names the cause.
//! - After the fault, without a restart, the fleet reaches the state of one without faults, and makes no more writes.
//!
//! `docs/failures.md` describes the same for operators.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod disputes;
mod edited;
mod faults;
mod heartbeats;
mod hub;
mod trial;
mod undecodable;
mod watches;
mod webhooks;
