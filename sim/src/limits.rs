//! Every limit of this crate.

use std::time::Duration;

/// Requests that a server's audit ledger remembers.
pub const AUDIT_ENTRIES: usize = 1 << 18;
/// How long the agents may take to know their clusters.
pub const READY: Duration = Duration::from_secs(60);
/// How long an agent may take to finish what is under way; then it is killed.
pub const STOP: Duration = Duration::from_secs(15);
