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

/// Accepted range of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS: RangeInclusive<usize> = 1..=50;

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

/// Minimum of `--failback-after`. A shorter time would prove nothing.
pub(crate) const FAILBACK_AFTER_MIN: Duration = Duration::from_secs(1);

/// Maximum of `--failback-after`.
pub(crate) const FAILBACK_AFTER_MAX: Duration = Duration::from_secs(3600);
