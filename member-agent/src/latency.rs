//! The two histograms that the project is watched by (spec section 3), and how good their samples are.

use fleetnet_agent::metrics::{counter, histogram};
use fleetnet_core::ids::Timestamp;
use fleetnet_core::latency::{BUCKETS_MILLISECONDS, latency};
use fleetnet_core::member::ServiceLatency;
use prometheus::{HistogramVec, IntCounterVec, Registry};
use tracing::debug;

/// The histograms, with this cluster's id.
#[derive(Clone)]
pub struct Latencies {
    cluster: String,
    slices: HistogramVec,
    services: HistogramVec,
    samples: IntCounterVec,
}

impl Latencies {
    /// Makes and registers them.
    ///
    /// # Errors
    /// If the registry has one of these names already.
    pub fn new(cluster: &str, registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            cluster: cluster.to_owned(),
            slices: histogram(
                registry,
                "fleet_networking_endpointslice_export_import_duration_milliseconds",
                "The duration of an endpointslice export: from when a change was first seen in the origin cluster to when \
                 it was imported into the destination cluster.",
                &["origin_cluster_id", "destination_cluster_id", "is_first_import"],
                &BUCKETS_MILLISECONDS,
            )?,
            services: histogram(
                registry,
                "fleet_networking_service_export_duration_milliseconds",
                "The duration of a service export: from when a Service's change was first seen to when the hub had judged \
                 its export.",
                &["origin_cluster_id"],
                &BUCKETS_MILLISECONDS,
            )?,
            samples: counter(
                registry,
                "fleet_networking_latency_samples_total",
                "Samples of the two duration histograms by what became of the difference of two clocks: raw, or clamped \
                 because it was not positive or too long.",
                &["metric", "clock"],
            )?,
        })
    }

    /// A slice was imported just now.
    pub fn slice_imported(&self, origin: &str, first: bool, exported_since: Option<Timestamp>, now: Timestamp) {
        let Some(since) = exported_since else {
            debug!(origin, "an imported slice says nothing of when it was exported: no latency sample");
            return;
        };
        let sample = latency(since, now);
        let first = if first { "true" } else { "false" };
        self.slices.with_label_values(&[origin, &self.cluster, first]).observe(sample.milliseconds);
        self.count("endpointslice_export_import", sample.clamped);
    }

    /// The hub judged an export.
    pub fn service_exported(&self, exported: &ServiceLatency) {
        let Some(since) = exported.exported_since else { return };
        let sample = latency(since, exported.judged_at);
        self.services.with_label_values(&[&self.cluster]).observe(sample.milliseconds);
        self.count("service_export", sample.clamped);
    }

    fn count(&self, metric: &str, clamped: bool) {
        self.samples.with_label_values(&[metric, if clamped { "clamped" } else { "raw" }]).inc();
    }
}
