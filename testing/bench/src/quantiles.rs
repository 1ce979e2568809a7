//! Percentiles of measured durations.

use serde::Serialize;
use std::time::Duration;

/// Percentiles of measured durations in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Number of measured durations.
    pub count: usize,
    pub p50_milliseconds: f64,
    pub p90_milliseconds: f64,
    pub p99_milliseconds: f64,
    pub longest_milliseconds: f64,
}

impl Quantiles {
    /// Computes percentiles. Each percentile is one of the measured durations (nearest-rank method).
    #[must_use]
    pub fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let Some(longest) = samples.last() else { return Self::default() };
        let rank = |percent: usize| milliseconds(samples[(samples.len() * percent).div_ceil(100).max(1) - 1]);
        Self {
            count: samples.len(),
            p50_milliseconds: rank(50),
            p90_milliseconds: rank(90),
            p99_milliseconds: rank(99),
            longest_milliseconds: milliseconds(*longest),
        }
    }
}

/// Times of the same changes by the agents and by the baseline.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared {
    pub agents: Quantiles,
    pub baseline: Quantiles,
    /// Median time of the agents divided by the median time of the baseline.
    pub p50_ratio: f64,
    /// 99th percentile of the agents' times divided by the 99th percentile of the baseline's times.
    pub p99_ratio: f64,
}

impl Compared {
    #[must_use]
    pub fn of(agents: Vec<Duration>, baseline: Vec<Duration>) -> Self {
        let (agents, baseline) = (Quantiles::of(agents), Quantiles::of(baseline));
        let p50_ratio = ratio(agents.p50_milliseconds, baseline.p50_milliseconds);
        Self { agents, baseline, p50_ratio, p99_ratio: ratio(agents.p99_milliseconds, baseline.p99_milliseconds) }
    }
}

/// Returns a duration in milliseconds, with a precision of one microsecond.
#[must_use]
pub fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns `one` divided by `other`, with two decimals.
#[must_use]
pub fn ratio(one: f64, other: f64) -> f64 {
    (one / other * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::Quantiles;
    use std::time::Duration;

    #[test]
    fn percentiles_are_samples() {
        let of = Quantiles::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(
            (of.count, of.p50_milliseconds, of.p90_milliseconds, of.p99_milliseconds, of.longest_milliseconds),
            (200, 100.0, 180.0, 198.0, 200.0)
        );
        assert_eq!(Quantiles::of(Vec::new()), Quantiles::default());
        assert_eq!(Quantiles::of(vec![Duration::from_micros(1_500)]).p99_milliseconds, 1.5);
    }
}
