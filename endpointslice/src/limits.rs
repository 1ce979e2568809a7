//! Limits of this crate. [`MAX_ENDPOINTS_RANGE`] is a limit of the API; the others bound memory.

use std::ops::RangeInclusive;

/// Smallest and largest permitted value of the limit of endpoints in a slice. The API rejects slices with more than 1000
/// endpoints.
pub const MAX_ENDPOINTS_RANGE: RangeInclusive<usize> = 1..=1000;

/// Default limit of endpoints in a slice, as in kube-controller-manager.
pub(crate) const MAX_ENDPOINTS_DEFAULT: usize = 100;

/// Longest value of a label in the API, in bytes.
pub(crate) const LABEL_VALUE_BYTES_MAX: usize = 63;

/// Nodes with cached hints at most, above the size of the largest clusters. The cache is cleared when it is full, which happens
/// only after many Nodes were replaced.
pub(crate) const HINT_NODES_MAX: usize = 16_384;

/// Zones with cached hints at most, above the number in the largest regions. The cache is cleared when it is full.
pub(crate) const HINT_ZONES_MAX: usize = 1024;

/// Events about hints that are stored if the caller does not take them. The oldest are dropped.
pub(crate) const HINT_EVENTS_MAX: usize = 1024;

/// Texts that each thread keeps for sharing: enough for the Nodes and labels of a large cluster, in 64 KiB.
pub(crate) const SHARED_TEXTS: usize = 4096;

/// Unused lists of ports that a Service may keep. Searching for fewer of them would cost more than it saves.
pub(crate) const UNUSED_PORT_LISTS: usize = 16;

/// Events recorded while writes are pending, at most. Beyond that the oldest deletion is forgotten and a change is reported at
/// once, which costs at most one needless plan.
#[cfg(feature = "apply")]
pub(crate) const TRACKED_EVENTS_MAX: usize = 1024;
