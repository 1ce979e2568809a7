//! Metrics of a controller that reconciles a simulated cluster: [`Meters`].

use endpointslice::apply::Applied;
use endpointslice::metrics::Metrics;
use endpointslice::model::Service;
use endpointslice::{Config, Plan};
use prometheus::{Registry, TextEncoder};

/// Metrics of one controller.
#[derive(Debug)]
pub(crate) struct Meters {
    registry: Registry,
    metrics: Metrics,
}

/// Values of the metrics, in this order:
///
/// - gauges: desired slices, slices, desired endpoints
/// - sums: endpoints added and removed; slices created, updated and deleted; slices changed by syncs
pub(crate) type Nine = [u64; 9];

impl Meters {
    pub(crate) fn new(config: &Config) -> Self {
        let registry = Registry::new();
        let metrics = Metrics::new(&registry, config).expect("a fresh registry");
        Self { registry, metrics }
    }

    pub(crate) fn planned(&mut self, service: &Service, plan: &Plan) {
        self.metrics.planned(service, plan);
    }

    pub(crate) fn applied<E>(&self, service: &Service, plan: &Plan, applied: &Applied<E>) {
        self.metrics.applied(service, plan, applied);
    }

    /// Returns the metrics of changed slices and of Services by traffic distribution, as text with labels and values.
    pub(crate) fn read_labels(&self) -> Vec<String> {
        let labelled = ["endpointslices_changed_per_sync_sum{", "services_count_by_traffic_distribution{"];
        let samples = self.samples().into_iter();
        samples.filter(|(series, _)| labelled.iter().any(|it| series.starts_with(it))).map(shown).collect()
    }

    pub(crate) fn read(&self) -> Nine {
        let samples = self.samples();
        let sum_of = |begin: &str| {
            samples.iter().filter(|(series, _)| series.starts_with(begin)).map(|(_, value)| value).sum::<u64>()
        };
        [
            sum_of("desired_endpoint_slices"),
            sum_of("num_endpoint_slices"),
            sum_of("endpoints_desired"),
            sum_of("endpoints_added_per_sync_sum"),
            sum_of("endpoints_removed_per_sync_sum"),
            sum_of("changes{operation=\"create\"}"),
            sum_of("changes{operation=\"update\"}"),
            sum_of("changes{operation=\"delete\"}"),
            sum_of("endpointslices_changed_per_sync_sum"),
        ]
    }

    /// Returns the name with labels and the value of each line in the metrics' text form. The common prefix of the
    /// names is removed.
    fn samples(&self) -> Vec<(String, u64)> {
        let text = TextEncoder::new().encode_to_string(&self.registry.gather()).expect("an exposition");
        let samples = text.lines().filter_map(|line| line.strip_prefix("endpoint_slice_controller_"));
        let read = |sample: &str| {
            let (series, value) = sample.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().expect("a whole number")))
        };
        samples.filter_map(read).collect()
    }
}

fn shown((series, value): (String, u64)) -> String {
    format!("{series} {value}")
}
