//! Tests of bad responses: faults of servers and networks, and mistakes of users, in a fleet that is in use. Each test
//! asserts this:
//!
//! - Nothing that was imported is lost.
//! - The agents retry less and less often.
//! - A log line, a condition, an Event or a metric names the cause.
//! - After the fault, the fleet reaches the same state as a fleet without faults, without a restart. Then the agents
//!   make no more writes.
//!
//! `docs/contributors/faults.md` describes the same behaviour for operators.

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
