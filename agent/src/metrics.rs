//! Creation and registration of Prometheus histograms and counters.

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

/// Creates and registers a histogram.
pub fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> Result<HistogramVec, prometheus::Error> {
    let histogram = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?;
    registry.register(Box::new(histogram.clone()))?;
    Ok(histogram)
}

/// Creates and registers a counter.
pub fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(counter.clone()))?;
    Ok(counter)
}
