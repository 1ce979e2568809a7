//! [`Due`]: when a Service that something has touched is planned.

use fleetnet_runtime::clock::Timestamp;
use std::time::Duration;

/// The earliest time that anything asked for: what comes later never postpones it, so that a batch is counted from its
/// first change, and what comes at once does not wait for what may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due(Option<Timestamp>);

impl Due {
    /// It is to be planned at that time or before.
    pub(super) fn by(&mut self, at: Timestamp) {
        self.0 = Some(self.0.map_or(at, |due| due.min(at)));
    }

    /// Until when there is nothing to do. A wait of more than `longest` was asked for before the clock went back.
    pub(super) fn waits_until(self, now: Timestamp, longest: Duration) -> Option<Timestamp> {
        self.0.filter(|due| *due > now && *due <= now + longest)
    }

    /// Whether anything asked for a time.
    pub(super) const fn is_some(self) -> bool {
        self.0.is_some()
    }

    /// Everything so far is dealt with.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_earliest_wish_counts() {
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
