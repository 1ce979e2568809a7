//! Limits of the commands, each with its reason.

use std::time::Duration;

/// Maximum number of outcomes of planted faults that wait to be printed. At this number, the workers wait for the terminal.
pub(crate) const OUTCOMES: usize = 16;

/// Time limit of one test with a fault. The slowest test takes 5 s without a fault. A test that exceeds the limit detects its
/// fault.
pub(crate) const LONGEST_FAULTY_TEST: Duration = Duration::from_secs(60);

/// Maximum size of an image's compressed layer. A node pulls the image before an agent can start there.
pub(crate) const IMAGE_BYTES: usize = 12_000_000;
/// Longest search of the simulator for a planted bug. A seed takes about 2 s on a busy machine.
pub(crate) const LONGEST_PLANTED: Duration = Duration::from_mins(20);
