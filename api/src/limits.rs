//! Limits of this crate, which are those of the EndpointSlice API. [`fleetnet_core::limits`] has the limits of ports, endpoints
//! and addresses. The definitions have the same limits ([`crate::crd`]).

/// Limit in bytes of a label: the name of a namespace, of a port, of a host, of a protocol.
pub const LABEL_BYTES_MAX: usize = 63;

/// Limit in bytes of the name of an object, and of other identifiers of one.
pub const NAME_BYTES_MAX: usize = 253;

/// Limit in bytes of an address: that of a fully qualified domain name.
pub const ADDRESS_BYTES_MAX: usize = 253;

/// Limit in bytes of a zone.
pub const ZONE_BYTES_MAX: usize = 253;

/// Limit in bytes of an application protocol: a domain, a slash and a label.
pub const APP_PROTOCOL_BYTES_MAX: usize = 317;

/// Limit in bytes of namespace/name.
pub const NAMESPACED_NAME_BYTES_MAX: usize = 317;
