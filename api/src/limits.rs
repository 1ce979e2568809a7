//! Maximum lengths in this crate, equal to the limits of the EndpointSlice API. [`fleetnet_core::limits`] has the limits of
//! ports, endpoints and addresses. The CustomResourceDefinitions have the same limits ([`crate::crd`]).

/// Longest DNS label in bytes, such as the name of a namespace, a port, a host or a protocol.
pub const LABEL_BYTES_MAX: usize = 63;

/// Longest name of an object in bytes. The limit applies to UIDs, cluster ids and resourceVersions too.
pub const NAME_BYTES_MAX: usize = 253;

/// Longest address of an endpoint in bytes: a fully qualified domain name.
pub const ADDRESS_BYTES_MAX: usize = 253;

/// Longest name of a zone in bytes.
pub const ZONE_BYTES_MAX: usize = 253;

/// Longest application protocol in bytes: a domain, a slash and a label.
pub const APP_PROTOCOL_BYTES_MAX: usize = 317;

/// Longest `namespacedName` in bytes: namespace, slash, name.
pub const NAMESPACED_NAME_BYTES_MAX: usize = 317;

/// Earliest time that is written to an object, in microseconds since 1970: 0001-01-01T00:00:00Z, which is also Go's zero time.
pub const TIME_MICROS_MIN: i64 = -62_135_596_800_000_000;
/// Latest time that is written to an object, in microseconds since 1970: 9999-12-30T22:00:00Z, the last that every time zone
/// can represent.
pub const TIME_MICROS_MAX: i64 = 253_402_207_200_000_000;
