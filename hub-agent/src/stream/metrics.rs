//! Metrics of the slice stream.

use super::clocks::Clocks;
use crate::metrics::{
    STREAM_BYTES, STREAM_CLOCK_OFFSET, STREAM_CLOCK_UNCERTAINTY, STREAM_DELAY, STREAM_MESSAGES, STREAM_QUEUE,
    STREAM_REFUSALS, STREAMS,
};
use fleetnet_core::clocks::Clock;
use prometheus::{GaugeVec, HistogramVec, IntCounterVec, IntGauge, Registry};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;

#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(super) streams: IntGauge,
    messages: IntCounterVec,
    bytes: IntCounterVec,
    refusals: IntCounterVec,
    delay: HistogramVec,
    offset: GaugeVec,
    uncertainty: GaugeVec,
}

impl Metrics {
    /// Creates and registers the metrics.
    ///
    /// # Errors
    /// If the registry has a metric of one of these names already.
    pub(crate) fn new(clocks: &Arc<Clocks>, registry: &Registry) -> Result<Self, prometheus::Error> {
        let clocks = Arc::clone(clocks);
        STREAM_QUEUE.read_gauges(registry, move || clocks.waiting())?;
        Ok(Self {
            streams: STREAMS.gauge(registry)?,
            messages: STREAM_MESSAGES.counters(registry)?,
            bytes: STREAM_BYTES.counters(registry)?,
            refusals: STREAM_REFUSALS.counters(registry)?,
            delay: STREAM_DELAY.histograms(registry)?,
            offset: STREAM_CLOCK_OFFSET.float_gauges(registry)?,
            uncertainty: STREAM_CLOCK_UNCERTAINTY.float_gauges(registry)?,
        })
    }

    pub(super) fn passed(&self, direction: &str, message: &str, bytes: usize) {
        self.messages.with_label_values(&[direction, message]).inc();
        self.bytes.with_label_values(&[direction]).inc_by(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    pub(super) fn refused(&self, code: Code) {
        self.refusals.with_label_values(&[name(code)]).inc();
    }

    pub(super) fn acknowledged(&self, member: &str, delay: Duration) {
        self.delay.with_label_values(&[member]).observe(delay.as_secs_f64());
    }

    pub(super) fn clock(&self, member: &str, clock: Clock) {
        #[allow(clippy::cast_precision_loss, reason = "a metric is a float, and people read it")]
        let seconds = |micros: i64| micros as f64 / 1e6;
        self.offset.with_label_values(&[member]).set(seconds(clock.offset_micros));
        self.uncertainty.with_label_values(&[member]).set(seconds(clock.uncertainty_micros));
    }

    /// Drops the series of a member whose stream ended.
    pub(super) fn forget(&self, member: &str) {
        // Ignore a missing series: a short stream may have none.
        let _ = self.delay.remove_label_values(&[member]);
        let _ = self.offset.remove_label_values(&[member]);
        let _ = self.uncertainty.remove_label_values(&[member]);
    }
}

/// Returns the name of a status code, as in the gRPC documentation.
fn name(code: Code) -> &'static str {
    match code {
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::Unavailable => "UNAVAILABLE",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Cancelled => "CANCELLED",
        _ => "INTERNAL",
    }
}
