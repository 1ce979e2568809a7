//! Slice stream of this member: which server it connects to, and what came of it.

use super::View;
use crate::member::identity::Ownership;
use crate::model::{SliceStreamOffer, SliceStreamReport};
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

/// Server of the slice stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceStreamServer {
    /// The server in the flags.
    Fixed,
    Offered(SliceStreamOffer),
}

/// End of a slice stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// A hub agent that leads ended the stream.
    ByHub,
    /// Perhaps no hub agent leads.
    Other,
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
}

impl SliceStream {
    pub(super) fn clock_set(&mut self, micros: i64) {
        self.open_since = self.open_since.map(|since| since.plus_micros(micros));
    }
}

impl View {
    /// Returns the server to connect to; `None` for no stream. Another cluster that owns this cluster's id has the stream of the id.
    pub fn slice_stream_server(&self, now: Timestamp) -> Option<SliceStreamServer> {
        // fault J18.4: matches!(self.ownership(now), Ownership::Foreign { .. }) ~> false
        if matches!(self.ownership(now), Ownership::Foreign { .. }) {
            return None;
        }
        match self.slice_stream.chosen {
            SliceStreamUse::Off => None,
            SliceStreamUse::Fixed => Some(SliceStreamServer::Fixed),
            SliceStreamUse::Offered => self.slice_stream_offer().cloned().map(SliceStreamServer::Offered),
        }
    }

    /// Returns the offer of the hub agent's slice stream.
    pub fn slice_stream_offer(&self) -> Option<&SliceStreamOffer> {
        self.member_agents.get(&self.own_member_agent())?.slice_stream.as_ref()
    }
}
