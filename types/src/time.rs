//! Moments on a cluster's wall clock.

use std::ops::{Add, Sub};
use std::time::Duration;

// no limit: this number converts units
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// Microseconds since 1970-01-01T00:00:00Z. The clock is the clock of the cluster in which the time was read.
///
/// Arithmetic saturates, so that a nonsensical time in an object does not make an agent panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// Returns the time this many seconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(MICROSECONDS_PER_SECOND))
    }

    /// Returns the time this many microseconds later, or earlier if `micros` is negative.
    #[must_use]
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Returns the time without fractions of a second, as the Kubernetes type `metav1.Time` stores it.
    #[must_use]
    pub fn whole_seconds(self) -> Self {
        Self(self.0.div_euclid(MICROSECONDS_PER_SECOND) * MICROSECONDS_PER_SECOND)
    }

    /// Returns the time that has passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_microseconds(duration)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_microseconds(duration)))
    }
}

/// Returns a duration in microseconds, at most `i64::MAX`.
#[must_use]
pub fn saturating_microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_panicking() {
        let last = Timestamp(i64::MAX);
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(last.plus_micros(1), last);
        assert_eq!(Timestamp::from_seconds(i64::MAX), last);
        assert_eq!(Timestamp(i64::MIN) - Duration::from_secs(1), Timestamp(i64::MIN));
        assert_eq!(Timestamp::EPOCH.since(Timestamp::from_seconds(1)), Duration::ZERO);
    }

    #[test]
    fn whole_seconds_are_cut_towards_the_past() {
        assert_eq!(Timestamp(5_700_000).whole_seconds(), Timestamp(5_000_000));
        assert_eq!(Timestamp(-1).whole_seconds(), Timestamp(-1_000_000));
    }
}
