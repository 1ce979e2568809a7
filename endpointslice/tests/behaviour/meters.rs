//! Metrics of a controller that reconciles a simulated cluster, with both settings of `DualStackCount`: [`Meters`].

use endpointslice::apply::Applied;
use endpointslice::metrics::{DualStackCount, Metrics, MetricsOptions};
use endpointslice::model::Service;
use endpointslice::{Config, Plan};
use prometheus::{Registry, TextEncoder};

/// Metrics of one controller, for each setting of `DualStackCount`.
#[derive(Debug)]
pub(crate) struct Meters([Meter; 2]);

#[derive(Debug)]
struct Meter {
    registry: Registry,
    metrics: Metrics,
}

/// Values of the metrics, in this order:
///
/// - gauges: desired slices, slices, desired endpoints
/// - sums: endpoints added and removed; slices created, updated and deleted; slices changed by syncs
pub(crate) type Nine = [u64; 9];

impl Meters {
    pub(crate) fn new(config: &Config, topology_hints: bool) -> Self {
        Self([DualStackCount::Both, DualStackCount::Last].map(|dual_stack| {
            let registry = Registry::new();
            let options = MetricsOptions { dual_stack, topology_hints };
            let metrics = Metrics::new(&registry, config, options).expect("a fresh registry");
            Meter { registry, metrics }
        }))
    }

    pub(crate) fn planned(&mut self, service: &Service, plan: &Plan) {
        for meter in &mut self.0 {
            meter.metrics.planned(service, plan);
        }
    }

    pub(crate) fn applied<E>(&self, service: &Service, plan: &Plan, applied: &Applied<E>) {
        for meter in &self.0 {
            meter.metrics.applied(service, plan, applied);
        }
    }

    /// Returns the values with `DualStackCount::Both`, then the values with `DualStackCount::Last`.
    pub(crate) fn read(&self) -> [Nine; 2] {
        self.0.each_ref().map(Meter::read)
    }

    /// Returns the metrics of changed slices and of Services by traffic distribution, as text with labels and values.
    pub(crate) fn read_labels(&self) -> Vec<String> {
        let [meter, _] = &self.0;
        let labelled = ["endpointslices_changed_per_sync_sum{", "services_count_by_traffic_distribution{"];
        let samples = meter.samples().into_iter();
        samples.filter(|(series, _)| labelled.iter().any(|it| series.starts_with(it))).map(shown).collect()
    }
}

fn shown((series, value): (String, u64)) -> String {
    format!("{series} {value}")
}

impl Meter {
    fn read(&self) -> Nine {
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
