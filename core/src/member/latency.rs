//! Latency samples for histograms. Values that cannot be right are corrected as in the Go agents.
//!
//! The exporting member records the time at which it first saw a change (`view/change_times.rs`), and writes this time
//! to the EndpointSliceExport as `exportedSince` (`export/slice.rs`). The importing member observes the latency when it
//! imports the change (`import/slice.rs`).

mod summary;

use crate::limits::LATENCY_MILLISECONDS_MAX;
use fleetnet_types::Timestamp;

pub(crate) use summary::Summary;

/// Latency in milliseconds that replaces a measured latency of 0 or less, which occurs if the clocks of the two
/// clusters differ by more than the latency.
// no limit: this number is a replacement value
pub const NEGATIVE_MILLISECONDS: f64 = 1_000.0;

/// Upper bounds of the histogram's buckets in milliseconds: the six bounds of the Go agents, and additional smaller
/// bounds.
pub const BUCKETS_MILLISECONDS: [f64; 19] = [
    1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 750.0, 1_000.0, 2_500.0, 5_000.0,
    10_000.0, 25_000.0, 50_000.0,
];

/// Latency between a change in the exporting cluster and its import, corrected for a histogram. The two times are from
/// the clocks of two clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Latency in milliseconds to observe.
    pub milliseconds: f64,
    /// True if the measured latency was not positive or too long, and was replaced.
    pub clamped: bool,
}

/// Import of a slice: the first one, or the import of a later change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import {
    First,
    Later,
}

/// Returns the latency from `since` to `now`, corrected for a histogram. It keeps fractions of a millisecond, which the
/// Go agents drop.
pub fn latency(since: Timestamp, now: Timestamp) -> Latency {
    #[allow(clippy::cast_precision_loss, reason = "a difference of 285 years still fits")]
    let milliseconds = (now.0 - since.0) as f64 / 1_000.0;
    if milliseconds <= 0.0 {
        Latency { milliseconds: NEGATIVE_MILLISECONDS, clamped: true }
    } else if milliseconds > LATENCY_MILLISECONDS_MAX {
        Latency { milliseconds: LATENCY_MILLISECONDS_MAX, clamped: true }
    } else {
        Latency { milliseconds, clamped: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule L7: The clocks of two clusters differ
    /// Then: A latency sample that is zero or negative counts as 1 s. A latency sample above 100 s counts as 100 s
    #[test]
    fn samples_are_raw_or_clamped() {
        let at = |now_micros| latency(Timestamp(1_000_000), Timestamp(now_micros));
        assert_eq!(at(1_012_500), Latency { milliseconds: 12.5, clamped: false });
        assert_eq!(at(1_000_000), Latency { milliseconds: 1_000.0, clamped: true });
        assert_eq!(at(400_000), Latency { milliseconds: 1_000.0, clamped: true });
        assert_eq!(at(101_000_000), Latency { milliseconds: 100_000.0, clamped: false });
        assert_eq!(at(101_000_001), Latency { milliseconds: 100_000.0, clamped: true });
    }

    /// Rule L8: The agent records a latency in a histogram
    /// Then: The histogram has the six buckets of the Go agents, and finer buckets below and between these six buckets
    #[test]
    fn the_old_bounds_are_kept() {
        let go_agents = [1_000.0, 2_500.0, 5_000.0, 10_000.0, 25_000.0, 50_000.0];
        let finer = [1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 150.0, 250.0, 500.0, 750.0];
        assert_eq!(BUCKETS_MILLISECONDS.to_vec(), [&finer[..], &go_agents].concat());
    }
}
