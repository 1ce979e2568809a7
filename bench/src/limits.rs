//! Limits of the bench.

use std::time::Duration;

/// Maximum number of parallel requests of one client of the bench. Agents have the same limit.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// Time limit for a measured first import.
pub const IMPORT: Duration = Duration::from_secs(300);
/// Time limit for one measured change. A change that no watch shows within this time counts as not observed, for example
/// because a later change of the same slice replaced it.
pub const CHANGE: Duration = Duration::from_secs(10);
/// Lifetime of the bench's watches in seconds, longer than any run.
pub const WATCH_SECONDS: u32 = 7_200;
/// Time without writes after which the agents of a fleet count as settled.
pub const QUIET: Duration = Duration::from_secs(2);
/// Time limit for the agents of a fleet to settle.
pub const SETTLED: Duration = Duration::from_secs(60);
/// Maximum number of endpoints of a slice. The addresses of a slice in the bench differ only in the last octet, so a slice cannot
/// have many more than 250.
pub const ENDPOINTS: usize = 250;
