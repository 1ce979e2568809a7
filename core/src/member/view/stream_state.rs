//! State of the slice stream.

use crate::model::SliceStreamReport;
use fleetnet_types::Timestamp;

/// Value of the flags about the slice stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SliceStreamUse {
    #[default]
    Off,
    /// The server that the hub agent offers.
    Offered,
    /// The server in the flags.
    Fixed,
}

/// State of the slice stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceStream {
    /// Value of the flags.
    pub chosen: SliceStreamUse,
    /// Report for the next heartbeat; `None` while this process uses no stream.
    pub report: Option<SliceStreamReport>,
    /// Time since which the stream is open; `None` while it is not open.
    pub(in crate::member) open_since: Option<Timestamp>,
    /// Time at which the offer of the hub agent changed last, as this process has seen.
    pub(super) offer_changed: Option<Timestamp>,
}

impl SliceStream {
    pub(super) fn clock_set(&mut self, micros: i64) {
        for time in [&mut self.open_since, &mut self.offer_changed] {
            *time = time.map(|time| time.plus_micros(micros));
        }
    }
}
