//! Metrics that only the member agent exports. Those of its EndpointSlice controller are in
//! `endpointslice_controller::metrics` and, with the names of kube-controller-manager, in `endpointslice::metrics`.

use fleetnet_core::member::latency::BUCKETS_MILLISECONDS;
use fleetnet_runtime::metrics::{Definition, Kind};

/// Histogram with the same name, labels and buckets as in the Go agents.
pub(crate) const SLICE_LATENCY: Definition = Definition {
    name: "fleet_networking_endpointslice_export_import_duration_milliseconds",
    kind: Kind::Histogram(&BUCKETS_MILLISECONDS),
    labels: &["origin_cluster_id", "destination_cluster_id", "is_first_import"],
    help: "Time from when the exporting member first sees a change of an EndpointSlice until this member has imported the \
           change.",
};
/// Histogram with the same name, labels and buckets as in the Go agents.
pub(crate) const SERVICE_LATENCY: Definition = Definition {
    name: "fleet_networking_service_export_duration_milliseconds",
    kind: Kind::Histogram(&BUCKETS_MILLISECONDS),
    labels: &["origin_cluster_id"],
    help: "Time from when this member first sees a change of a Service until the hub agent accepts the export or reports \
           a conflict.",
};
pub(crate) const LATENCY_SAMPLES: Definition = Definition {
    name: "fleet_networking_latency_samples_total",
    kind: Kind::Counter,
    labels: &["origin_cluster_id", "metric", "clock"],
    help: "Number of samples of the two latency histograms. clock=raw: the difference of the end's and the \
           start's clock is the sample. clock=clamped: this difference was not positive, and the sample is 1 s, or it was over \
           100 s, and the sample is 100 s. clock=corrected: the slice stream measured the difference of the clocks, and the sample \
           is without it.",
};
pub(crate) const HUB_TOKEN_EXPIRY: Definition = Definition {
    name: "fleetnet_hub_token_expiry_timestamp_seconds",
    kind: Kind::Gauge,
    labels: &[],
    help: "Time at which the token for the hub expires, in seconds since 1970. 0 if the token has no expiry or is no JSON Web \
           Token. Absent without a token file.",
};
pub(crate) const HUB_TOKEN_LIFE: Definition = Definition {
    name: "fleetnet_hub_token_life_seconds",
    kind: Kind::Gauge,
    labels: &[],
    help: "Time from the issue of the token for the hub to its expiry. 0 if the token has no expiry or does not say when it was \
           issued. Absent without a token file.",
};
pub(crate) const TOKEN_RENEWALS: Definition = Definition {
    name: "fleetnet_hub_token_renewals_total",
    kind: Kind::Counter,
    labels: &["result"],
    help: "Number of attempts to renew the token for the hub (--hub-token-secret), by result: done, unneeded (a token that does \
           not expire) or failed.",
};
pub(crate) const TOKEN_RENEWAL_FAILING: Definition = Definition {
    name: "fleetnet_hub_token_renewal_failing",
    kind: Kind::Gauge,
    labels: &[],
    help: "1 if the last attempt of this process to renew the token for the hub failed, else 0.",
};

pub(crate) const STREAM_CONNECTED: Definition = Definition {
    name: "fleetnet_slice_stream_connected",
    kind: Kind::Gauge,
    labels: &[],
    help: "1 while this member has a slice stream to the hub agent, else 0. Without it, changes arrive as objects.",
};
pub(crate) const STREAM_ENDS: Definition = Definition {
    name: "fleetnet_slice_stream_ends_total",
    kind: Kind::Counter,
    labels: &["reason"],
    help: "Number of slice streams that ended or were not opened. reason: no_service_account, token, connection and refused \
           before it is open; status, closed, silent, broken, moved, token_renewed, not_leading and stopped after that.",
};

pub(crate) const SELECTION_SWITCHES: Definition = Definition {
    name: "fleetnet_cluster_selection_switches_total",
    kind: Kind::Counter,
    labels: &["direction"],
    help: "Number of times that a port of an imported Service got another result of its cluster selectors \
           (--cluster-selection). direction: failover (the preferred clusters have no ready endpoint left) or failback.",
};

pub const ALL: &[Definition] = &[
    SLICE_LATENCY,
    SERVICE_LATENCY,
    LATENCY_SAMPLES,
    endpointslice_controller::metrics::SERVING,
    HUB_TOKEN_EXPIRY,
    HUB_TOKEN_LIFE,
    TOKEN_RENEWALS,
    TOKEN_RENEWAL_FAILING,
    STREAM_CONNECTED,
    STREAM_ENDS,
    SELECTION_SWITCHES,
];
