//! Limits and times of this crate.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Default of `--derived-service-grace`. With the Go agents, an unexport removes the address within 60 s at most.
pub const DERIVED_SERVICE_GRACE: Duration = Duration::from_secs(30);

/// Minimum of `--member-takeover-after`: a member renews its MemberAgent every 10 s, and a restart must not cost it its id.
pub(crate) const MEMBER_TAKEOVER_MIN: Duration = Duration::from_secs(120);

/// Default of `--endpointslices-takeover-after`: several times the lease duration of kube-controller-manager.
pub(crate) const SLICES_TAKEOVER: Duration = Duration::from_secs(180);

/// Minimum time to watch a Lease that is seen for the first time: kube-controller-manager's default lease duration, in
/// which it renews several times.
pub(crate) const LEASE_LOOK_MIN: Duration = Duration::from_secs(15);
/// Maximum time to watch such a Lease, even if its lease duration is longer.
pub(crate) const LEASE_LOOK_MAX: Duration = Duration::from_secs(600);

/// Default of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS_DEFAULT: usize = 5;
/// Fewest and most concurrent syncs that kube-controller-manager accepts.
pub(crate) const CONCURRENT_SYNCS: RangeInclusive<usize> = 1..=50;

/// Delay from a foreign write to a slice until its Service is planned: two writers that undo each other cost one write a
/// second.
pub(crate) const FOREIGN_CHANGE_DELAY: Duration = Duration::from_secs(1);

/// Minimum time between writes of one Service that publish changes of pods. In a rollout, pods change every few
/// milliseconds, so each write carries several changes.
pub(crate) const SLICES_PACE: Duration = Duration::from_millis(15);

/// Limit of writes in one phase for one address type. The outcome of each leads to a new plan.
pub(crate) const WRITES_PER_PHASE: usize = 32;

/// Age after which a write cannot take effect any more: an API server gives up on a write within that time.
pub(crate) const LOST_WRITE_AGE: Duration = Duration::from_secs(60);
/// Limit of remembered writes for each slice; the latest stay. It bounds memory only: writes to one slice run one at a
/// time, with growing back-off.
pub(crate) const LOST_WRITES_PER_SLICE: usize = 64;

/// Limit of labels that are attributed to webhooks. It bounds memory if a webhook adds a new label each time.
pub(crate) const FOREIGN_LABELS_MAX: usize = 64;

/// Characters of the suffix of a slice's name, as in the API server.
pub(crate) const NAME_SUFFIX_CHARS: usize = 5;
/// Limit of the prefix that is kept, as in the API server: names stay within 63 characters.
pub(crate) const NAME_PREFIX_CHARS_MAX: usize = 63 - NAME_SUFFIX_CHARS;
