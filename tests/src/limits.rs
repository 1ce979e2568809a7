//! Every limit of the harness.

use std::time::Duration;

/// Threads of the runtime that all tests of a process share.
pub const WORKER_THREADS: usize = 2;
/// Log lines kept of one process; older ones are dropped.
pub const LOG_LINES: usize = 20_000;
/// Log lines of each process that a failure shows.
pub const LOG_LINES_SHOWN: usize = 40;
/// How long a thing that must come may take, on a machine that is busy with other work.
pub const EVENTUALLY: Duration = Duration::from_secs(120);
/// How long a test may take, its turns and builds left out.
pub const TEST: Duration = Duration::from_secs(600);
/// How much longer a test may take that blocks its thread, before its process is ended.
pub const STUCK: Duration = Duration::from_secs(30);
/// Between two looks at the time that a test has taken.
pub const WATCH: Duration = Duration::from_millis(500);
/// Waits that are shown of a test that takes too long.
pub const WAITS_SHOWN: usize = 8;
/// How long a control plane may take to be ready.
pub const CONTROL_PLANE_START: Duration = Duration::from_secs(300);
/// How long a process may take to start or to end.
pub const PROCESS: Duration = Duration::from_secs(120);
/// How often a port may turn out to be taken between its choice and its use.
pub const PORT_ATTEMPTS: usize = 5;
/// Between two looks at what cannot be watched: a file, a port that is not open yet.
pub const POLL: Duration = Duration::from_millis(10);
/// Members that a fleet can have.
pub const MEMBERS: usize = 3;
/// Bytes of one answer of an agent's admin port.
pub const ADMIN_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Orders to a supervisor that wait for their turn.
pub const ORDERS: usize = 1;
/// How often, and how long apart, the removal of a scratch folder is tried: another process that is being killed just
/// now may still write there.
pub const REMOVALS: usize = 100;
/// See [`REMOVALS`].
pub const BETWEEN_REMOVALS: Duration = Duration::from_millis(50);
