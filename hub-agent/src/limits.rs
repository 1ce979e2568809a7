//! All limits of this crate.

use fleetnet_core::hub::SilenceLimits;
use std::time::Duration;

/// Number of serialized slices that are kept for further importers. A change of a slice is planned for its importers
/// close together, so few slices are in use at a time. At 100 endpoints, one takes about 20 kB.
pub(crate) const SLICE_BODIES: usize = 64;

/// Time after a watch continues during which the server may still send changes of the time without a connection. Such a
/// change arrives late, so its arrival shows neither the time of the change nor the member's clock.
pub(crate) const REPLAY: Duration = Duration::from_secs(5);

/// Default of `--object-lag`: time for which objects lag behind slice streams. At 20 changes of a slice in a second, an
/// importer costs one write in the hub for 100 changes.
pub const OBJECT_LAG: Duration = Duration::from_secs(5);
/// Maximum of `--object-lag`. After a new list of distributed slices, an importer keeps what a stream delivered for 60
/// s only.
pub(crate) const OBJECT_LAG_MAX: Duration = Duration::from_secs(30);

/// Maximum number of slice streams: one for each member. A hub agent of 100 members has room for new streams beside the
/// old ones.
pub(crate) const STREAMS_MAX: usize = 1_000;
/// Maximum number of responses of a slice stream that wait for the connection. Others wait in the mailbox, where a
/// newer one replaces an older one.
pub(crate) const STREAM_RESPONSES: usize = 1;
/// Time for the Hello of a new slice stream.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the reviews of a slice stream by the API server.
pub(crate) const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two checks of the rights of a member with a slice stream.
pub(crate) const REVIEW_EVERY: Duration = Duration::from_secs(60);
/// Shortest time between two checks. An API server accepts a token for some seconds after it has expired.
pub(crate) const REVIEW_PAUSE: Duration = Duration::from_secs(10);
/// Time without a positive review after which a slice stream ends. A member must lose its stream with its rights, also
/// while the API server gives no answers.
pub(crate) const UNREVIEWED_LIFE: Duration = Duration::from_secs(300);
/// Time since its expiry after which a token is refused without a review. The clocks of hub agent and API server may
/// differ.
pub(crate) const EXPIRED_FOR: Duration = Duration::from_hours(24);
/// Time between two probes of a slice stream.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(10);
/// Time for the reply to a probe. A member agent that is slower loses its stream, and its objects are written at once.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for a member agent to take the last status of a slice stream.
pub(crate) const FINAL_STATUS_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of slices of one slice stream with a preview that the member has not acknowledged. Above it, the
/// stream ends. A member agent acknowledges all previews, except those of slices that it does not import any more.
pub(crate) const UNACKNOWLEDGED_SLICES: usize = 10_000;
/// Maximum number of acknowledgements of one slice stream that are of no preview without one. Above it, the stream
/// ends. A member agent sends none.
pub(crate) const SURPLUS_ACKNOWLEDGEMENTS: usize = 1_000;
/// Maximum number of bytes of a preview: less than the 4 MiB that gRPC accepts by default. An EndpointSlice has at most
/// 1.5 MiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 3 << 20;
/// Maximum number of bytes of a request of a member agent. The longest has a name of 253 characters.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 << 10;
/// Maximum number of bytes of the headers of a call. A token of a ServiceAccount has less than 2 kB.
pub(crate) const HEADER_BYTES_MAX: u32 = 8 << 10;
/// Number of bytes that a client may send on one connection before the hub agent reads them: the minimum of HTTP/2.
pub(crate) const CONNECTION_WINDOW: u32 = 65_535;
/// Maximum number of bytes that wait in a slice stream for a member agent to read them. Further previews wait in the
/// mailbox.
pub(crate) const SEND_BUFFER: usize = 64 << 10;
/// Time for the first response of a call. Longer than the Hello and the reviews of a slice stream can take.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of calls at once on one connection: the slice stream, and a call of health or reflection.
pub(crate) const STREAMS_PER_CONNECTION: u32 = 2;
/// Maximum number of calls on one connection. A member agent makes one, and a probe of the health service a few.
pub(crate) const CALLS_PER_CONNECTION: usize = 100;
/// Lifetime of a connection without an open slice stream.
pub(crate) const UNUSED_CONNECTION_LIFETIME: Duration = Duration::from_secs(300);
/// Time between two pings of HTTP/2 on an idle connection.
pub(crate) const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// Time for the answer to a ping of HTTP/2.
pub(crate) const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of connections without an open slice stream. A client that opens many closes its own. With two calls
/// of reflection whose answers it does not read, a client can make one keep 240 KiB, so all of them keep 60 MiB.
pub(crate) const CONNECTIONS_MAX: usize = 256;

/// Default of `--member-memory`, in MiB: the memory that the objects of one member may take. The smallest objects of a
/// full quota take 30 MiB, and a member of the fleet in the benches takes 1 MiB. The container of the hub agent may
/// have 256 MiB.
pub const MEMBER_MEMORY_MIB: u32 = 32;

/// Default of `--member-fan-out`: the number of objects in other member namespaces that the exports of one member may
/// cause. One takes about 1.2 kB in the hub agent, so all take about 60 MB.
pub const MEMBER_FAN_OUT: u32 = 50_000;

/// Defaults of `--silence-soft` and `--silence-hard`.
pub const SILENCE: SilenceLimits = SilenceLimits { soft_micros: 60_000_000, hard_micros: 600_000_000 };

/// Minimum of `--silence-soft`: three heartbeats.
pub(crate) const SILENCE_SOFT_MIN: Duration = Duration::from_secs(30);

/// Minimum time between `--silence-soft` and `--silence-hard`: the time of a step of withdrawals.
pub(crate) const SILENCE_BETWEEN_MIN: Duration = Duration::from_secs(60);
