//! Status that the hub agent writes to the MemberAgent of this member: its announcement, and the silent members.

use super::value::Value;
use super::{Effects, View};
use crate::model::Treatment;
use fleetnet_types::{ClusterId, Timestamp};
use std::collections::BTreeMap;

impl View {
    /// Records the announcement of the hub agent.
    pub(super) fn record_hub_announcement(&mut self, at: Timestamp, effects: &mut Effects) {
        let name = self.own_member_agent();
        let announcement =
            self.member_agents.get(&name).map(|agent| &agent.status.announcement).filter(|hub| !hub.version.is_empty());
        if self.hub_announced.record(announcement.map(|hub| hub.known_features()), at) {
            let slices: Vec<_> = self.slices.iter().map(|slice| slice.meta.name.clone()).collect();
            for slice in slices {
                self.settle_changes(&slice, at); // the new feature set can add content to an export or remove it
            }
            effects.values.push(Value::HubAnnounced);
        }
    }

    /// Records the list of silent members in the MemberAgent. A MemberAgent that was created again has no list until
    /// the hub agent writes its status.
    pub(super) fn record_silent_members(&mut self, effects: &mut Effects) {
        let Some(agent) = self.member_agents.get(&self.own_member_agent()) else { return };
        if agent.status.announcement.version.is_empty() {
            return;
        }
        let listed = agent.status.silent_members.iter();
        let after: BTreeMap<ClusterId, Treatment> =
            listed.map(|member| (member.cluster.clone(), member.treatment)).collect();
        let before = std::mem::replace(&mut self.silent_members, after);
        let after = &self.silent_members;
        let changed = before.keys().chain(after.keys()).filter(|cluster| before.get(*cluster) != after.get(*cluster));
        effects.values.extend(changed.cloned().map(Value::Treatment));
    }
}
