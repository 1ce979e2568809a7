//! A cluster whose EndpointSlices are made by the member agent, alone and in no fleet. Pods and Nodes are bare objects:
//! there is no kubelet, so their status is what the test says.
//!
//! - [`Cluster`]: a control plane that the tests of a process share, a test at a time, with the rights of `deploy/`.
//! - [`Workload`]: Services, pods and Nodes in one namespace, and waits for the slices that come of them.
//! - [`picture`]: slices as text.

mod cluster;
pub mod picture;
mod workload;

pub use cluster::{Cluster, Kind, agent, is_serving, serves};
pub use workload::{PodSketch, Workload};

/// The name under which slices are made by default, by kube-controller-manager and by us.
pub const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The name under which kube-controller-manager mirrors Endpoints: its slices are never ours.
pub const MIRRORING: &str = "endpointslicemirroring-controller.k8s.io";
