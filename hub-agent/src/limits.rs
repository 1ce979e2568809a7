//! All limits of this crate.

use std::time::Duration;

/// Time after a watch continues during which the server may still send changes of the time without a connection. Such a change
/// arrives late, so its arrival shows neither the time of the change nor the member's clock.
pub(crate) const REPLAY: Duration = Duration::from_secs(5);
