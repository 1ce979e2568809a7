//! The objects of Kubernetes that a slice is made from and the slice itself: the fields that matter, cheap to copy.
//!
//! Each type reads the JSON of the API server as it comes from a watch. What is not needed is skipped while reading and
//! takes no memory; null, absent and empty are the same wherever the API takes them for the same; no value that the API
//! server may hold is refused.

mod endpoint;
mod lenient;
mod metadata;
mod node;
mod pod;
mod port;
mod service;
mod slice;

pub use endpoint::{Addresses, Conditions, Endpoint, Hints, TargetKind, TargetRef};
pub use metadata::{Metadata, OwnerReference};
pub use node::{Allocatable, Node, NodeStatus};
pub use pod::{Container, ContainerPort, InitContainer, Phase, Pod, PodIp, PodSpec, PodStatus, Readiness};
pub use port::{EndpointPort, Protocol};
pub use service::{ClusterIpFamily, Service, ServicePort, ServiceSpec, ServiceType, TargetPort};
pub use slice::{AddressType, EndpointSlice};
