//! Limits of this crate: limits that the Kubernetes API sets, and limits of the crate's memory.

use std::ops::RangeInclusive;

/// Permitted values of the configured limit of endpoints per slice. The API rejects slices with more than 1000
/// endpoints.
pub const MAX_ENDPOINTS_RANGE: RangeInclusive<usize> = 1..=1000;

/// Default limit of endpoints per slice, as in kube-controller-manager.
pub(crate) const MAX_ENDPOINTS_DEFAULT: usize = 100;

/// Maximum length of a label value in the Kubernetes API, in bytes.
pub(crate) const LABEL_VALUE_BYTES_MAX: usize = 63;

/// Maximum number of Nodes in the cache of hints, above the size of the largest clusters. A full cache is cleared,
/// which happens only after many Nodes were replaced.
pub(crate) const HINT_NODES_MAX: usize = 16_384;

/// Maximum number of zones in the cache of hints, above the number of zones in the largest regions. A full cache is
/// cleared.
pub(crate) const HINT_ZONES_MAX: usize = 1024;

/// Maximum number of stored events about hints. If the caller does not take the events, the oldest events are dropped.
pub(crate) const HINT_EVENTS_MAX: usize = 1024;

/// Number of recent texts that each thread caches, so that equal texts share one allocation. This number suffices for
/// the Nodes and labels of a large cluster, and the table takes 64 KiB.
pub(crate) const SHARED_TEXTS: usize = 4096;

/// Number of unused lists of ports that the state of a Service may contain. With a lower limit, the library would
/// search for unused lists more often, and the saved memory would not justify this time.
pub(crate) const UNUSED_PORT_LISTS: usize = 16;

/// Maximum number of watch events that the tracker of own writes records for a Service while writes are pending. Beyond
/// this limit the tracker forgets the oldest deletion, and reports a change at once, which costs at most one needless
/// plan.
#[cfg(feature = "apply")]
pub(crate) const TRACKED_EVENTS_MAX: usize = 1024;
