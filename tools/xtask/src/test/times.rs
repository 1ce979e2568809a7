//! Durations of the steps of `cargo xtask test`, and of each test.

use crate::stopwatch::{Stopwatch, human};
use std::time::Duration;

/// Number of slowest tests to print.
const SLOWEST: usize = 20;

/// Durations of steps, in their order, and of tests.
#[derive(Default)]
pub(super) struct Times {
    steps: Vec<(&'static str, Duration, bool)>,
    tests: Vec<(String, Duration)>,
}

impl Times {
    /// Runs a step and records its duration.
    pub(super) fn measure<T>(
        &mut self,
        step: &'static str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let stopwatch = Stopwatch::start();
        let outcome = work();
        self.steps.push((step, stopwatch.elapsed(), outcome.is_ok()));
        outcome
    }

    /// Adds the steps of work that ran at the same time.
    pub(super) fn append(&mut self, other: Self) {
        self.steps.extend(other.steps);
        self.tests.extend(other.tests);
    }

    pub(super) fn add_tests(&mut self, tests: Vec<(String, Duration)>) {
        self.tests.extend(tests);
    }

    pub(super) fn print(&self) {
        println!("\n{}", self.slowest());
        for (step, duration, passed) in &self.steps {
            println!("{step:<18} {:>14}{}", human(*duration), if *passed { "" } else { "  FAILED" });
        }
    }

    fn slowest(&self) -> String {
        let mut tests: Vec<&(String, Duration)> = self.tests.iter().collect();
        tests.sort_by(|(one, of_one), (other, of_other)| of_other.cmp(of_one).then_with(|| one.cmp(other)));
        let shown = tests.len().min(SLOWEST);
        let lines = tests.iter().take(SLOWEST).map(|(test, time)| format!("{:>14}  {test}\n", human(*time)));
        format!("the {shown} slowest of {} tests:\n{}", tests.len(), lines.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::Times;
    use std::time::Duration;

    #[test]
    fn the_slowest_tests_come_first_and_at_most_twenty() {
        let mut times = Times::default();
        times.add_tests((1..=19).map(|number| (format!("quick_{number:02}"), Duration::from_millis(10))).collect());
        let slow = [("slow", 61), ("slower", 90)];
        times.add_tests(slow.map(|(test, seconds)| (test.to_owned(), Duration::from_secs(seconds))).to_vec());
        let slowest = times.slowest();
        let lines: Vec<&str> = slowest.lines().collect();
        assert_eq!(lines.len(), 21);
        let first = [
            "the 20 slowest of 21 tests:",
            "    1 min 30 s  slower",
            "     1 min 1 s  slow",
            "         0.0 s  quick_01",
        ];
        assert_eq!(lines[..4], first);
    }
}
