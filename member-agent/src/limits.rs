//! Limits, default times and default numbers of the member agent.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Default of `--derived-service-grace`: a Service that is exported again within this time keeps its address. With the
/// Go agents, the derived Service and its address disappear at most 60 s after the last unexport.
pub const DERIVED_SERVICE_GRACE: Duration = Duration::from_secs(30);

/// Age of a traceparent up to which the import of its slice belongs to the trace. A later write is a repair.
pub(crate) const CAUSE_AGE: Duration = Duration::from_secs(600);

/// Minimum of `--member-takeover-after`. A member renews its MemberAgent every 10 s. The minimum is much longer, so
/// that a member does not lose its cluster id while its agent restarts.
pub(crate) const MEMBER_TAKEOVER_MIN: Duration = Duration::from_secs(120);

/// Minimum time to watch kube-controller-manager's Lease before the `renewTime` in the Lease counts. In this time, an
/// active kube-controller-manager renews the Lease several times: its default lease duration is 15 s, and it renews
/// every 2 s.
pub(crate) const LEASE_LOOK_MIN: Duration = Duration::from_secs(15);
/// Maximum time to watch kube-controller-manager's Lease before the `renewTime` in the Lease counts, even if the lease
/// duration is longer.
pub(crate) const LEASE_LOOK_MAX: Duration = Duration::from_secs(600);

/// Default of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS_DEFAULT: usize = 5;
/// Accepted range of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS: RangeInclusive<usize> = 1..=50;

/// Delay from a foreign write to a slice until its Service is planned. With this delay, the controller makes only one
/// write a second if another controller undoes its writes.
pub(crate) const FOREIGN_CHANGE_DELAY: Duration = Duration::from_secs(1);

/// Minimum time between writes of one Service that publish changes of pods. In a rollout, pods change every few
/// milliseconds, so each write carries several changes.
pub(crate) const SLICES_PACE: Duration = Duration::from_millis(15);

/// Maximum number of writes in one phase of a plan, for each address type. After each write, the Service is planned
/// again, with the remaining writes.
pub(crate) const WRITES_PER_PHASE: usize = 32;

/// Time for which an own write of unknown outcome is remembered. After this time, the API server cannot execute the
/// write any more, because it ends each request earlier.
pub(crate) const LOST_WRITE_AGE: Duration = Duration::from_secs(60);
/// Maximum number of remembered writes of unknown outcome for each slice. The newest writes are kept. The limit only
/// bounds the memory: few writes are expected, because writes to one slice run one at a time, with growing back-off.
pub(crate) const LOST_WRITES_PER_SLICE: usize = 64;

/// Maximum number of label keys that the controller treats as added by webhooks. The limit bounds the memory if a
/// webhook adds a new key each time.
pub(crate) const FOREIGN_LABELS_MAX: usize = 64;

/// Number of random characters at the end of a slice's name, as in the API server.
pub(crate) const NAME_SUFFIX_CHARS: usize = 5;
/// Maximum number of characters before the random suffix in a slice's name, as in the API server. Prefix and suffix
/// together have at most 63 characters.
pub(crate) const NAME_PREFIX_CHARS_MAX: usize = 63 - NAME_SUFFIX_CHARS;

/// Maximum number of requests of the slice stream that wait for the connection.
pub(crate) const STREAM_REQUESTS: usize = 16;
/// Time to open a slice stream, after the token is there.
pub(crate) const STREAM_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a message after which a slice stream has failed. The hub agent sends a probe each 10 s.
pub(crate) const STREAM_SILENCE: Duration = Duration::from_secs(30);
/// Time between two pings of HTTP/2 on the connection of the slice stream.
pub(crate) const STREAM_KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// Time for the answer to a ping of HTTP/2.
pub(crate) const STREAM_KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// First wait before a slice stream is opened again. Short, because with two replicas of the hub agent, the other one
/// may lead.
pub(crate) const STREAM_RETRY_FIRST: Duration = Duration::from_millis(200);
/// Longest wait before a slice stream is opened again.
pub(crate) const STREAM_RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Time after which a slice stream counts as stable. The waits begin again with the first one after it ends.
pub(crate) const STREAM_STABLE: Duration = Duration::from_secs(30);
/// Maximum number of bytes of a message of the hub agent: the default of gRPC. An EndpointSlice has at most 1.5 MiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes of the message about the slice stream in the MemberAgent. The CRD allows as many characters.
pub(crate) const STREAM_REPORT_BYTES: usize = 1_024;
