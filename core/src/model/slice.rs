//! EndpointSlices: source slices and imported slices.

use super::Meta;
use fleetnet_types::Text;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressType {
    IPv4,
    IPv6,
    /// `FQDN`, or a type that a later Kubernetes adds: never exported.
    Other(Text),
}

/// A port of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPort {
    /// Empty if the only port has no name; the API server stores that as an empty string.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`; absent is stored as `TCP`.
    pub protocol: Text,
    /// `None`: all ports.
    pub port: Option<i32>,
    pub app_protocol: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// 1 to 100 interchangeable addresses.
    pub addresses: Vec<Box<str>>,
    /// Host name, if the Service gives it one.
    pub hostname: Option<Box<str>>,
    /// Zone name of its own cluster; shared by the endpoints of a slice.
    pub zone: Option<Text>,
}

/// Content of a slice: of a source slice, an exported, a distributed or an imported one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceContent {
    /// Immutable in an EndpointSlice.
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
    /// Name of its Service, from its label.
    pub service: Option<Text>,
    /// True if its managed-by label is that of the slice importer of fleet-networking.
    pub imported: bool,
    /// True if another writer edited that label; [`crate::member::View`] sets it.
    pub relabelled: bool,
    pub content: SliceContent,
    /// Excess of an imported slice: a hash of the fields that we own; 0 if they have only the content. Excess is a hint or an
    /// endpoint that is not ready, for example. Another writer edited them, or a webhook changed our write.
    pub excess: u64,
    /// Source generation whose latency was observed with the last write; on imported slices only.
    pub observed_generation: Option<i64>,
}
