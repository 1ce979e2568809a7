//! Cluster outside of any fleet whose EndpointSlices the member agent makes. Pods and Nodes are bare objects: there is no
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

/// Value of the managed-by label of slices that kube-controller-manager, or by default the member agent, makes.
pub const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Value of the managed-by label of slices that kube-controller-manager mirrors from Endpoints. The member agent never changes
/// those.
pub const MIRRORING: &str = "endpointslicemirroring-controller.k8s.io";
