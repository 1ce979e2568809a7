//! EndpointSlices: source slices and imported slices.

use super::{Address, McsLabels, Meta, PortNumber};
use fleetnet_types::{ObjectName, Text, Traced};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressType {
    IPv4,
    IPv6,
    /// `FQDN`, or a type that a later version of Kubernetes adds. Slices of these types are never exported.
    Other(Text),
}

/// Port of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPort {
    /// Name of the port; empty if the only port has no name, as the API server stores it.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`. The API server stores an omitted protocol as `TCP`.
    pub protocol: Text,
    /// Port number; `None` means all ports, as in Kubernetes.
    pub port: Option<PortNumber>,
    pub app_protocol: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Addresses of the endpoint: 1 to 8 addresses of the same backend.
    pub addresses: Vec<Address>,
    /// Host name of the endpoint, such as `db-0` for a pod of a StatefulSet; `None` if the endpoint has no host name.
    pub hostname: Option<Box<str>>,
    /// Zone of the endpoint, under the name that the exporting cluster uses. Endpoints of one slice share one
    /// allocation of this text.
    pub zone: Option<Text>,
}

/// Content of a slice: of a source, exported, distributed or imported slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceContent {
    /// Address type, immutable in an EndpointSlice.
    pub address_type: AddressType,
    /// Ready endpoints (`ready` true or absent), in the order of the slice.
    pub endpoints: Vec<Endpoint>,
    /// Endpoints that are not ready but still serving (`ready` false, `serving` true), in the order of the slice.
    /// kube-proxy uses these endpoints if no endpoint is ready.
    pub draining: Vec<Endpoint>,
    pub ports: Vec<EndpointPort>,
}

/// EndpointSlice in a member: a source slice or an imported slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    pub meta: Meta,
    /// Name of the Service that the slice belongs to, from the label of the slice.
    pub service: Option<Text>,
    /// Labels of the standard API; `None` unless the slice is imported by this API.
    pub mcs: Option<Box<McsLabels>>,
    /// True if the managed-by label shows that a member agent (this one or a Go agent) imported the slice.
    pub imported: bool,
    /// True if another writer edited the managed-by label of this imported slice. [`crate::member::View`] sets this
    /// field.
    pub relabelled: bool,
    pub content: SliceContent,
    /// Number of addresses that `content` lacks, because their endpoint has more than [`crate::limits::ADDRESSES_MAX`].
    pub further_addresses: u32,
    /// Hash of excess content in an imported slice; 0 if there is none. Excess is content of the fields that the agent
    /// owns, but that the agent did not write. Examples are a hint, or an endpoint that is not ready. Another writer
    /// added the excess, or a webhook changed the agent's write.
    pub excess: u64,
    /// Generation of the source slice in the last write of the agent. The agent has observed the latency of this
    /// generation. `None` if there is no record, and always on a source slice.
    pub observed_generation: Option<i64>,
    /// Annotations for traces. The agent takes them out before the view gets the object.
    pub traced: Option<Box<Traced>>,
}

impl EndpointSlice {
    /// Returns the Service that the slice belongs to, by its label.
    pub fn service_name(&self) -> Option<ObjectName> {
        Some(ObjectName::new(self.meta.name.namespace.clone(), self.service.clone()?))
    }
}
