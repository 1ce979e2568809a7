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

/// Earliest time that is written: 0001-01-01T00:00:00Z, which is also Go's zero time.
pub const TIME_MICROS_MIN: i64 = -62_135_596_800_000_000;
/// Latest time that is written: 9999-12-30T22:00:00Z, the last that every time zone can represent.
pub const TIME_MICROS_MAX: i64 = 253_402_207_200_000_000;
