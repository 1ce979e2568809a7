//! Time, which is given: the server never asks the system.

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the wall-clock time. Timers use tokio's clock; a clock should move with it.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// A clock that began at a given time and moves with tokio's.
#[derive(Clone, Debug)]
pub struct TokioClock {
    began: Timestamp,
    origin: Instant,
}

impl TokioClock {
    /// Begins at `began`, now.
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
