//! Metrics that both agents export, besides those of the runtime (`runtime/src/metrics.rs`). The metrics of the member agent are
//! in `member-agent/src/metrics.rs`, those of the EndpointSlice library in `endpointslice/src/metrics.rs`.

use fleetnet_runtime::metrics::{Definition, Kind};

pub(crate) const HINDRANCES: Definition = Definition {
    name: "fleetnet_hindrances",
    kind: Kind::Gauge,
    labels: &["reason"],
    help: "Number of blocking reasons now, by reason. A blocking reason stops progress until somebody acts.",
};

/// All metrics of this crate.
pub const ALL: &[Definition] = &[HINDRANCES];
