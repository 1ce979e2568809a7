//! Metrics that both agents export, in addition to the metrics of the runtime (`runtime/src/metrics.rs`). Other metrics are in
//! `member-agent/src/metrics.rs` (member agent) and in `endpointslice/src/metrics.rs` (EndpointSlice library).

use fleetnet_runtime::metrics::{Definition, Kind};

pub(crate) const HINDRANCES: Definition = Definition {
    name: "fleetnet_hindrances",
    kind: Kind::Gauge,
    labels: &["kind", "reason"],
    help: "Number of blocking reasons now, by the kind of the blocked object and by reason. A blocking reason stops progress until somebody acts.",
};

pub(crate) const BUILD_INFO: Definition = Definition {
    name: "fleetnet_build_info",
    kind: Kind::Gauge,
    labels: &["version", "revision"],
    help: "Always 1. The labels are the version of the agent, and the value of FLEETNET_REVISION at its build (unknown if \
           unset).",
};

/// All metrics of this crate.
pub const ALL: &[Definition] = &[BUILD_INFO, HINDRANCES];
