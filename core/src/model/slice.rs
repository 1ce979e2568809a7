//! A slice of endpoints: a source, or one that was imported.

use super::Meta;
use crate::ids::Text;

/// Address family of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressType {
    IPv4,
    IPv6,
    /// `FQDN`, or something that came later: never exported.
    Other(Text),
}

/// A port of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPort {
    /// Empty where the only port has no name (the API server stores that as an empty string).
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`; absent is stored as `TCP`.
    pub protocol: Text,
    /// Absent: all ports.
    pub port: Option<i32>,
    /// Application protocol hint.
    pub app_protocol: Option<Text>,
}

/// An endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// 1 to 100 addresses, interchangeable.
    pub addresses: Vec<Box<str>>,
    /// Its host name, where its Service gives it one.
    pub hostname: Option<Box<str>>,
    /// The zone that it stands in, as its own cluster names it; shared by the endpoints of a slice.
    pub zone: Option<Text>,
}

/// What a slice says, wherever it stands: in the source cluster, as export or import in the hub, or imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceContent {
    /// Immutable in an EndpointSlice.
    pub address_type: AddressType,
    /// The ready endpoints (`ready` true or absent), in the order of the slice.
    pub endpoints: Vec<Endpoint>,
    /// Those that are not ready and still serve, in the order of the slice: kube-proxy uses them where nothing is ready.
    pub draining: Vec<Endpoint>,
    /// The ports.
    pub ports: Vec<EndpointPort>,
}

/// An EndpointSlice of this member: a source, or one that we imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Metadata.
    pub meta: Meta,
    /// The Service that it belongs to, from its label.
    pub service: Option<Text>,
    /// Its managed-by label names the slice importer of fleet-networking.
    pub imported: bool,
    /// The label says otherwise than it did: somebody edited it. [`crate::member::View`] finds that out.
    pub relabelled: bool,
    /// What it says.
    pub content: SliceContent,
    /// Of an imported slice: hash of the fields that we own, if they say more than the content (hints, endpoints that are not
    /// ready); 0 if they do not. Somebody edited it, or a webhook changed what we wrote.
    pub excess: u64,
    /// For imported slices: the source generation whose latency was observed with the write that brought it here.
    pub observed_generation: Option<i64>,
}
