//! What the hub has announced, and whether this cluster's slices are followed ([`crate::handshake`]).

use super::{Key, View};
use crate::feature_set::FeatureSet;
use crate::ids::{ObjectName, Timestamp};
use crate::index::Taken;
use crate::model::{EndpointSlice, Kind, MemberAgent, SliceContent};
use crate::watches::WatchState;
use std::borrow::Cow;

impl View {
    /// The watch of this cluster's slices has lost touch with the server, or found it again.
    pub fn slices_followed(&mut self, followed: bool, dirty: &mut Vec<Key>) {
        if std::mem::replace(&mut self.slices_followed, followed) != followed {
            dirty.push(Key::Heartbeat);
        }
    }

    pub(crate) fn follows_slices(&self) -> bool {
        // fault U2.1: slices_followed && self. ~>
        self.slices_followed && self.watches.complete(&[Kind::EndpointSlice])
    }

    /// Feature set of the hub; `None` until its announcement has been listed, or cannot be.
    pub(crate) fn hub_features(&self, now: Timestamp) -> Option<FeatureSet> {
        // fault U12.2: self.watches.state(Kind::MemberAgent) != WatchState::Incomplete ~> !matches!(self.watches.state(Kind::MemberAgent), WatchState::Incomplete | WatchState::Unknown)
        let is_known = self.watches.state(Kind::MemberAgent) != WatchState::Incomplete;
        is_known.then(|| self.hub_feature_set(now))
    }

    /// The same, assumed to be the Go form until then.
    pub(super) fn hub_feature_set(&self, now: Timestamp) -> FeatureSet {
        let (state, since) = (self.watches.state(Kind::MemberAgent), self.watches.since(Kind::MemberAgent));
        FeatureSet::at(now, self.hub_announced, state, since)
    }

    /// What the hub is told of a slice; `None` where it would not understand it.
    pub(super) fn told_to_hub<'a>(&self, slice: &'a EndpointSlice, at: Timestamp) -> Option<Cow<'a, SliceContent>> {
        self.hub_feature_set(at).slice(&slice.content)
    }

    pub(super) fn take_member_agent(&mut self, agent: MemberAgent, at: Timestamp, dirty: &mut Vec<Key>) {
        if agent.meta.name != self.own_member_agent() {
            return; // somebody else's
        }
        let acted = self.acts_in_hub(at);
        if let Taken::Changed(_) = self.member_agents.take(agent) {
            self.note_renewal(at);
            self.hear_hub(at, dirty);
            self.ownership_dirties(acted, at, dirty);
        }
    }

    pub(super) fn forget_member_agent(&mut self, name: &ObjectName, uid: &str, at: Timestamp, dirty: &mut Vec<Key>) {
        let acted = self.acts_in_hub(at);
        if self.member_agents.remove(name, uid).is_some() {
            self.hear_hub(at, dirty);
            self.ownership_dirties(acted, at, dirty);
        }
    }

    /// What the hub understands decides what of every slice and Service it is told.
    fn hear_hub(&mut self, at: Timestamp, dirty: &mut Vec<Key>) {
        let name = self.own_member_agent();
        let said = self.member_agents.get(&name).map(|agent| &agent.hub).filter(|hub| !hub.version.is_empty());
        if self.hub_announced.heard(said.map(|hub| hub.understood()), at) {
            let exported = self.slice_exports.iter().map(|export| export.spec.reference.source.clone());
            for slice in exported.collect::<Vec<_>>() {
                self.note_pending(&slice, at); // what it is told may be more, or less, than it has
            }
            // fault U5.2: self.all_keys(dirty ~> dirty.extend(self.slice_exports.iter().map(|export| Key::SliceExport(export.spec.reference.source.clone()))
            self.all_keys(dirty);
        } else {
            dirty.push(Key::Heartbeat);
        }
    }
}
