//! Every limit of this crate.

use std::time::Duration;

/// Number of requests that a server's audit ledger keeps.
pub const AUDIT_ENTRIES: usize = 1 << 18;
/// Time limit for all agents to become ready.
pub const READY: Duration = Duration::from_secs(60);
/// Time limit for an agent to stop. After it the agent is killed.
pub const STOP: Duration = Duration::from_secs(15);
