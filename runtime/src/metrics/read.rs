//! Gauges whose values are read at each scrape. A gauge that its owner sets would stop changing exactly when the owner
//! is stuck.

use prometheus::IntGaugeVec;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

/// Gauges with one label. A function returns all series.
pub(super) struct ReadGauges<F> {
    gauges: IntGaugeVec,
    read: F,
}

impl<F: Fn() -> Vec<(String, usize)>> ReadGauges<F> {
    pub(super) const fn new(gauges: IntGaugeVec, read: F) -> Self {
        Self { gauges, read }
    }
}

impl<F: Fn() -> Vec<(String, usize)> + Send + Sync> Collector for ReadGauges<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.gauges.reset();
        for (label, value) in (self.read)() {
            self.gauges.with_label_values(&[label]).set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        self.gauges.collect()
    }
}
