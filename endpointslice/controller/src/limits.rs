//! Limits and default values of the EndpointSlice controller.

use std::time::Duration;

/// Minimum time to watch kube-controller-manager's Lease before the `renewTime` in the Lease counts. In this time, an
/// active kube-controller-manager renews the Lease several times: its default lease duration is 15 s, and it renews
/// every 2 s.
pub(crate) const LEASE_LOOK_MIN: Duration = Duration::from_secs(15);
/// Maximum time to watch kube-controller-manager's Lease before the `renewTime` in the Lease counts, even if the lease
/// duration is longer.
pub(crate) const LEASE_LOOK_MAX: Duration = Duration::from_secs(600);

/// Maximum number of writes in flight, as in kube-controller-manager, unless the program sets another one.
pub(crate) const CONCURRENT_SYNCS: usize = 5;

/// Time without activity of another controller, unless the program sets another one. kube-controller-manager renews its
/// Lease every 2 s, so it has stopped, and its restart or update takes less time.
pub(crate) const TAKEOVER_AFTER: Duration = Duration::from_secs(180);

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
