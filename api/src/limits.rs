//! Every limit of this crate in one place. They are those of the EndpointSlice API; how many ports, endpoints and addresses there
//! may be is in [`fleetnet_core::limits`]. The definitions say the same ([`crate::crd`]).

/// Bytes of a label: the name of a namespace, of a port, of a host, of a protocol.
pub const LABEL_BYTES_MAX: usize = 63;

/// Bytes of the name of an object, and of what else identifies one.
pub const NAME_BYTES_MAX: usize = 253;

/// Bytes of an address: those of a fully qualified domain name.
pub const ADDRESS_BYTES_MAX: usize = 253;

/// Bytes of a zone.
pub const ZONE_BYTES_MAX: usize = 253;

/// Bytes of an application protocol: a domain, a slash and a label.
pub const APP_PROTOCOL_BYTES_MAX: usize = 317;

/// Bytes of namespace/name.
pub const NAMESPACED_NAME_BYTES_MAX: usize = 317;
