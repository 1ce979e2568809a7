//! Settings of the EndpointSlice controller ([`Settings`]).

use super::controller::Timing;
use super::limits::{CONCURRENT_SYNCS, TAKEOVER_AFTER};
use super::takeover::Mode;
use endpointslice::Config;
use std::time::Duration;

/// Settings of the EndpointSlice controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Value of `--endpointslices`. With [`Mode::Off`] the agent has no EndpointSlice controller.
    pub mode: Mode,
    /// Time without activity of another controller after which this controller becomes active, in [`Mode::Auto`].
    pub takeover_after: Duration,
    /// Name in the label `managed-by`, maximum size of slices and other settings of the `endpointslice` library.
    pub config: Config,
    /// Delays between a change of pods and the write of the slices.
    pub timing: Timing,
    /// Maximum number of writes in flight.
    pub concurrent_syncs: usize,
}

impl Settings {
    /// Returns settings with this mode and the default values of the flags.
    #[must_use]
    pub fn with_mode(mode: Mode) -> Self {
        Self {
            mode,
            takeover_after: TAKEOVER_AFTER,
            config: Config::default(),
            timing: Timing::with_batch_period(Duration::ZERO),
            concurrent_syncs: CONCURRENT_SYNCS,
        }
    }
}
