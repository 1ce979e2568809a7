//! The two histograms that the project is watched by (spec section 3), and how good their samples are.

use fleetnet_agent::metrics::{counter, histogram};
use fleetnet_core::ids::{Text, Timestamp};
use fleetnet_core::latency::{BUCKETS_MILLISECONDS, latency};
use fleetnet_core::member::ServiceLatency;
use prometheus::{HistogramVec, IntCounterVec, Registry};
use std::collections::BTreeSet;
use tracing::debug;

/// The histograms, with this cluster's id.
#[derive(Clone)]
pub struct Latencies {
    cluster: String,
    slices: HistogramVec,
    /// The clusters of which there are series.
    origins: BTreeSet<Text>,
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
            origins: BTreeSet::new(),
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
    pub fn slice_imported(&mut self, origin: &Text, first: bool, exported_since: Option<Timestamp>, now: Timestamp) {
        let Some(since) = exported_since else {
            debug!(%origin, "an imported slice says nothing of when it was exported: no latency sample");
            return;
        };
        let sample = latency(since, now);
        let first = if first { "true" } else { "false" };
        self.slices.with_label_values(&[origin, &*self.cluster, first]).observe(sample.milliseconds);
        if !self.origins.contains(origin) {
            self.origins.insert(origin.clone());
        }
        self.count("endpointslice_export_import", sample.clamped);
    }

    /// Drops what was measured of clusters from which nothing comes any more.
    pub fn forget_departed(&mut self, is_origin: impl Fn(&Text) -> bool) {
        let departed: Vec<Text> = self.origins.iter().filter(|origin| !is_origin(origin)).cloned().collect();
        for origin in departed {
            for first in ["true", "false"] {
                // It need not have a series of both.
                let _ = self.slices.remove_label_values(&[&*origin, &*self.cluster, first]);
            }
            self.origins.remove(&origin);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_a_departed_cluster_are_dropped_and_those_of_others_stay() {
        let registry = Registry::new();
        let mut latencies = Latencies::new("member-1", &registry).expect("a new registry");
        let origins = || {
            let families = registry.gather();
            let metrics = families.iter().filter(|family| family.name().contains("endpointslice_export_import"));
            let labels = metrics.flat_map(|family| family.get_metric()).flat_map(|metric| metric.get_label());
            let origins = labels.filter(|label| label.name() == "origin_cluster_id");
            origins.map(|label| label.value().to_owned()).collect::<Vec<_>>()
        };
        for (origin, first) in [("member-2", true), ("member-2", false), ("member-3", true)] {
            latencies.slice_imported(&origin.into(), first, Some(Timestamp(0)), Timestamp(5_000));
        }
        assert_eq!(origins(), ["member-2", "member-2", "member-3"]);
        latencies.forget_departed(|origin| &**origin != "member-2");
        assert_eq!(origins(), ["member-3"]);
        latencies.forget_departed(|_| true);
        assert_eq!(origins(), ["member-3"]);
    }
}
