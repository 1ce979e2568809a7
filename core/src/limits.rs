//! Every limit of this crate in one place.

/// Characters of each of the three parts of a fleet-scoped slice name (spec: (253 - 3 - 5) / 3).
// fault E3.3: 81 ~> 82
pub const SLICE_NAME_SEGMENT_CHARS: usize = 81;

/// Characters of a name built as `<namespace>-<name>`: the length of a DNS label.
pub const LABEL_CHARS_MAX: usize = 63;

/// Characters of the name of an object: a DNS subdomain.
pub const SUBDOMAIN_CHARS_MAX: usize = 253;

/// Characters of the name of a container's port.
pub const PORT_NAME_CHARS_MAX: usize = 15;

/// Changes of one slice that are remembered while the hub does not have them. More are folded into the newest, so a
/// latency sample may then be told slightly too long, never too short.
pub const PENDING_CHANGES_MAX: usize = 16;

/// How long an imported slice whose EndpointSliceImport vanished without having been deleted is kept once its exporters
/// and its claim are known again (a hub that was restored needs that long to have its exports written anew).
pub const ORPHAN_GRACE_MICROS: i64 = 60_000_000;

/// Ports of a Service or of a slice that the hub takes. A Service with more is not exported: its conflicts are resolved in the
/// hub, for the whole fleet.
pub const PORTS_MAX: usize = 1_000;

/// Endpoints of a slice in the hub, ready and draining together: as many as an EndpointSlice may have.
pub const ENDPOINTS_MAX: usize = 1_000;

/// Addresses of one endpoint: as many as in an EndpointSlice.
pub const ADDRESSES_MAX: usize = 100;

/// Names that a message lists; the others are counted. A message has to be read, and an Event's has 1024 characters.
pub const NAMES_TOLD_MAX: usize = 3;

/// Weights of a ServiceExport run from 0 to this.
// fault S6.1: 1000 ~> 1001
pub const WEIGHT_MAX: i64 = 1000;

/// How often a member says that it is there.
pub const RENEW_MICROS: i64 = 10_000_000;

/// How long what a peer announced holds on where its announcement has vanished without being taken back: as long as it may
/// take to be made anew.
// fault U7.2: 60_000_000 ~> 0
pub const ANNOUNCEMENT_GRACE_MICROS: i64 = 60_000_000;

/// Time that a peer has for its first announcement since the kind MemberAgent is served. A peer looks again for a kind that
/// was not served after 5 minutes at most, and a minute is for what it then writes.
// fault U14.1: 360_000_000 ~> 0
pub const FIRST_ANNOUNCEMENT_MICROS: i64 = 360_000_000;

/// Time that a cluster keeps its id after its agent has announced a stop: longer than a rolling restart takes.
pub const RESTART_MICROS: i64 = 30_000_000;

/// How long two leaders of one cluster are reported after they were last seen to alternate: longer than a few renewals.
pub const TWO_LEADERS_MICROS: i64 = 60_000_000;
