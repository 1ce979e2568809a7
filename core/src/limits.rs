//! All limits of this crate.

/// Characters of each of the three parts of the name of an exported slice. A name has at most 253: three parts, three dashes
/// and 5 hex digits, (253 - 3 - 5) / 3.
// fault E3.3: 81 ~> 82
pub const SLICE_NAME_SEGMENT_CHARS: usize = 81;

/// Characters of a name of the form `<namespace>-<name>`: the length of a DNS label.
pub const LABEL_CHARS_MAX: usize = 63;

/// Characters of an object's name: a DNS subdomain.
pub const SUBDOMAIN_CHARS_MAX: usize = 253;

/// Characters of the name of a container's port.
pub const PORT_NAME_CHARS_MAX: usize = 15;

/// Changes of one slice that are stored while the hub lacks them. More are merged into the newest, so a latency sample may be
/// slightly too long, never too short.
pub const PENDING_CHANGES_MAX: usize = 16;

/// Time that an imported slice stays after its EndpointSliceImport disappeared without a deletion, 60 s from when its exporters
/// and its claim are known. A hub that was restored from a backup needs that time until its exports are written again.
pub const ORPHAN_GRACE_MICROS: i64 = 60_000_000;

/// Ports of a Service or slice that the hub accepts. A Service with more is not exported, since the hub compares its ports with
/// those of the whole fleet.
pub const PORTS_MAX: usize = 1_000;

/// Endpoints of a slice in the hub, ready and draining together: the limit of an EndpointSlice.
pub const ENDPOINTS_MAX: usize = 1_000;

/// Addresses of one endpoint: the limit of an EndpointSlice.
pub const ADDRESSES_MAX: usize = 100;

/// Names that a message lists; the others are counted. Messages must be readable, and an Event has at most 1024 characters.
pub const NAMES_TOLD_MAX: usize = 3;

/// Largest weight of a ServiceExport; the smallest is 0.
// fault S6.1: 1000 ~> 1001
pub const WEIGHT_MAX: i64 = 1000;

/// Interval of a member's renewals: 10 s.
pub const RENEW_MICROS: i64 = 10_000_000;

/// Time that an announcement stays valid after its object disappeared, 60 s: enough to create it again.
// fault U7.2: 60_000_000 ~> 0
pub const ANNOUNCEMENT_GRACE_MICROS: i64 = 60_000_000;

/// Time that a peer has for its first announcement after the kind MemberAgent is served: 6 min. A peer looks for a missing kind
/// every 5 minutes, and gets one more minute to write.
// fault U14.1: 360_000_000 ~> 0
pub const FIRST_ANNOUNCEMENT_MICROS: i64 = 360_000_000;

/// Time that a cluster keeps its id after its agent announced a stop: 30 s, longer than a rolling restart.
pub const RESTART_MICROS: i64 = 30_000_000;

/// Time that two alternating leaders of one cluster are reported after the last alternation: 60 s, longer than a few renewals.
pub const TWO_LEADERS_MICROS: i64 = 60_000_000;

/// Limit for long latencies: twice the Go agents' last bucket bound, so that averages stay meaningful.
pub const LATENCY_MILLISECONDS_MAX: f64 = 100_000.0;
