//! Cluster in no fleet, in which the member agent runs as the EndpointSlice controller. Pods and Nodes are plain API
//! objects: there is no kubelet, so the test writes their status.
//!
//! - [`Cluster`]: a control plane that the tests of a process share, one test at a time. The agent has the roles of
//!   `deploy/`.
//! - [`Workload`]: Services and pods in one namespace, and functions that wait for the Services' slices.

mod cluster;
mod describe;
mod workload;

pub use cluster::{Cluster, Kind, agent, create_old_lease, is_serving, serves};
pub use workload::{PodSketch, Workload};

/// Value of the label `endpointslice.kubernetes.io/managed-by` on slices of an EndpointSlice controller.
/// kube-controller-manager and by default the member agent use this value.
pub const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Value of the label `endpointslice.kubernetes.io/managed-by` on slices that kube-controller-manager mirrors from
/// Endpoints. The member agent never changes these slices.
pub const MIRRORING: &str = "endpointslicemirroring-controller.k8s.io";
