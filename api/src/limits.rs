//! Maximum lengths in this crate, equal to the limits of the EndpointSlice API. [`fleetnet_core::limits`] has the
//! limits of ports, endpoints and addresses. The CustomResourceDefinitions have the same limits ([`crate::crd`]).

/// Maximum length of a DNS label in bytes. A DNS label is, for example, the name of a namespace, a port, a host or a
/// protocol.
pub const LABEL_BYTES_MAX: usize = 63;

/// Maximum length of the name of an object in bytes. The limit applies to UIDs, cluster ids and resourceVersions too.
pub const NAME_BYTES_MAX: usize = 253;

/// Maximum number of addresses of one endpoint in the CustomResourceDefinitions: the limit of an EndpointSlice. The
/// agents keep fewer ([`fleetnet_core::limits::ADDRESSES_MAX`]).
pub const ADDRESSES_WRITTEN_MAX: usize = 100;

/// Maximum length of an address of an endpoint in the CustomResourceDefinitions, in bytes: the length of a fully
/// qualified domain name.
pub const ADDRESS_BYTES_MAX: usize = 253;

/// Maximum length of an address that the agents keep, in bytes: the length of an IPv6 address that ends with an IPv4
/// address.
pub const IP_BYTES_MAX: usize = 45;

/// Maximum length of the name of a zone in bytes.
pub const ZONE_BYTES_MAX: usize = 253;

/// Maximum length of an application protocol in bytes: a domain (253), a slash (1) and a label (63).
pub const APP_PROTOCOL_BYTES_MAX: usize = 317;

/// Maximum length of `namespacedName` in bytes: a namespace (63), a slash (1) and a name (253).
pub const NAMESPACED_NAME_BYTES_MAX: usize = 317;

/// Earliest time that the agents write to an object, in microseconds since 1970: 0001-01-01T00:00:00Z, which is also
/// Go's zero time.
pub const TIME_MICROS_MIN: i64 = -62_135_596_800_000_000;
/// Latest time that the agents write to an object, in microseconds since 1970: 9999-12-30T22:00:00Z. A later time would
/// be in the year 10000 in some time zones.
pub const TIME_MICROS_MAX: i64 = 253_402_207_200_000_000;

/// Period of the heartbeats in an InternalMemberCluster without `spec.heartbeatPeriodSeconds`, in seconds.
pub(crate) const HEARTBEAT_SECONDS: i64 = 60;
/// Maximum of `spec.heartbeatPeriodSeconds`, as in the definition of InternalMemberCluster.
pub(crate) const HEARTBEAT_SECONDS_MAX: i64 = 600;
