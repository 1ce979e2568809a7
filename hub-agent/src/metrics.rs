//! Metrics that only the hub agent exports.

use fleetnet_runtime::metrics::{Definition, Kind};

pub(crate) const RENEWAL_AGE: Definition = Definition {
    name: "fleetnet_member_last_renewal_age_seconds",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Time since the hub agent saw the last heartbeat of the member, on the hub agent's own clock. A renewal in the hub \
           agent's first list counts from its renewTime. Only the leader exports it, and not for members that left or announced \
           a stop.",
};
pub(crate) const CLOCK_OFFSET: Definition = Definition {
    name: "fleetnet_member_clock_offset_seconds",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Clock of the member minus clock of the hub agent, at the last heartbeat that arrived live. It includes the time that \
           the heartbeat took, as a negative part. Only the leader exports it.",
};
pub(crate) const SILENT: Definition = Definition {
    name: "fleetnet_member_silent",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "1 while importers do not use the endpoints of the member as usual, because it sends no heartbeats (--silence-soft). 0 \
           otherwise. Only the leader exports it.",
};

pub(crate) const EXPORTS: Definition = Definition {
    name: "fleetnet_exports",
    kind: Kind::Gauge,
    labels: &["state"],
    help: "Number of exports in the hub by state. accepted: part of the ServiceImport. conflicted: other ports than the accepted \
           exports. denied: the cluster has no right to export. pending: not decided yet.",
};
pub(crate) const IMPORTS: Definition = Definition {
    name: "fleetnet_imports",
    kind: Kind::Gauge,
    labels: &["state"],
    help: "Number of claims in the hub by state. granted: the member imports the Service. pending: the claim waits for an \
           export, for the exclusive claim of another member, or for a right to import.",
};

pub(crate) const STREAMS: Definition = Definition {
    name: "fleetnet_slice_streams",
    kind: Kind::Gauge,
    labels: &[],
    help: "Number of open slice streams.",
};
pub(crate) const STREAM_MESSAGES: Definition = Definition {
    name: "fleetnet_slice_stream_messages_total",
    kind: Kind::Counter,
    labels: &["direction", "message"],
    help: "Number of messages of slice streams. direction: sent or received.",
};
pub(crate) const STREAM_BYTES: Definition = Definition {
    name: "fleetnet_slice_stream_bytes_total",
    kind: Kind::Counter,
    labels: &["direction"],
    help: "Number of bytes of the messages of slice streams, before TLS.",
};
pub(crate) const STREAM_QUEUE: Definition = Definition {
    name: "fleetnet_slice_stream_queue_depth",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Number of slices with a preview that waits for the member to read its slice stream.",
};
pub(crate) const STREAM_REFUSALS: Definition = Definition {
    name: "fleetnet_slice_stream_refusals_total",
    kind: Kind::Counter,
    labels: &["code"],
    help: "Number of slice streams that the hub agent refused or ended, by gRPC status code.",
};
pub(crate) const STREAM_DELAY: Definition = Definition {
    name: "fleetnet_slice_stream_delay_seconds",
    kind: Kind::Histogram(&[0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5]),
    labels: &["member"],
    help: "Time from the plan of a preview until the member acknowledges that it has imported it. After one second, the hub \
           agent writes the object.",
};
pub(crate) const STREAM_CLOCK_OFFSET: Definition = Definition {
    name: "fleetnet_slice_stream_clock_offset_seconds",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Clock of the member minus clock of the hub agent, measured over the slice stream.",
};
pub(crate) const STREAM_CLOCK_UNCERTAINTY: Definition = Definition {
    name: "fleetnet_slice_stream_clock_uncertainty_seconds",
    kind: Kind::Gauge,
    labels: &["member"],
    help: "Maximum error of fleetnet_slice_stream_clock_offset_seconds.",
};

/// All metrics of this crate.
pub const ALL: &[Definition] = &[
    RENEWAL_AGE,
    CLOCK_OFFSET,
    SILENT,
    EXPORTS,
    IMPORTS,
    STREAMS,
    STREAM_MESSAGES,
    STREAM_BYTES,
    STREAM_QUEUE,
    STREAM_REFUSALS,
    STREAM_DELAY,
    STREAM_CLOCK_OFFSET,
    STREAM_CLOCK_UNCERTAINTY,
];
