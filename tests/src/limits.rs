//! All limits of the harness.

use std::time::Duration;

/// Threads of the runtime that all tests of a process share.
pub const WORKER_THREADS: usize = 2;
/// Log lines that are kept of one process; older ones are dropped.
pub const LOG_LINES: usize = 20_000;
/// Log lines of each process that a failure shows.
pub const LOG_LINES_SHOWN: usize = 40;
/// Time limit of a single wait, also on a machine that is busy with other work.
pub const EVENTUALLY: Duration = Duration::from_secs(120);
/// Time limit of a test, without its turns and builds.
pub const TEST: Duration = Duration::from_secs(600);
/// Additional time for a test that blocks its thread, before its process is ended.
pub const STUCK: Duration = Duration::from_secs(30);
/// Interval of checks of a test's time.
pub const WATCH: Duration = Duration::from_millis(500);
/// Waits that the message of a slow test shows.
pub const WAITS_SHOWN: usize = 8;
/// Time limit of the start of a control plane.
pub const CONTROL_PLANE_START: Duration = Duration::from_secs(300);
/// Time limit of the start or end of a process.
pub const PROCESS: Duration = Duration::from_secs(120);
/// Attempts if a port is taken between its choice and its use.
pub const PORT_ATTEMPTS: usize = 5;
/// Interval of checks of what cannot be watched: a file, a port that is not open yet.
pub const POLL: Duration = Duration::from_millis(10);
/// Largest number of members of a fleet.
pub const MEMBERS: usize = 3;
/// Largest answer of an agent's admin port, in bytes.
pub const ADMIN_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Orders to a supervisor that may wait.
pub const ORDERS: usize = 1;
/// Attempts to remove a scratch folder: a process that was just killed may still write there.
pub const REMOVALS: usize = 100;
/// Interval of these attempts.
pub const BETWEEN_REMOVALS: Duration = Duration::from_millis(50);
