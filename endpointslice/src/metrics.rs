//! [`Metrics`]: the metrics of kube-controller-manager's EndpointSlice controller, under the same names.
//!
//! So existing dashboards and alerts keep working. Names, help texts, labels and buckets are those of Kubernetes 1.35,
//! where all of these metrics are alpha. Only the gauges of a dual-stack Service differ: they count both address types,
//! and not only the last one as in kube-controller-manager (kubernetes/kubernetes #126004).
//!
//! ```
//! use endpointslice::Config;
//! use endpointslice::metrics::{Metrics, SyncResult};
//!
//! let registry = prometheus::Registry::new();
//! let mut metrics = Metrics::new(&registry, &Config::default())?;
//! // For every Service that is planned: `metrics.planned(&service, &plan)`, then with the feature `apply`
//! // `metrics.applied(&service, &plan, &applied)`, and at the end the result:
//! metrics.synced(SyncResult::Success);
//! # Ok::<(), prometheus::Error>(())
//! ```

mod cache;

pub use cache::{SliceCounts, Totals};

#[cfg(feature = "apply")]
use crate::apply::{Applied, Written};
use crate::config::Config;
use crate::hints::{Preference, is_topology_aware};
use crate::model::Service;
use crate::plan::{FamilyPlan, Plan};
use crate::text::Text;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    exponential_buckets,
};

const PREFIX: &str = "endpoint_slice_controller";

/// Operation on a slice, for the metric of changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// The slice was created.
    Create,
    /// The slice was updated.
    Update,
    /// The slice was deleted.
    Delete,
}

impl Operation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Result of a sync. A sync is one plan of a Service and the writes of this plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SyncResult {
    /// All writes succeeded, or none was needed.
    Success,
    /// Nothing was planned, because the watch cache does not yet contain an own write.
    Stale,
    /// A write failed, or a pod could not be published yet.
    Error,
}

impl SyncResult {
    /// Returns the value of the label `result`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Stale => "stale",
            Self::Error => "error",
        }
    }
}

/// Metrics of one EndpointSlice controller.
#[derive(Debug)]
pub struct Metrics {
    counts: SliceCounts,
    endpoints_added: Histogram,
    endpoints_removed: Histogram,
    endpoints_desired: IntGauge,
    slices: IntGauge,
    slices_desired: IntGauge,
    changes: IntCounterVec,
    slices_changed: HistogramVec,
    syncs: IntCounterVec,
    services_by_traffic_distribution: IntGaugeVec,
}

impl Metrics {
    /// Creates the metrics and registers them.
    ///
    /// # Errors
    /// If the registry already has a metric of the same name, for example from a second controller.
    pub fn new(registry: &Registry, config: &Config) -> Result<Self, Error> {
        let metrics = Self {
            counts: SliceCounts::new(config),
            endpoints_added: added_or_removed(
                "endpoints_added_per_sync",
                "Number of endpoints added on each Service sync",
            )?,
            endpoints_removed: added_or_removed(
                "endpoints_removed_per_sync",
                "Number of endpoints removed on each Service sync",
            )?,
            endpoints_desired: IntGauge::with_opts(opts("endpoints_desired", "Number of endpoints desired"))?,
            slices: IntGauge::with_opts(opts("num_endpoint_slices", "Number of EndpointSlices"))?,
            slices_desired: IntGauge::with_opts(opts(
                "desired_endpoint_slices",
                "Number of EndpointSlices that would exist with perfect endpoint allocation",
            ))?,
            changes: IntCounterVec::new(opts("changes", "Number of EndpointSlice changes"), &["operation"])?,
            slices_changed: HistogramVec::new(
                histogram_opts(
                    "endpointslices_changed_per_sync",
                    "Number of EndpointSlices changed on each Service sync",
                ),
                &["topology", "traffic_distribution"],
            )?,
            syncs: IntCounterVec::new(opts("syncs", "Number of EndpointSlice syncs"), &["result"])?,
            services_by_traffic_distribution: IntGaugeVec::new(
                opts(
                    "services_count_by_traffic_distribution",
                    "Number of Services using some specific trafficDistribution",
                ),
                &["traffic_distribution"],
            )?,
        };
        for collector in metrics.collectors() {
            registry.register(collector)?;
        }
        Ok(metrics)
    }

    fn collectors(&self) -> [Box<dyn Collector>; 9] {
        [
            Box::new(self.endpoints_added.clone()),
            Box::new(self.endpoints_removed.clone()),
            Box::new(self.endpoints_desired.clone()),
            Box::new(self.slices.clone()),
            Box::new(self.slices_desired.clone()),
            Box::new(self.changes.clone()),
            Box::new(self.slices_changed.clone()),
            Box::new(self.syncs.clone()),
            Box::new(self.services_by_traffic_distribution.clone()),
        ]
    }

    /// Records that a Service was planned. Call this before the plan is applied, because the plan also counts if a
    /// write fails.
    pub fn planned(&mut self, service: &Service, plan: &Plan) {
        self.sync_begun(plan);
        self.counted(service, plan);
    }

    /// Records that a sync begins with this plan.
    ///
    /// Use this in a controller that may plan again before all writes of a plan have ended. Such a controller calls
    /// this once for each sync, and [`Metrics::counted`] for every plan.
    pub fn sync_begun(&self, plan: &Plan) {
        for FamilyPlan { stats, .. } in &plan.families {
            self.endpoints_added.observe(stats.added as f64);
            self.endpoints_removed.observe(stats.removed as f64);
        }
    }

    /// Updates the gauges to the state that the Service has after this plan.
    pub fn counted(&mut self, service: &Service, plan: &Plan) {
        let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
        let families = plan.families.iter().map(|family| (&family.stats.groups[..], family.suppressed_creates));
        self.counts.set_slices(namespace, name, families);
        self.counts.set_traffic_distribution(namespace, name, traffic_distribution(service));
        self.publish();
    }

    /// Records that a plan was applied, fully or in part.
    #[cfg(feature = "apply")]
    pub fn applied<E>(&self, service: &Service, plan: &Plan, applied: &Applied<E>) {
        for written in &applied.written {
            self.changed(match written {
                Written::Created(_) => Operation::Create,
                Written::Updated(_) => Operation::Update,
                Written::Deleted(_) => Operation::Delete,
            });
        }
        let is_complete = |family: &&FamilyPlan| applied.completed.contains(&family.draft.address_type);
        self.completed(service, plan.families.iter().filter(is_complete));
    }

    /// Records one write of a slice, for controllers that do not use the feature `apply`.
    pub fn changed(&self, operation: Operation) {
        self.changes.with_label_values(&[operation.as_str()]).inc();
    }

    /// Observes the number of slices that a sync changed, for each of these address types. All planned writes of these
    /// types must have succeeded. For controllers that do not use the feature `apply`.
    pub fn completed<'a>(&self, service: &Service, families: impl IntoIterator<Item = &'a FamilyPlan>) {
        let topology = if is_topology_aware(service) { "Auto" } else { "Disabled" };
        let traffic_distribution = traffic_distribution(service).map_or("", Text::as_str);
        for FamilyPlan { draft, suppressed_creates, .. } in families {
            // Slices that are not created because the Service is being deleted count too, as in
            // kube-controller-manager.
            let slices = draft.creates.len() + suppressed_creates + draft.updates.len() + draft.deletes.len();
            self.slices_changed.with_label_values(&[topology, traffic_distribution]).observe(slices as f64);
        }
    }

    /// Records the end of a sync and its result.
    pub fn synced(&self, result: SyncResult) {
        self.syncs.with_label_values(&[result.as_str()]).inc();
    }

    /// Forgets a Service that was deleted, and updates the gauges.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        self.counts.forget(namespace, service);
        self.publish();
    }

    fn publish(&mut self) {
        let Totals { endpoints, slices, desired_slices } = self.counts.totals();
        self.endpoints_desired.set(gauge(endpoints));
        self.slices.set(gauge(slices));
        self.slices_desired.set(gauge(desired_slices));
        for (value, services) in self.counts.take_changed_distributions() {
            self.services_by_traffic_distribution.with_label_values(&[value.as_str()]).set(gauge(services));
        }
    }
}

/// Lists all metrics of the controller, for tools. Do not register this collector, because [`Metrics::new`] has
/// registered the metrics already.
impl Collector for Metrics {
    fn desc(&self) -> Vec<&Desc> {
        let histograms = [self.endpoints_added.desc(), self.endpoints_removed.desc(), self.slices_changed.desc()];
        let gauges = [&self.endpoints_desired, &self.slices, &self.slices_desired].map(Collector::desc);
        let counters = [self.changes.desc(), self.syncs.desc(), self.services_by_traffic_distribution.desc()];
        [histograms, gauges, counters].concat().concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.collectors().iter().flat_map(|metric| metric.collect()).collect()
    }
}

/// Returns the traffic distribution of the Service if its hints follow the traffic distribution.
fn traffic_distribution(service: &Service) -> Option<&Text> {
    let is_followed = Preference::of(service).is_some() && !is_topology_aware(service);
    service.spec.traffic_distribution.as_ref().filter(|_| is_followed)
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(format!("{PREFIX}_{name}"), format!("[ALPHA] {help}"))
}

fn histogram_opts(name: &str, help: &str) -> HistogramOpts {
    HistogramOpts::new(format!("{PREFIX}_{name}"), format!("[ALPHA] {help}"))
}

/// Returns a histogram with buckets 2, 4, 8 and so on to 32768.
fn added_or_removed(name: &str, help: &str) -> Result<Histogram, Error> {
    Histogram::with_opts(histogram_opts(name, help).buckets(exponential_buckets(2.0, 2.0, 15)?))
}

#[cfg(test)]
mod tests;
