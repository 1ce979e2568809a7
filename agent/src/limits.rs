//! All limits of this crate.

use std::time::Duration;

/// Maximum number of slices with a waiting message in one mailbox. A further message is dropped, and the object follows
/// after a second instead.
pub const MAILBOX_SLICES: usize = 10_000;
/// Maximum number of spans that wait for the collector. Further ones are dropped.
#[cfg(feature = "otlp")]
pub(crate) const SPAN_QUEUE: usize = 512;
/// Number of waiting spans that are sent at once.
#[cfg(feature = "otlp")]
pub(crate) const SPAN_BATCH: usize = 64;
/// Time after which fewer spans are sent.
#[cfg(feature = "otlp")]
pub(crate) const SPAN_BATCH_DELAY: Duration = Duration::from_secs(1);
/// Time for a request to the collector, and for the last one of a process.
#[cfg(feature = "otlp")]
pub(crate) const SPAN_EXPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of a host name, as in DNS (RFC 1035).
pub(crate) const HOST_BYTES_MAX: usize = 253;
/// Age of an object up to which the first write for it counts as the same change. A later one is a repair, or for a new
/// importer.
pub(crate) const NEW_OBJECT: Duration = Duration::from_secs(60);
/// Longest time from the trigger of a change to the time at which the agent saw it. An older trigger is of an earlier
/// change.
pub(crate) const TRIGGER_AGE: Duration = Duration::from_secs(600);
