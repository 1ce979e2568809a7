//! Time as an input: the server never reads the clock of the operating system.

use jiff::Timestamp;
use tokio::time::Instant;

/// Source of the wall-clock time.
///
/// Timers of the server use tokio's clock. An implementation should advance together with tokio's clock.
pub trait Clock: Send + Sync + 'static {
    /// Current time.
    fn now(&self) -> Timestamp;
}

/// Clock that starts at a given time and advances with tokio's clock.
#[derive(Clone, Debug)]
pub struct TokioClock {
    began: Timestamp,
    origin: Instant,
}

impl TokioClock {
    #[must_use]
    pub fn starting_at(began: Timestamp) -> Self {
        Self { began, origin: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.began.saturating_add(self.origin.elapsed()).unwrap_or(Timestamp::MAX)
    }
}

impl<F: Fn() -> Timestamp + Send + Sync + 'static> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}
