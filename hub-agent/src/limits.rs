//! All limits of this crate.

use std::time::Duration;

/// Number of serialized slices that are kept for further importers. A change of a slice is planned for its importers close together,
/// so few slices are in use at a time. At 100 endpoints, one takes about 20 kB.
pub(crate) const SLICE_BODIES: usize = 64;

/// Time after a watch continues during which the server may still send changes of the time without a connection. Such a change
/// arrives late, so its arrival shows neither the time of the change nor the member's clock.
pub(crate) const REPLAY: Duration = Duration::from_secs(5);
