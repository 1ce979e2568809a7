//! Model of EndpointSlices, Services, pods and Nodes. The types have only the fields that this library reads, and are
//! cheap to clone.
//!
//! Each type deserializes from the JSON of the API server, for example of a watch. All other fields of the JSON are
//! skipped and take no memory. A null, absent or empty field gives the same value where the API treats the three as
//! equal. Every value that the API server may store is accepted.

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
