//! EndpointSlices: source slices and imported slices.

use super::{Address, Meta, PortNumber};
use fleetnet_types::Text;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressType {
    IPv4,
    IPv6,
    /// `FQDN`, or a type that a later Kubernetes adds: such slices are never exported.
    Other(Text),
}

/// Port of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPort {
    /// Name of the port; empty if the only port has no name, as the API server stores it.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`. The API server stores an omitted protocol as `TCP`.
    pub protocol: Text,
    /// `None` means all ports, as in Kubernetes.
    pub port: Option<PortNumber>,
    pub app_protocol: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Addresses of the endpoint, 1 to 100, interchangeable.
    pub addresses: Vec<Address>,
    /// Host name of the endpoint, if its Service gives it one.
    pub hostname: Option<Box<str>>,
    /// Zone of the endpoint, as its own cluster names it. Endpoints of a slice share the allocation.
    pub zone: Option<Text>,
}

/// Content of a slice, whether source, exported, distributed or imported slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceContent {
    /// Address type, immutable in an EndpointSlice.
    pub address_type: AddressType,
    /// Ready endpoints (`ready` true or absent), in the order of the slice.
    pub endpoints: Vec<Endpoint>,
    /// Endpoints that are not ready but still serve, in the order of the slice. kube-proxy uses them if none is ready.
    pub draining: Vec<Endpoint>,
    pub ports: Vec<EndpointPort>,
}

/// An EndpointSlice of this member: a source slice or an imported one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    pub meta: Meta,
    /// Name of the slice's Service, from its label.
    pub service: Option<Text>,
    /// True if the managed-by label names fleet-networking's slice importer.
    pub imported: bool,
    /// True if another writer edited the managed-by label; [`crate::member::View`] sets it.
    pub relabelled: bool,
    pub content: SliceContent,
    /// Excess of an imported slice: a hash of content in the fields that we own, beyond what we write; 0 if there is none.
    /// Examples are a hint, or an endpoint that is not ready. Another writer added it, or a webhook changed our write.
    pub excess: u64,
    /// Source generation whose latency was observed with the last write. On imported slices only.
    pub observed_generation: Option<i64>,
}
