//! Metrics that only the member agent exports. The metrics of its EndpointSlice controller are in `endpointslice::metrics`, with
//! the names of kube-controller-manager.

use fleetnet_core::member::latency::BUCKETS_MILLISECONDS;
use fleetnet_runtime::metrics::{Definition, Kind};

/// Histogram with the same name, labels and buckets as in the Go agents.
pub(crate) const SLICE_LATENCY: Definition = Definition {
    name: "fleet_networking_endpointslice_export_import_duration_milliseconds",
    kind: Kind::Histogram(&BUCKETS_MILLISECONDS),
    labels: &["origin_cluster_id", "destination_cluster_id", "is_first_import"],
    help: "Time from the first sight of an EndpointSlice change in the exporting member to its import in this member.",
};
/// Histogram with the same name, labels and buckets as in the Go agents.
pub(crate) const SERVICE_LATENCY: Definition = Definition {
    name: "fleet_networking_service_export_duration_milliseconds",
    kind: Kind::Histogram(&BUCKETS_MILLISECONDS),
    labels: &["origin_cluster_id"],
    help: "Time from the first sight of a Service change in this member to the hub's outcome of conflict resolution.",
};
pub(crate) const LATENCY_SAMPLES: Definition = Definition {
    name: "fleet_networking_latency_samples_total",
    kind: Kind::Counter,
    labels: &["metric", "clock"],
    help: "Number of samples of the two latency histograms. clock=raw: the difference of two clocks as measured. \
           clock=clamped: the difference was not positive or too long, and was corrected.",
};
pub(crate) const ENDPOINTSLICES_SERVING: Definition = Definition {
    name: "fleetnet_endpointslices_serving",
    kind: Kind::Gauge,
    labels: &[],
    help: "1 while this agent makes the EndpointSlices of its cluster (--endpointslices), 0 while another controller does.",
};

pub const ALL: &[Definition] = &[SLICE_LATENCY, SERVICE_LATENCY, LATENCY_SAMPLES, ENDPOINTSLICES_SERVING];
