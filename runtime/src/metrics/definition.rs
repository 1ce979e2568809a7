//! [`Definition`] of a metric: name, labels and help text. Every agent crate lists its definitions in its `metrics.rs`,
//! and registers its metrics through them.

use super::ages::Ages;
use super::read::ReadGauges;
use prometheus::core::Collector;
use prometheus::{
    Error, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

/// Name, type, labels and help text of a metric. `docs/reference/metrics.md` is generated from the definitions.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Type of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Counter,
    Gauge,
    /// Histogram with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

impl Kind {
    /// Returns the type as in the text format of Prometheus.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// Each method creates and registers the metric. A method fails if the registry already has a metric of that name, or
/// if the definition has another type.
impl Definition {
    pub fn counter(&self, registry: &Registry) -> Result<IntCounter, Error> {
        self.check(matches!(self.kind, Kind::Counter))?;
        registered(IntCounter::with_opts(self.opts())?, registry)
    }

    pub fn counters(&self, registry: &Registry) -> Result<IntCounterVec, Error> {
        self.check(matches!(self.kind, Kind::Counter))?;
        registered(IntCounterVec::new(self.opts(), self.labels)?, registry)
    }

    pub fn gauge(&self, registry: &Registry) -> Result<IntGauge, Error> {
        self.check(matches!(self.kind, Kind::Gauge))?;
        registered(IntGauge::with_opts(self.opts())?, registry)
    }

    pub fn gauges(&self, registry: &Registry) -> Result<IntGaugeVec, Error> {
        self.check(matches!(self.kind, Kind::Gauge))?;
        registered(IntGaugeVec::new(self.opts(), self.labels)?, registry)
    }

    /// For values with fractions.
    pub fn float_gauges(&self, registry: &Registry) -> Result<GaugeVec, Error> {
        self.check(matches!(self.kind, Kind::Gauge))?;
        registered(GaugeVec::new(self.opts(), self.labels)?, registry)
    }

    pub fn ages(&self, registry: &Registry) -> Result<Ages, Error> {
        self.check(matches!(self.kind, Kind::Gauge))?;
        registered(Ages::new(GaugeVec::new(self.opts(), self.labels)?), registry)
    }

    /// Registers gauges with one label, whose series `read` returns at each scrape.
    pub fn read_gauges(
        &self,
        registry: &Registry,
        read: impl Fn() -> Vec<(String, usize)> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.check(matches!(self.kind, Kind::Gauge))?;
        registry.register(Box::new(ReadGauges::new(IntGaugeVec::new(self.opts(), self.labels)?, read)))
    }

    pub fn histogram(&self, registry: &Registry) -> Result<Histogram, Error> {
        registered(Histogram::with_opts(self.histogram_opts()?)?, registry)
    }

    pub fn histograms(&self, registry: &Registry) -> Result<HistogramVec, Error> {
        registered(HistogramVec::new(self.histogram_opts()?, self.labels)?, registry)
    }

    fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }

    fn histogram_opts(&self) -> Result<HistogramOpts, Error> {
        let Kind::Histogram(buckets) = self.kind else {
            return Err(self.wrong_type());
        };
        Ok(HistogramOpts::new(self.name, self.help).buckets(buckets.to_vec()))
    }

    fn check(&self, has_type: bool) -> Result<(), Error> {
        if has_type { Ok(()) } else { Err(self.wrong_type()) }
    }

    fn wrong_type(&self) -> Error {
        Error::Msg(format!("the metric {} is a {}", self.name, self.kind.as_str()))
    }
}

/// Registers a clone of the metric and returns the metric. Clones share their state.
fn registered<C: Collector + Clone + 'static>(metric: C, registry: &Registry) -> Result<C, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
