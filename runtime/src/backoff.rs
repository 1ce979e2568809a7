//! Back-off: waits after failures, which double between two bounds and get random jitter from a seeded generator. Does
//! no I/O.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::limits::{
    BACKOFF_FIRST, BACKOFF_LONGEST, REJECTED_RETRY, RETRY_AFTER_LONGEST, SLOW_BACKOFF_FIRST, SLOW_BACKOFF_LONGEST,
};

/// Back-off: the wait doubles with each failure in a row, from `first` to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// Back-off for failures that may pass by themselves, such as a timeout or a 5xx.
    pub const ORDINARY: Self = Self { first: BACKOFF_FIRST, longest: BACKOFF_LONGEST };
    /// Back-off for 403 and 404. These failures last until somebody grants a right or creates an object.
    pub const SLOW: Self = Self { first: SLOW_BACKOFF_FIRST, longest: SLOW_BACKOFF_LONGEST };
    /// Back-off for a write that the server rejected for its content (400, 413, 415, 422). The agent retries, because a
    /// policy or a schema may change, and no watch reports such a change.
    pub const REJECTED: Self = Self { first: REJECTED_RETRY, longest: REJECTED_RETRY };

    /// Returns a back-off with these bounds. A `longest` below `first` counts as `first`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest: longest.max(first) }
    }

    /// Returns the wait after this many failures in a row (at least 1), shortened at random by up to a quarter.
    pub fn wait(self, failures: u32, jitter: &mut Jitter) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.first.saturating_mul(1 << doublings).min(self.longest);
        whole - whole.mul_f64(0.25 * jitter.fraction())
    }
}

/// Returns the wait time of a `Retry-After` header, plus up to a tenth at random. So clients that failed at the same
/// time do not retry at the same time.
pub fn retry_after_wait(retry_after: Duration, jitter: &mut Jitter) -> Duration {
    let requested = retry_after.min(RETRY_AFTER_LONGEST);
    requested + requested.mul_f64(0.1 * jitter.fraction())
}

/// Seeded random generator for jitter. The same seed gives the same waits, so a simulation can be replayed.
#[derive(Clone, Debug)]
pub struct Jitter(fastrand::Rng);

impl Jitter {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a random number in the range.
    pub fn among(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.0.u64(range)
    }

    /// Returns a random fraction, from 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        self.0.f64()
    }
}

#[cfg(test)]
mod tests {
    use property::{cases, for_any};
    use proptest::prelude::{Just, Strategy, any, prop_oneof};

    use super::*;

    /// Also rule A8.
    #[test]
    fn waits_double_from_20_ms_to_30_s() {
        let mut jitter = Jitter::new(1);
        let longest_possible = |failures: u32| Duration::from_millis(20 * (1_u64 << (failures - 1)));
        for failures in 1..=11 {
            let wait = Backoff::ORDINARY.wait(failures, &mut jitter);
            let whole = longest_possible(failures).min(Duration::from_secs(30));
            assert!(wait <= whole && wait >= whole.mul_f64(0.75), "{failures}: {wait:?} of {whole:?}");
        }
        assert!(Backoff::ORDINARY.wait(12, &mut jitter) >= Duration::from_millis(22_500));
    }

    /// Also rule Q1.
    #[test]
    fn slow_waits_double_from_1_s_to_5_min() {
        let mut jitter = Jitter::new(1);
        let first = Backoff::SLOW.wait(1, &mut jitter);
        assert!(first <= Duration::from_secs(1) && first >= Duration::from_millis(750));
        let late = Backoff::SLOW.wait(20, &mut jitter);
        assert!(late <= Duration::from_secs(300) && late >= Duration::from_secs(225));
    }

    /// Returns a proptest strategy that generates numbers of failures in a row. Most of these numbers are so low that
    /// one more failure lengthens the wait.
    fn failures() -> impl Strategy<Value = u32> {
        prop_oneof![3 => 0_u32..14, 1 => any::<u32>(), 1 => Just(u32::MAX)]
    }

    #[test]
    fn a_wait_is_never_out_of_bounds() {
        for_any(cases(256), 20, &(failures(), any::<u64>()), |(failures, seed)| {
            let wait = Backoff::ORDINARY.wait(failures, &mut Jitter::new(seed));
            assert!(wait >= Duration::from_millis(15));
            assert!(wait <= Duration::from_secs(30));
            let longest = Duration::from_millis(22_500);
            [(wait < longest, "still growing"), (wait >= longest, "the longest"), (failures > 1_000, "after long")]
        });
    }

    #[test]
    fn more_failures_never_wait_less_than_half_as_many_doublings() {
        for_any(cases(256), 20, &(1_u32..10, any::<u64>()), |(failures, seed)| {
            let mut jitter = Jitter::new(seed);
            let now = Backoff::ORDINARY.wait(failures, &mut jitter);
            let then = Backoff::ORDINARY.wait(failures + 1, &mut jitter);
            assert!(then > now, "{then:?} after {now:?}");
            let second = Duration::from_secs(1);
            [(then < second, "less than a second"), (then >= second, "a second and more")]
        });
    }

    #[test]
    fn no_request_is_sent_before_the_retry_after_of_the_server() {
        let seconds = prop_oneof![1 => Just(0_u64), 5 => 1_u64..300];
        for_any(cases(256), 10, &(seconds, any::<u64>()), |(seconds, seed)| {
            let wait = retry_after_wait(Duration::from_secs(seconds), &mut Jitter::new(seed));
            assert!(wait >= Duration::from_secs(seconds));
            assert!(wait <= Duration::from_secs(seconds) * 11 / 10);
            [(seconds == 0, "at once"), (wait > Duration::from_secs(seconds), "later than named")]
        });
    }

    /// Also rule Q5.
    #[test]
    fn a_retry_after_of_an_hour_is_cut_to_five_minutes() {
        let wait = retry_after_wait(Duration::from_secs(3_600), &mut Jitter::new(1));
        assert!(wait >= Duration::from_secs(300) && wait <= Duration::from_secs(330), "{wait:?}");
    }

    #[test]
    fn equal_seeds_give_equal_waits() {
        for_any(cases(256), 200, &(any::<u64>(), any::<u64>()), |(seed, other)| {
            let waits =
                |mut jitter: Jitter| (1..20).map(|n| Backoff::ORDINARY.wait(n, &mut jitter)).collect::<Vec<_>>();
            assert_eq!(waits(Jitter::new(seed)), waits(Jitter::new(seed)));
            [(waits(Jitter::new(seed)) != waits(Jitter::new(other)), "unequal seeds give unequal waits")]
        });
    }
}
