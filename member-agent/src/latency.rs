//! Latency metrics of export and import: histograms, and a counter of the samples that had to be corrected.

use crate::metrics::{LATENCY_SAMPLES, SERVICE_LATENCY, SLICE_LATENCY};
use fleetnet_core::member::ServiceLatency;
use fleetnet_core::member::latency::latency;
use fleetnet_types::{ClusterId, Timestamp};
use prometheus::{HistogramVec, IntCounterVec, Registry};
use std::collections::BTreeSet;
use tracing::{debug, trace};

/// Values of the label `metric` in the counter of samples.
const SLICES: &str = "endpointslice_export_import";
const SERVICES: &str = "service_export";

/// Difference of the clocks of the two clusters in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// The difference is part of the sample.
    Raw,
    /// The slice stream measured the difference, and the sample is without it.
    Corrected,
}

impl Clocks {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Corrected => "corrected",
        }
    }
}

/// Latency histograms, labelled with this cluster's id.
#[derive(Clone)]
pub struct Latencies {
    cluster: String,
    slices: HistogramVec,
    /// Exporting members with metric series. [`Latencies::forget_departed`] drops the series of members that no longer
    /// export.
    origins: BTreeSet<ClusterId>,
    services: HistogramVec,
    samples: IntCounterVec,
}

impl Latencies {
    /// Creates and registers the metrics.
    ///
    /// # Errors
    /// If the registry has a metric of one of these names already.
    pub fn new(cluster: &str, registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            cluster: cluster.to_owned(),
            slices: SLICE_LATENCY.histograms(registry)?,
            origins: BTreeSet::new(),
            services: SERVICE_LATENCY.histograms(registry)?,
            samples: LATENCY_SAMPLES.counters(registry)?,
        })
    }

    /// Observes the latency of a slice that was just imported.
    pub fn slice_imported(
        &mut self,
        origin: &ClusterId,
        is_first: bool,
        exported_since: Option<(Timestamp, Clocks)>,
        now: Timestamp,
    ) {
        let Some((since, clocks)) = exported_since else {
            trace!(%origin, "no latency sample: the imported slice has no time of its export");
            return;
        };
        let sample = latency(since, now);
        let destination = &*self.cluster;
        if since >= now {
            trace!(
                %origin,
                destination,
                is_first,
                "the clocks of the two clusters differ: the import has an earlier time than the export, and the \
                 sample is 1 s"
            );
        }
        debug!(milliseconds = sample.milliseconds, %origin, destination, is_first, "latency of an imported slice");
        let first = if is_first { "true" } else { "false" };
        self.slices.with_label_values(&[origin, &*self.cluster, first]).observe(sample.milliseconds);
        if !self.origins.contains(origin) {
            self.origins.insert(origin.clone());
        }
        self.count(origin, SLICES, clocks, sample.clamped);
    }

    /// Drops the metric series of members that no longer export anything to this cluster.
    pub fn forget_departed(&mut self, is_origin: impl Fn(&ClusterId) -> bool) {
        let departed: Vec<ClusterId> = self.origins.iter().filter(|origin| !is_origin(origin)).cloned().collect();
        for origin in departed {
            for first in ["true", "false"] {
                // Ignore a missing series: a member may have only the series for first imports or only the series for
                // later imports.
                let _ = self.slices.remove_label_values(&[&*origin, &*self.cluster, first]);
            }
            for clock in ["raw", "corrected", "clamped"] {
                // As above, a member may have only one of the series.
                let _ = self.samples.remove_label_values(&[&*origin, SLICES, clock]);
            }
            self.origins.remove(&origin);
        }
    }

    /// Observes the latency of an exported Service, once the hub has an outcome for the export.
    pub fn service_exported(&self, exported: &ServiceLatency) {
        let Some(since) = exported.exported_since else { return };
        let sample = latency(since, exported.outcome_at);
        debug!(milliseconds = sample.milliseconds, origin = self.cluster, "latency of an exported Service");
        self.services.with_label_values(&[&self.cluster]).observe(sample.milliseconds);
        self.count(&self.cluster, SERVICES, Clocks::Raw, sample.clamped);
    }

    fn count(&self, origin: &str, metric: &str, clocks: Clocks, clamped: bool) {
        let clock = if clamped { "clamped" } else { clocks.as_str() };
        self.samples.with_label_values(&[origin, metric, clock]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_runtime::process::logging::captured::Captured;
    use fleetnet_types::ObjectName;

    fn raw(since: i64) -> Option<(Timestamp, Clocks)> {
        Some((Timestamp(since), Clocks::Raw))
    }

    #[test]
    fn each_sample_is_logged_from_level_2_and_what_is_wrong_with_one_from_level_4() {
        let lines = |verbosity| {
            let mut latencies = Latencies::new("member-1", &Registry::new()).expect("a new registry");
            let log = Captured::at(verbosity, &["member_agent"]);
            latencies.slice_imported(&"member-2".into(), true, raw(1_000_000), Timestamp(1_012_500));
            latencies.slice_imported(&"member-2".into(), false, raw(1_000_000), Timestamp(999_000));
            latencies.slice_imported(&"member-3".into(), false, None, Timestamp(0));
            log.take()
        };
        let raw = r#"DEBUG latency of an imported slice milliseconds=12.5 origin=member-2 destination="member-1" is_first=true"#;
        let clamped = r#"DEBUG latency of an imported slice milliseconds=1000.0 origin=member-2 destination="member-1" is_first=false"#;
        let none: [&str; 0] = [];
        assert_eq!(lines(1), none);
        assert_eq!(lines(2), [raw, clamped]);
        let negative = "TRACE the clocks of the two clusters differ: the import has an earlier time than the export, \
                        and the sample is 1 s \
                        origin=member-2 destination=\"member-1\" is_first=false";
        let absent = "TRACE no latency sample: the imported slice has no time of its export origin=member-3";
        assert_eq!(lines(4), [raw, negative, clamped, absent]);
    }

    #[test]
    fn samples_are_counted_by_what_became_of_the_difference_of_two_clocks() {
        let registry = Registry::new();
        let mut latencies = Latencies::new("member-1", &registry).expect("a new registry");
        let origin = "member-2".into();
        latencies.slice_imported(&origin, true, raw(0), Timestamp(5_000));
        latencies.slice_imported(&origin, false, raw(5_000), Timestamp(0));
        latencies.slice_imported(&origin, false, raw(0), Timestamp(200_000_000));
        latencies.slice_imported(&origin, false, Some((Timestamp(0), Clocks::Corrected)), Timestamp(5_000));
        latencies.slice_imported(&origin, false, None, Timestamp(0));
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics are text");
        let samples: Vec<_> =
            text.lines().filter(|line| line.starts_with("fleet_networking_latency_samples")).collect();
        let prefix = "fleet_networking_latency_samples_total";
        let expected = [("clamped", 2), ("corrected", 1), ("raw", 1)].map(|(clock, count)| {
            let labels =
                format!(r#"clock="{clock}",metric="endpointslice_export_import",origin_cluster_id="member-2""#);
            format!("{prefix}{{{labels}}} {count}")
        });
        assert_eq!(samples, expected);
    }

    /// Also rule T27.
    #[test]
    fn the_series_of_a_departed_cluster_are_dropped_and_those_of_others_stay() {
        let registry = Registry::new();
        let mut latencies = Latencies::new("member-1", &registry).expect("a new registry");
        let origins = || {
            let families = registry.gather();
            let metrics = families.iter().filter(|family| family.name().starts_with("fleet_networking_"));
            let labels = metrics.flat_map(|family| family.get_metric()).flat_map(|metric| metric.get_label());
            let origins = labels.filter(|label| label.name() == "origin_cluster_id");
            origins.map(|label| label.value().to_owned()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        let (exported_since, outcome_at) = (Some(Timestamp(0)), Timestamp(5_000));
        let service = ObjectName::new("work", "app");
        latencies.service_exported(&ServiceLatency { service, exported_since, outcome_at });
        for (origin, first) in [("member-2", true), ("member-2", false), ("member-3", true)] {
            latencies.slice_imported(&origin.into(), first, raw(0), Timestamp(5_000));
        }
        assert_eq!(origins(), ["member-1", "member-2", "member-3"]);
        latencies.forget_departed(|origin| &**origin != "member-2");
        assert_eq!(origins(), ["member-1", "member-3"]);
        latencies.forget_departed(|_| true);
        assert_eq!(origins(), ["member-1", "member-3"]);
    }
}
