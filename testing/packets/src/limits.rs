//! Limits and intervals of the bed.

use std::time::Duration;

/// Maximum number of beds that a test program runs at the same time. Most of the time, each one waits for pods to end
/// or for a Lease to expire.
pub(crate) const BEDS: usize = 3;
/// Time limit of a call of a program such as `ip`.
pub(crate) const COMMAND: Duration = Duration::from_secs(60);
/// Pause after a failed request to an API server.
pub(crate) const RETRY: Duration = Duration::from_millis(200);
/// First pause before a container starts again. Each further start doubles it, as in a kubelet.
pub(crate) const FIRST_RESTART: Duration = Duration::from_secs(10);
/// Longest pause before a container starts again.
pub(crate) const LAST_RESTART: Duration = Duration::from_secs(300);
/// Time that a container has after SIGTERM if its preStop hook used up the grace period, as in a kubelet.
pub(crate) const LEAST_GRACE: Duration = Duration::from_secs(2);
/// Time limit of a request to a program of the bed.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of bytes of an HTTP answer that is read.
pub(crate) const ANSWER_BYTES: usize = 1 << 20;
/// Maximum number of requests that a client has under way. Further requests count as failed.
pub(crate) const UNDER_WAY: usize = 10_000;
/// Time limit until a member that ended its renewals or began them again is treated so. A member that was silent
/// several times must renew for 5 minutes.
pub const SILENCE: Duration = Duration::from_secs(400);
/// Pause between changes. It is longer than the 2 s after which a client gives up a request, and than the second that
/// kube-proxy waits between two changes of its rules.
pub const SETTLED: Duration = Duration::from_secs(3);
