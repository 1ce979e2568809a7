//! All limits of this crate.

use std::time::Duration;

/// Time for one request: 5 s. A healthy API server answers in less than a second, so a longer wait only delays the
/// report.
pub(crate) const REQUEST: Duration = Duration::from_secs(5);

/// Time for a whole reading: 30 s. A person waits for the result.
pub(crate) const READING: Duration = Duration::from_secs(30);

/// Number of objects in one page of a list. A larger page makes the API server hold more memory at once.
pub(crate) const PAGE_OBJECTS: u32 = 500;

/// Maximum number of objects in one list: 100,000. The limit bounds the memory of the command line. A longer list is
/// not known.
pub(crate) const LIST_OBJECTS: usize = 100_000;

/// Maximum number of requests in flight to one API server. More would use up the share that API Priority and Fairness
/// gives to one user.
pub(crate) const REQUESTS_IN_FLIGHT: usize = 8;

/// Age of a change, in seconds, before a missing reaction counts as a fault. The agents react within a second, and
/// retry a temporary failure several times in 10 s.
pub(crate) const SETTLED_SECONDS: i64 = 10;

/// Time after a change, in seconds, above which a write is not counted as its arrival: 10 minutes. The agents retry
/// even a rejected write after this time, so a later write has another cause.
pub(crate) const WAY_SECONDS: i64 = 600;

/// Age of a request to the hub, in seconds, before a missing answer counts as a fault: 30 s, longer than a change of
/// the leader.
pub(crate) const ANSWERED_SECONDS: i64 = 30;

/// Time without a heartbeat, in seconds, after which a member is silent: six heartbeats of 10 s.
pub(crate) const SILENT_SECONDS: i64 = 60;

/// Time without a renewal, in seconds, after which nobody holds a Lease. The agents' Leases last 15 s at most.
pub const LEASE_SECONDS: i64 = 60;

/// Maximum difference between the clocks of a member and the hub, in milliseconds. Latency samples are wrong by this
/// difference.
pub(crate) const CLOCK_MILLISECONDS: i64 = 2_000;

/// Latency target for changes, in milliseconds: 99 % of all changes arrive within 750 ms.
pub(crate) const TARGET_MILLISECONDS: f64 = 750.0;

/// Minimum number of samples for a statement about latency. Fewer samples say little about the 99th percentile.
pub(crate) const SAMPLES_MIN: u64 = 20;

/// Time for one answer of an API server, in milliseconds, above which the server is slow.
pub(crate) const SLOW_MILLISECONDS: u64 = 1_000;

/// Maximum number of names or addresses that a message lists. For further ones, the message has only their number.
pub(crate) const LISTED: usize = 3;

/// Maximum length of a server's answer in a message, in characters, if the answer is no Status object: a page of a
/// proxy can be long.
pub(crate) const MESSAGE_CHARS: usize = 200;

/// Maximum number of addresses that `test connectivity` tries for each exporter, port and family. More addresses of one
/// pod network say little more.
pub(crate) const ADDRESSES_TESTED: usize = 3;

/// Maximum number of ports of a Service that `test connectivity` tries.
pub(crate) const PORTS_TESTED: usize = 4;

/// Time for one connection of `test connectivity`, in seconds. The first repetition of a lost packet comes after 1 s.
pub(crate) const CONNECT_SECONDS: u32 = 3;

/// Additional time for the addresses of a name, in seconds: a resolver asks again after 5 s.
pub(crate) const RESOLVE_SECONDS: u32 = 6;

/// Maximum number of connections that a pod tries at once. Each one is a process, and the pod has little memory.
pub(crate) const CONNECTIONS_AT_ONCE: usize = 32;
