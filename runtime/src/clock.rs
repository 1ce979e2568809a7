//! Wall-clock timestamps that move with tokio's clock. Only this module reads the system clock.
//!
//! Durations, deadlines and timers use [`tokio::time::Instant`] everywhere. The wall clock is only for times that the
//! agent writes to objects or logs, or compares with times of other processes. The wall clock is tokio's clock plus an
//! offset, so a simulation that pauses tokio's time controls both.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use fleetnet_types::Timestamp;
use fleetnet_types::time::saturating_microseconds;
use tokio::time::Instant;

use crate::limits::CLOCK_REBASE_SECONDS;

/// Processor time that this thread has used. It does not advance while other threads run, and paused time in tests does
/// not stop it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorTime(Duration);

impl ProcessorTime {
    pub(crate) fn now() -> Self {
        let taken = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Self(Duration::try_from(taken).unwrap_or_default())
    }

    /// Returns the processor time since this reading. Valid only on the same thread and without an await in between.
    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// Converts a timestamp to `jiff`'s type. A time outside of the years -9999 to 9999 becomes the nearest time in this
/// range.
pub fn to_jiff(time: Timestamp) -> jiff::Timestamp {
    let nearest = if time.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_microsecond(time.0).unwrap_or(nearest)
}

/// Formats a timestamp as Kubernetes' `MicroTime`: RFC 3339 in UTC with six decimals.
pub fn micro_time(time: Timestamp) -> String {
    format!("{:.6}", to_jiff(time))
}

/// Wall clock. Clones share their state.
///
/// The time is tokio's clock plus an offset. In production the offset is read from the system clock every
/// [`CLOCK_REBASE_SECONDS`]. So time may jump, also backwards, after somebody sets the system clock. A virtual clock
/// never reads the system clock, and moves only with tokio's clock.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    /// Moment on tokio's clock at which the wall clock showed `offset`.
    origin: Instant,
    /// Wall time at `origin`, in microseconds since the epoch.
    offset: AtomicI64,
    /// Time of the next read of the system clock, in microseconds after `origin`. `None` in a virtual clock.
    next_rebase: Option<AtomicI64>,
}

impl Clock {
    /// Returns the system's wall clock, for production. Not for tests with paused time, in which this clock would jump.
    pub fn system() -> Self {
        Self(Arc::new(Inner {
            origin: Instant::now(),
            offset: AtomicI64::new(read_system_clock()),
            next_rebase: Some(AtomicI64::new(rebase_interval())),
        }))
    }

    /// Returns a clock that shows `start` now and from here on moves with tokio's clock only.
    pub fn virtual_at(start: Timestamp) -> Self {
        Self(Arc::new(Inner { origin: Instant::now(), offset: AtomicI64::new(start.0), next_rebase: None }))
    }

    /// Moves a virtual clock, forwards or backwards, by this many microseconds. Simulates somebody who sets the system
    /// clock.
    ///
    /// Tokio's clock does not change. A clock of [`Clock::system`] shows such a change within [`CLOCK_REBASE_SECONDS`].
    pub fn set_by(&self, microseconds: i64) {
        self.0.offset.fetch_add(microseconds, Ordering::Relaxed);
    }

    pub fn now(&self) -> Timestamp {
        let elapsed = saturating_microseconds(self.0.origin.elapsed());
        self.rebase_if_due(elapsed);
        Timestamp(self.0.offset.load(Ordering::Relaxed).saturating_add(elapsed))
    }

    fn rebase_if_due(&self, elapsed: i64) {
        let Some(next_rebase) = &self.0.next_rebase else { return };
        let due = next_rebase.load(Ordering::Relaxed);
        if elapsed < due {
            return;
        }
        // If several threads get here at the same time, only one of them reads the system clock. The other threads use
        // the old offset once more.
        let won = next_rebase
            .compare_exchange(due, elapsed.saturating_add(rebase_interval()), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if won {
            self.0.offset.store(read_system_clock().saturating_sub(elapsed), Ordering::Relaxed);
        }
    }
}

/// Detects steps of the wall clock. A step is a difference of a second or more between the time that passed on the wall
/// clock and on tokio's clock. Gradual adjustments of the wall clock add up to a step too.
#[derive(Debug)]
pub(crate) struct Steps {
    instant: Instant,
    time: Timestamp,
}

impl Steps {
    /// Starts to compare the two clocks now.
    pub(crate) fn of(clock: &Clock) -> Self {
        Self { instant: Instant::now(), time: clock.now() }
    }

    /// Returns by how many microseconds the wall clock was set since the last returned step, or since the start. The
    /// number is negative if the clock was set back. `None` for less than a second.
    pub(crate) fn take(&mut self, clock: &Clock) -> Option<i64> {
        let now = Self::of(clock);
        let expected = self.time + now.instant.duration_since(self.instant);
        let by = now.time.0.saturating_sub(expected.0);
        if by.unsigned_abs() < 1_000_000 {
            return None;
        }
        *self = now;
        Some(by)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.0.next_rebase.is_some() { "system" } else { "virtual" };
        write!(formatter, "Clock({kind}, {})", micro_time(self.now()))
    }
}

fn rebase_interval() -> i64 {
    saturating_microseconds(Duration::from_secs(CLOCK_REBASE_SECONDS))
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's wall clock")]
fn read_system_clock() -> i64 {
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since_epoch) => saturating_microseconds(since_epoch),
        Err(before_epoch) => -saturating_microseconds(before_epoch.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_moves_with_paused_time_alone() {
        let clock = Clock::virtual_at(NOON);
        assert_eq!(clock.now(), NOON);

        tokio::time::advance(Duration::from_micros(1_500_000)).await;

        assert_eq!(clock.now().0, 1_800_000_001_500_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_is_never_rebased() {
        let clock = Clock::virtual_at(NOON);
        tokio::time::advance(Duration::from_secs(CLOCK_REBASE_SECONDS * 10)).await;
        assert_eq!(clock.now(), NOON + Duration::from_secs(CLOCK_REBASE_SECONDS * 10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_clock_takes_its_offset_again_from_the_system() {
        let clock = Clock::system();
        let before = clock.now();

        // Paused time in a test runs ahead of the real time on the system clock. The wall clock follows paused time
        // until it reads the system clock again. Then the wall clock jumps back to the time of the system clock.
        tokio::time::advance(Duration::from_secs(CLOCK_REBASE_SECONDS) - Duration::from_millis(1)).await;
        let ahead = clock.now();
        tokio::time::advance(Duration::from_millis(1)).await;
        let rebased = clock.now();

        assert!(ahead.since(before) >= Duration::from_secs(CLOCK_REBASE_SECONDS - 1));
        assert!(rebased < ahead, "{rebased:?} was read after {ahead:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn clones_of_a_clock_agree() {
        let clock = Clock::virtual_at(NOON);
        let clone = clock.clone();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now(), clone.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_is_noticed_once_in_either_direction_and_time_that_passes_is_none() {
        const HOUR: i64 = 3_600_000_000;
        let clock = Clock::virtual_at(NOON);
        let mut steps = Steps::of(&clock);
        tokio::time::advance(Duration::from_secs(86_400)).await;
        assert_eq!(steps.take(&clock), None);
        for by in [HOUR, -HOUR, -1_000_000] {
            clock.set_by(by);
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(steps.take(&clock), Some(by));
            assert_eq!(steps.take(&clock), None);
        }
        clock.set_by(600_000);
        assert_eq!(steps.take(&clock), None, "less than a second");
        clock.set_by(600_000);
        assert_eq!(steps.take(&clock), Some(1_200_000), "it adds up");
    }

    #[test]
    fn times_are_written_as_micro_time_and_nonsensical_ones_as_the_nearest() {
        assert_eq!(micro_time(Timestamp(1_800_000_000_000_042)), "2027-01-15T08:00:00.000042Z");
        assert_eq!(micro_time(Timestamp::EPOCH), "1970-01-01T00:00:00.000000Z");
        assert_eq!(to_jiff(Timestamp(i64::MAX)), jiff::Timestamp::MAX);
        assert_eq!(to_jiff(Timestamp(i64::MIN)), jiff::Timestamp::MIN);
    }
}
