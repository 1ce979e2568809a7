//! Slice stream of this member: which server it connects to, and what came of it.

use super::View;
use super::stream_state::SliceStreamUse;
use crate::member::identity::Ownership;
use crate::model::{Kind, SliceStreamOffer};
use fleetnet_types::{ObjectName, Timestamp};

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

/// Knowledge of this process about a hub agent that leads, and could write a distributed slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HubLeads {
    /// Nothing: the watch of distributed slices has no contact with the hub.
    Unknown,
    /// Perhaps none leads, and the imported slice perhaps has what a slice stream delivered. The watch has contact
    /// since this time.
    Perhaps(Timestamp),
    /// One leads, or no slice stream delivers anything. The watch sees what it writes since this time.
    Since(Timestamp),
}

impl View {
    /// Returns the server whose stream this process uses; `None` for no stream. Another cluster that owns this
    /// cluster's id has the stream of the id.
    pub fn slice_stream_server(&self, now: Timestamp) -> Option<SliceStreamServer> {
        if matches!(self.ownership(now), Ownership::Foreign { .. }) {
            return None;
        }
        match self.slice_stream.chosen {
            SliceStreamUse::Off => None,
            SliceStreamUse::Fixed => Some(SliceStreamServer::Fixed),
            SliceStreamUse::Offered => self.slice_stream_offer().cloned().map(SliceStreamServer::Offered),
        }
    }

    /// Returns the server to connect to now; `None` for no stream. An open stream shows that this member lives, as a
    /// heartbeat does. So there is none while this process does not follow the slices of its cluster.
    pub fn slice_stream_to_open(&self, now: Timestamp) -> Option<SliceStreamServer> {
        self.slice_stream_server(now).filter(|_| self.follows_slices())
    }

    /// True while the watch of this cluster's EndpointSlices works.
    pub(super) fn follows_slices(&self) -> bool {
        self.slices_followed && self.watches.complete(&[Kind::EndpointSlice])
    }

    /// Records that the offer of the hub agent was `before`. If it has changed, the imports rely on objects alone
    /// again, or on another hub agent.
    pub(super) fn offer_was(&mut self, before: Option<&SliceStreamOffer>, at: Timestamp) {
        if self.slice_stream.chosen == SliceStreamUse::Offered && self.slice_stream_offer() != before {
            self.slice_stream.offer_changed = Some(at);
        }
    }

    /// Returns what this process knows about a hub agent that could write the distributed slice of this imported slice.
    /// No slice is imported before the offer of the hub agent, in the MemberAgent, was read.
    pub(super) fn hub_leads(&self, imported: &ObjectName, now: Timestamp) -> HubLeads {
        let Some(followed) = self.hub_followed_since else { return HubLeads::Unknown };
        let since = self.slice_stream.offer_changed.map_or(followed, |changed| changed.max(followed));
        if let Some(open_since) = self.slice_stream.open_since {
            return HubLeads::Since(since.max(open_since));
        }
        if self.was_written(imported) || self.slice_stream_server(now).is_none() {
            return HubLeads::Since(since);
        }
        HubLeads::Perhaps(since)
    }

    /// Returns the offer of the hub agent's slice stream.
    pub fn slice_stream_offer(&self) -> Option<&SliceStreamOffer> {
        self.member_agents.get(&self.own_member_agent())?.status.slice_stream.as_ref()
    }
}
