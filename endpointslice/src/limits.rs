//! Limits of this crate. [`MAX_ENDPOINTS_RANGE`] is of the API; the others bound memory.

use std::ops::RangeInclusive;

/// Smallest and largest limit of endpoints in a slice. The API rejects slices with more than 1000 endpoints.
pub const MAX_ENDPOINTS_RANGE: RangeInclusive<usize> = 1..=1000;

/// Endpoints in a slice by default, as in kube-controller-manager.
pub(crate) const MAX_ENDPOINTS_DEFAULT: usize = 100;

/// Length of the value of a label in the API, in bytes.
pub(crate) const LABEL_VALUE_BYTES_MAX: usize = 63;

/// Limit of cached Nodes, above the size of the largest clusters. The cache is cleared when it is full, which happens only
/// after many Nodes were replaced.
pub(crate) const HINT_NODES_MAX: usize = 16_384;

/// Limit of cached zones, above the number in the largest regions. The cache is cleared when it is full.
pub(crate) const HINT_ZONES_MAX: usize = 1024;

/// Limit of stored events about hints if nobody takes them. The oldest are dropped.
pub(crate) const HINT_EVENTS_MAX: usize = 1024;

/// Recently requested texts that are shared in a thread: enough for the Nodes and labels of a large cluster, in 64 KiB.
pub(crate) const SHARED_TEXTS: usize = 4096;

/// Lists of ports that a Service may keep unused. A search for unused lists below this size would cost more than they do.
pub(crate) const UNUSED_PORT_LISTS: usize = 16;

/// Limit of recorded events while writes are pending. Beyond it the oldest deletion is forgotten and a change is reported at
/// once, which costs at most one needless plan.
#[cfg(feature = "apply")]
pub(crate) const TRACKED_EVENTS_MAX: usize = 1024;
