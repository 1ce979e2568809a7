//! Limits of this crate.

use std::time::Duration;

/// Parallel requests of a bare client, and of the users, in one cluster. Agents have the same limit.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// Time limit for a whole first import.
pub const IMPORT: Duration = Duration::from_secs(300);
/// Time limit for one change. A change that takes longer, or that a later one overtakes, counts as not observed.
pub const CHANGE: Duration = Duration::from_secs(10);
/// Lifetime of a watch in seconds, longer than any run.
pub const WATCH_SECONDS: u32 = 7_200;
/// Time without writes after which the agents count as settled.
pub const QUIET: Duration = Duration::from_secs(2);
/// Time limit for the agents to settle.
pub const SETTLED: Duration = Duration::from_secs(60);
/// Maximum endpoints of a slice, because their addresses differ only in the last octet here.
pub const ENDPOINTS: usize = 250;
