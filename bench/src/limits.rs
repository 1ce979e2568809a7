//! Every limit of this crate.

use std::time::Duration;

/// Requests that the bare client, and the users, have under way at once in one cluster: as many as an agent's.
pub const IN_FLIGHT_PER_CLUSTER: usize = 32;
/// How long all of a first import may take.
pub const IMPORT: Duration = Duration::from_secs(300);
/// How long one change may take; one that takes longer, or that a later one overtook, counts as not seen.
pub const CHANGE: Duration = Duration::from_secs(10);
/// A watch lives so long: longer than anything here runs.
pub const WATCH_SECONDS: u32 = 7_200;
/// The agents count as settled when none of them has written for so long.
pub const QUIET: Duration = Duration::from_secs(2);
/// How long they may take to settle.
pub const SETTLED: Duration = Duration::from_secs(60);
/// Endpoints of one slice at most: Kubernetes' own limit of addresses that differ in one octet here.
pub const ENDPOINTS: usize = 250;
