//! [`Ages`]: gauges that grow with time, computed at each scrape.

use std::collections::HashMap;
use std::time::Duration;

use prometheus::GaugeVec;
use prometheus::core::{Atomic, Collector, Desc, GenericGaugeVec};
use prometheus::proto::{Gauge, MetricFamily};
use tokio::time::Instant;

/// Gauges in seconds that grow with tokio's clock. A gauge that its owner sets would stop changing exactly when the
/// owner stops.
#[derive(Clone, Debug)]
pub struct Ages {
    /// Start of each age, in seconds after `origin`. Converted to an age at each scrape.
    since: GaugeVec,
    origin: Instant,
}

impl Ages {
    pub(super) fn new(since: GaugeVec) -> Self {
        Self { since, origin: Instant::now() }
    }

    /// Sets the age of the series with these labels. From now on, the age grows by itself.
    pub fn set(&self, labels: &[&str], age: Duration) {
        self.since.with_label_values(labels).set(self.origin.elapsed().as_secs_f64() - age.as_secs_f64());
    }

    /// Sets the age of the series to 0. The age does not grow until the next [`Ages::set`].
    pub fn hold_at_zero(&self, labels: &[&str]) {
        self.since.with_label_values(labels).set(f64::INFINITY);
    }

    /// Removes the series with these labels.
    pub fn forget(&self, labels: &[&str]) {
        let _ = self.since.remove_label_values(labels);
    }

    /// Removes the series with this value of the label `controller`.
    pub(super) fn forget_with(&self, controller: &str) {
        forget(&self.since, controller);
    }
}

impl Collector for Ages {
    fn desc(&self) -> Vec<&Desc> {
        self.since.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = self.origin.elapsed().as_secs_f64();
        let mut families = self.since.collect();
        for metric in families.iter_mut().flat_map(MetricFamily::mut_metric) {
            let since = metric.get_gauge().get_value();
            let mut age = Gauge::default();
            age.set_value((now - since).max(0.0));
            metric.set_gauge(age);
        }
        families
    }
}

/// Removes the series with this value of the label `controller`.
pub(super) fn forget<P: Atomic>(gauges: &GenericGaugeVec<P>, controller: &str) {
    for metric in gauges.collect().iter().flat_map(MetricFamily::get_metric) {
        let labels: HashMap<&str, &str> =
            metric.get_label().iter().map(|label| (label.name(), label.value())).collect();
        if labels.get("controller") == Some(&controller) {
            // Removing fails if the series is gone already, which is fine.
            let _ = gauges.remove(&labels);
        }
    }
}
