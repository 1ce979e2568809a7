//! Meter for the cost of repeated work on one thread.

use std::time::Duration;

/// Meter that runs work repeatedly and measures its cost.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    budget: Duration,
}

/// Cost of one run of the work.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Number of runs that were timed.
    pub iterations: u64,
    /// Processor time of one run in nanoseconds.
    pub nanoseconds: f64,
    /// Number of allocations in one run.
    pub allocations: f64,
    /// Bytes allocated in one run.
    pub bytes: f64,
}

/// Number of runs before the measurement. The number is even, because some work alternates between two states: after an
/// even number of runs, the work is in its first state again. `COUNTED`, the number of runs in which allocations are
/// counted, is even for the same reason.
const WARM_UP: u64 = 4;
const COUNTED: u64 = 4;

impl Meter {
    /// Returns a meter that spends `budget` of processor time on timed runs.
    #[must_use]
    pub const fn new(budget: Duration) -> Self {
        Self { budget }
    }

    /// Measures the cost of `work`. Allocations are counted in separate runs that are not timed.
    pub fn measure(self, mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
        let mut repeat = |times: u64| (0..times).try_for_each(|_| work());
        repeat(WARM_UP)?;
        let mut outcome = Ok(());
        let counted = allocation_counter::measure(|| outcome = repeat(COUNTED));
        outcome?;
        let (iterations, taken) = self.time(repeat)?;
        #[allow(clippy::cast_precision_loss, reason = "figures of fewer than 2^52")]
        let each = |sum: u64, times: u64| sum as f64 / times as f64;
        Ok(Cost {
            iterations,
            nanoseconds: each(u64::try_from(taken.as_nanos())?, iterations),
            allocations: each(counted.count_total, COUNTED),
            bytes: each(counted.bytes_total, COUNTED),
        })
    }

    /// Runs the work in batches of increasing size, so that the clock is read rarely. Returns the number of runs, and
    /// the processor time of all runs.
    fn time(self, mut repeat: impl FnMut(u64) -> anyhow::Result<()>) -> anyhow::Result<(u64, Duration)> {
        let began = processor_time();
        let (mut done, mut batch) = (0, 2);
        loop {
            repeat(batch)?;
            done += batch;
            let taken = processor_time().saturating_sub(began);
            if taken >= self.budget {
                return Ok((done, taken));
            }
            if taken < self.budget / 8 {
                batch *= 2;
            }
        }
    }
}

/// Stopwatch for the processor time of one part of the work. The time includes two readings of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
    began: Duration,
    taken: Duration,
    times: u32,
}

impl Stopwatch {
    pub fn start(&mut self) {
        self.began = processor_time();
    }

    pub fn stop(&mut self) {
        self.taken += processor_time().saturating_sub(self.began);
        self.times += 1;
    }

    /// Returns the mean time that the part took.
    #[must_use]
    pub fn mean_nanoseconds(&self) -> f64 {
        self.taken.as_secs_f64() * 1e9 / f64::from(self.times)
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let taken = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(taken).unwrap_or_default()
}
