//! Limits, default times and default numbers of the member agent.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Default of `--derived-service-grace`. With the Go agents, the derived Service and its address disappear at most 60 s after the
/// last unexport.
pub const DERIVED_SERVICE_GRACE: Duration = Duration::from_secs(30);

/// Minimum of `--member-takeover-after`. A member renews its MemberAgent every 10 s, and must not lose its cluster id in a
/// restart.
pub(crate) const MEMBER_TAKEOVER_MIN: Duration = Duration::from_secs(120);

/// Default of `--endpointslices-takeover-after`: several lease durations of kube-controller-manager.
pub(crate) const SLICES_TAKEOVER: Duration = Duration::from_secs(180);

/// Shortest time to watch kube-controller-manager's Lease before the `renewTime` in the Lease counts. kube-controller-manager
/// renews the Lease several times in its default lease duration of 15 s.
pub(crate) const LEASE_LOOK_MIN: Duration = Duration::from_secs(15);
/// Longest time to watch kube-controller-manager's Lease before the `renewTime` in the Lease counts, even if the lease duration
/// is longer.
pub(crate) const LEASE_LOOK_MAX: Duration = Duration::from_secs(600);

/// Default of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS_DEFAULT: usize = 5;
/// Accepted range of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS: RangeInclusive<usize> = 1..=50;

/// Delay from a foreign write to a slice until its Service is planned. So two controllers that undo each other's writes cost only
/// one write a second.
pub(crate) const FOREIGN_CHANGE_DELAY: Duration = Duration::from_secs(1);

/// Minimum time between writes of one Service that publish changes of pods. In a rollout, pods change every few
/// milliseconds, so each write carries several changes.
pub(crate) const SLICES_PACE: Duration = Duration::from_millis(15);

/// Most writes in one phase of a plan, for each address type. The outcome of each write leads to a new plan with the remaining
/// writes.
pub(crate) const WRITES_PER_PHASE: usize = 32;

/// Age of a write without a response after which the API server can no longer execute the write: API servers time out earlier.
pub(crate) const LOST_WRITE_AGE: Duration = Duration::from_secs(60);
/// Most remembered writes of unknown outcome for each slice; the newest stay. The limit only bounds memory, because writes to one
/// slice run one at a time, with growing back-off.
pub(crate) const LOST_WRITES_PER_SLICE: usize = 64;

/// Most label keys that the controller treats as added by webhooks. The limit bounds memory if a webhook adds a new key each
/// time.
pub(crate) const FOREIGN_LABELS_MAX: usize = 64;

/// Number of random characters at the end of a slice's name, as in the API server.
pub(crate) const NAME_SUFFIX_CHARS: usize = 5;
/// Longest prefix of a slice's name before the random suffix, as in the API server. So names have at most 63 characters.
pub(crate) const NAME_PREFIX_CHARS_MAX: usize = 63 - NAME_SUFFIX_CHARS;
