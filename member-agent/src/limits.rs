//! Limits, default times and default numbers of the member agent.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Default of `--derived-service-grace`. With the Go agents, the derived Service and its address disappear within 60 s of an
/// unexport.
pub const DERIVED_SERVICE_GRACE: Duration = Duration::from_secs(30);

/// Minimum of `--member-takeover-after`: a member renews its MemberAgent every 10 s, and a restart must not cost it its id.
pub(crate) const MEMBER_TAKEOVER_MIN: Duration = Duration::from_secs(120);

/// Default of `--endpointslices-takeover-after`: several lease durations of kube-controller-manager.
pub(crate) const SLICES_TAKEOVER: Duration = Duration::from_secs(180);

/// Shortest time to watch kube-controller-manager's Lease before its own renewTime counts: its default lease duration, in which
/// it renews several times.
pub(crate) const LEASE_LOOK_MIN: Duration = Duration::from_secs(15);
/// Longest time to watch that Lease before its renewTime counts, even if its lease duration is longer.
pub(crate) const LEASE_LOOK_MAX: Duration = Duration::from_secs(600);

/// Default of `--concurrent-service-endpoint-syncs`, as in kube-controller-manager.
pub(crate) const CONCURRENT_SYNCS_DEFAULT: usize = 5;
/// Range of `--concurrent-service-endpoint-syncs` that kube-controller-manager accepts.
pub(crate) const CONCURRENT_SYNCS: RangeInclusive<usize> = 1..=50;

/// Delay from a foreign write to a slice until its Service is planned: two writers that undo each other cost one write a
/// second.
pub(crate) const FOREIGN_CHANGE_DELAY: Duration = Duration::from_secs(1);

/// Minimum time between writes of one Service that publish changes of pods. In a rollout, pods change every few
/// milliseconds, so each write carries several changes.
pub(crate) const SLICES_PACE: Duration = Duration::from_millis(15);

/// Most writes in one phase for one address type. Each outcome leads to a new plan.
pub(crate) const WRITES_PER_PHASE: usize = 32;

/// Age after which a write without an answer cannot be executed any more: an API server gives up on a write within that time.
pub(crate) const LOST_WRITE_AGE: Duration = Duration::from_secs(60);
/// Most remembered writes of unknown outcome for each slice; the latest stay. It bounds memory only: writes to one slice run
/// one at a time, with growing back-off.
pub(crate) const LOST_WRITES_PER_SLICE: usize = 64;

/// Most labels that the controller attributes to webhooks. It bounds memory if a webhook adds a new label each time.
pub(crate) const FOREIGN_LABELS_MAX: usize = 64;

/// Characters of the suffix of a slice's name, as in the API server.
pub(crate) const NAME_SUFFIX_CHARS: usize = 5;
/// Longest prefix of a slice's name before the suffix, as in the API server: names stay within 63 characters.
pub(crate) const NAME_PREFIX_CHARS_MAX: usize = 63 - NAME_SUFFIX_CHARS;
