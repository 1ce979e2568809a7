//! A cluster whose EndpointSlices the member agent makes, outside of any fleet. Pods and Nodes are bare objects: there is no
//! kubelet, so the test writes their status.
//!
//! - [`Cluster`]: a control plane that the tests of a process share, one at a time, with the rights of `deploy/`.
//! - [`Workload`]: Services, pods and Nodes in one namespace, and waits for their slices.
//! - [`describe`]: slices as text.

mod cluster;
pub mod describe;
mod workload;

pub use cluster::{Cluster, Kind, agent, is_serving, serves};
pub use workload::{PodSketch, Workload};

/// Default manager of slices, in kube-controller-manager and here.
pub const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Name of kube-controller-manager's mirroring of Endpoints, whose slices are never ours.
pub const MIRRORING: &str = "endpointslicemirroring-controller.k8s.io";
