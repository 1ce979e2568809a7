//! Limits of the end-to-end test harness.

use std::time::Duration;

/// Number of threads of the runtime that all tests of a process share.
pub const WORKER_THREADS: usize = 2;
/// Maximum number of log lines that are kept of each process. Older lines are dropped.
pub const LOG_LINES: usize = 20_000;
/// Maximum number of log lines of each process that the message of a failed test shows.
pub const LOG_LINES_SHOWN: usize = 40;
/// Time limit of a single wait. Long enough for a machine that is busy with other work.
pub const EVENTUALLY: Duration = Duration::from_secs(120);
/// Time limit of a test. The limit does not count the time in which the test waits for the exclusive use of servers, or
/// for builds.
pub const TEST: Duration = Duration::from_secs(600);
/// A test that blocks its thread does not notice its time limit. If a test runs this much longer than its limit, the
/// whole process ends.
pub const STUCK: Duration = Duration::from_secs(30);
/// Interval at which the time of each test is checked.
pub const WATCH: Duration = Duration::from_millis(500);
/// Maximum number of waits that the message about a slow test shows, the latest first.
pub const WAITS_SHOWN: usize = 8;
/// Time limit to start a control plane.
pub const CONTROL_PLANE_START: Duration = Duration::from_secs(300);
/// Time limit to start or end a process.
pub const PROCESS: Duration = Duration::from_secs(120);
/// Time limit of promtool, which plays hours of metrics in each test of an alert.
pub const PROMTOOL: Duration = Duration::from_secs(480);
/// Maximum number of attempts to start a server. Another process may take the chosen port before the server opens the
/// port.
pub const PORT_ATTEMPTS: usize = 5;
/// Interval at which to check something that cannot be watched: a file, or a port that is not open yet.
pub const POLL: Duration = Duration::from_millis(10);
/// Maximum number of members of a shared fleet.
pub const MEMBERS: usize = 3;
/// Maximum number of bytes that are read of a response of an agent's admin port.
pub const ADMIN_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Capacity of the supervisor's channel for commands.
pub const ORDERS: usize = 1;
/// Maximum number of attempts to remove a process's scratch folder. A process that was just killed may still write to
/// the folder.
pub const REMOVALS: usize = 100;
/// Interval between two attempts to remove a scratch folder.
pub const BETWEEN_REMOVALS: Duration = Duration::from_millis(50);
