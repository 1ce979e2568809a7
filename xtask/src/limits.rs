//! Limits of the commands, each with its reason.

use std::time::Duration;

/// Outcomes of faults that wait to be printed. A worker that is faster than a terminal waits.
pub(crate) const OUTCOMES: usize = 16;

/// Time limit of one test with a fault. The slowest takes 5 s without one; a fault that makes a test run longer is detected.
pub(crate) const LONGEST_FAULTY_TEST: Duration = Duration::from_secs(60);
