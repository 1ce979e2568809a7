//! Metric of the EndpointSlice controller that kube-controller-manager does not have.

use fleetnet_runtime::metrics::{Definition, Kind};

pub const SERVING: Definition = Definition {
    name: "fleetnet_endpointslices_serving",
    kind: Kind::Gauge,
    labels: &[],
    help: "1 while this agent makes the EndpointSlices of its cluster (--endpointslices) and has listed what it needs, else 0.",
};
