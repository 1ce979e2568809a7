//! Announcement of the hub agent, and the state of the watch of this cluster's EndpointSlices, on which the heartbeat depends
//! ([`crate::handshake`]).

use super::{Key, View};
use crate::feature_set::FeatureSet;
use crate::index::Taken;
use crate::model::{EndpointSlice, Kind, MemberAgent, SliceContent};
use fleetnet_types::{ObjectName, Timestamp, WatchState};
use std::borrow::Cow;

impl View {
    /// Records that the watch of this cluster's slices lost contact with the API server.
    pub fn slices_lost(&mut self, requeue: &mut Vec<Key>) {
        if std::mem::take(&mut self.slices_followed) {
            requeue.push(Key::Heartbeat);
        }
    }

    /// Records that the watch of this cluster's slices has contact with the API server again.
    pub fn slices_followed(&mut self, requeue: &mut Vec<Key>) {
        if !std::mem::replace(&mut self.slices_followed, true) {
            requeue.push(Key::Heartbeat);
        }
    }

    pub(crate) fn follows_slices(&self) -> bool {
        // fault U2.1: slices_followed && self. ~>
        self.slices_followed && self.watches.complete(&[Kind::EndpointSlice])
    }

    /// Returns the hub's feature set; `None` until the MemberAgents are listed or the kind is known to be absent.
    pub(crate) fn hub_features(&self, now: Timestamp) -> Option<FeatureSet> {
        // fault U12.2: self.watches.state(Kind::MemberAgent) != WatchState::Incomplete ~> !matches!(self.watches.state(Kind::MemberAgent), WatchState::Incomplete | WatchState::Unknown)
        let is_known = self.watches.state(Kind::MemberAgent) != WatchState::Incomplete;
        is_known.then(|| self.hub_feature_set(now))
    }

    /// Returns the hub's feature set. Until the MemberAgents are listed, returns an assumed set without features (the Go form).
    pub(super) fn hub_feature_set(&self, now: Timestamp) -> FeatureSet {
        let (state, since) = (self.watches.state(Kind::MemberAgent), self.watches.since(Kind::MemberAgent));
        FeatureSet::at(now, self.hub_announced, state, since)
    }

    /// Returns a slice's content reduced to the hub's features; `None` if the hub does not support such slices.
    pub(super) fn content_for_hub<'a>(&self, slice: &'a EndpointSlice, at: Timestamp) -> Option<Cow<'a, SliceContent>> {
        self.hub_feature_set(at).slice(&slice.content)
    }

    pub(super) fn take_member_agent(&mut self, agent: MemberAgent, at: Timestamp, requeue: &mut Vec<Key>) {
        if agent.meta.name != self.own_member_agent() {
            return; // the MemberAgent does not have the name of this member
        }
        let before = self.ownership(at);
        if let Taken::Changed(_) = self.member_agents.take(agent) {
            self.note_renewal(at);
            self.record_hub_announcement(at, requeue);
            self.requeue_if_ownership_changed(&before, at, requeue);
        }
    }

    pub(super) fn forget_member_agent(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        let before = self.ownership(at);
        if self.member_agents.remove(name, uid).is_some() {
            self.record_hub_announcement(at, requeue);
            self.requeue_if_ownership_changed(&before, at, requeue);
        }
    }

    /// Records the hub agent's announcement. Requeues all keys if the hub's features changed.
    fn record_hub_announcement(&mut self, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = self.own_member_agent();
        let announcement = self.member_agents.get(&name).map(|agent| &agent.hub).filter(|hub| !hub.version.is_empty());
        if self.hub_announced.record(announcement.map(|hub| hub.known_features()), at) {
            let exported = self.slice_exports.iter().map(|export| export.spec.reference.source.clone());
            for slice in exported.collect::<Vec<_>>() {
                self.note_pending(&slice, at); // the new feature set can add content to the export or remove it
            }
            // fault U5.2: self.all_keys(requeue ~> requeue.extend(self.slice_exports.iter().map(|export| Key::SliceExport(export.spec.reference.source.clone()))
            self.all_keys(requeue);
        } else {
            requeue.push(Key::Heartbeat);
        }
    }
}
