//! Limits of the commands, each with its reason.

use std::time::Duration;

/// Maximum number of results of parallel work that wait to be taken. At this number, the workers wait for the terminal.
pub(crate) const OUTCOMES: usize = 16;

/// Time limit of tests that run together, or of one slow test, with a fault. The slowest test takes 5 s without a
/// fault. A test that exceeds the limit catches its fault.
pub(crate) const LONGEST_FAULTY_TEST: Duration = Duration::from_secs(60);
/// A test that takes less time is quick, and runs with each fault that it reaches. Tables take milliseconds, and most
/// random histories of core a second.
pub(crate) const QUICK_TEST: Duration = Duration::from_millis(800);
/// Time that the first tests with a fault take together. Most faults are caught by the first few tests.
pub(crate) const FIRST_TESTS: Duration = Duration::from_millis(200);

/// Maximum size of an image's compressed layer. A node pulls the image before an agent can start there.
pub(crate) const IMAGE_BYTES: usize = 12_000_000;
/// Longest search of the simulator for a planted bug. A seed takes about 2 s on a busy machine.
pub(crate) const LONGEST_PLANTED: Duration = Duration::from_mins(20);
