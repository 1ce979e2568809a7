//! What a latency sample is worth (seeds: the Go importer's rule; spec section 3).

use crate::ids::Timestamp;

/// Stands for a duration that cannot be: the clocks of two clusters differ by more than the change took.
pub const NEGATIVE_MILLISECONDS: f64 = 1_000.0;

/// Longer ones are cut to this: twice the Go agents' last bucket bound, so that averages stay readable.
pub const LONGEST_MILLISECONDS: f64 = 100_000.0;

/// Bucket bounds in milliseconds: the Go agents' six, and finer ones below and between them.
pub const BUCKETS_MILLISECONDS: [f64; 19] = [
    1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 750.0, 1_000.0, 2_500.0, 5_000.0,
    // fault L8.1: 50_000 ~> 60_000
    10_000.0, 25_000.0, 50_000.0,
];

/// A duration between two clocks, made fit for a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// What to observe.
    pub milliseconds: f64,
    /// The raw difference was not positive or was too long, and was replaced.
    pub clamped: bool,
}

/// The time from when a change was first seen to now, in whole milliseconds as the Go agents count it, but finer: the
/// part below a millisecond is kept.
pub fn latency(since: Timestamp, now: Timestamp) -> Latency {
    #[allow(clippy::cast_precision_loss, reason = "a difference of 285 years still fits")]
    let milliseconds = (now.0 - since.0) as f64 / 1_000.0;
    // fault L7.1: <= 0 ~> < 0
    if milliseconds <= 0.0 {
        Latency { milliseconds: NEGATIVE_MILLISECONDS, clamped: true }
    // fault L7.2: LONGEST_MILLISECONDS ~> 2.0 * LONGEST_MILLISECONDS
    } else if milliseconds > LONGEST_MILLISECONDS {
        Latency { milliseconds: LONGEST_MILLISECONDS, clamped: true }
    } else {
        Latency { milliseconds, clamped: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_raw_or_clamped() {
        let at = |now_micros| latency(Timestamp(1_000_000), Timestamp(now_micros));
        assert_eq!(at(1_012_500), Latency { milliseconds: 12.5, clamped: false });
        assert_eq!(at(1_000_000), Latency { milliseconds: 1_000.0, clamped: true });
        assert_eq!(at(400_000), Latency { milliseconds: 1_000.0, clamped: true });
        assert_eq!(at(101_000_000), Latency { milliseconds: 100_000.0, clamped: false });
        assert_eq!(at(101_000_001), Latency { milliseconds: 100_000.0, clamped: true });
    }

    #[test]
    fn the_old_bounds_are_kept() {
        let go_agents = [1_000.0, 2_500.0, 5_000.0, 10_000.0, 25_000.0, 50_000.0];
        let finer = [1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 750.0];
        assert_eq!(BUCKETS_MILLISECONDS.to_vec(), [&finer[..], &go_agents].concat());
    }
}
