//! Limits of the simulated fleets.

use std::time::Duration;

/// Number of requests in a server's audit record. Older requests are dropped.
pub const AUDIT_ENTRIES: usize = 1 << 18;
/// Time limit for all agents of a fleet to become ready.
pub const READY: Duration = Duration::from_secs(60);
/// Time limit for an agent to stop, after which it is killed.
pub const STOP: Duration = Duration::from_secs(15);
