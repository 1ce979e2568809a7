//! Time at which a Service with a change is planned: [`Due`].

use fleetnet_types::Timestamp;
use std::time::Duration;

/// Earliest time at which a plan of a Service was requested.
///
/// A later request never postpones the plan. So a batch period counts from its first change, and an immediate request
/// does not wait for a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due(Option<Timestamp>);

impl Due {
    /// Requests a plan at this time or earlier.
    pub(super) fn by(&mut self, at: Timestamp) {
        self.0 = Some(self.0.map_or(at, |due| due.min(at)));
    }

    /// Returns the time of the plan, or `None` if the plan is due now. A plan that is due in more than `longest` is
    /// also due now, because such a wait only occurs after the clock was set back.
    pub(super) fn waits_until(self, now: Timestamp, longest: Duration) -> Option<Timestamp> {
        self.0.filter(|due| *due > now && *due <= now + longest)
    }

    pub(super) const fn is_some(self) -> bool {
        self.0.is_some()
    }

    /// Clears the request, because a plan was made that covers all changes until now.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    /// Also rule Y8.
    #[test]
    fn the_earliest_time_counts() {
        let mut due = Due::default();
        assert_eq!(due.waits_until(NOON, SECOND), None, "nothing to wait for");
        due.by(NOON + SECOND);
        due.by(NOON + SECOND * 2);
        assert_eq!(due.waits_until(NOON, SECOND), Some(NOON + SECOND), "later never postpones");
        due.by(NOON);
        assert_eq!(due.waits_until(NOON, SECOND), None, "at once");
    }

    #[test]
    fn a_clock_that_went_back_makes_nobody_wait() {
        let mut due = Due::default();
        due.by(NOON + SECOND);
        assert_eq!(due.waits_until(NOON - Duration::from_secs(3_600), SECOND), None);
    }
}
