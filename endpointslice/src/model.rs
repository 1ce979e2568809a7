//! Model of EndpointSlices and of the Kubernetes objects that they are made from: only the fields that this library reads,
//! cheap to clone.
//!
//! Each type deserializes from the JSON of the API server, for example of a watch. Other fields are skipped and take no memory.
//! Null, absent and empty are equal where the API treats them as equal. Every value that the API server may store is accepted.

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
