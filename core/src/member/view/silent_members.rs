//! Silent members, as the hub agent lists them in the MemberAgent of this member.

use super::value::Value;
use super::{Effects, View};
use crate::features::Feature;
use crate::model::Treatment;
use fleetnet_types::ClusterId;
use std::collections::BTreeMap;

impl View {
    /// Records the list of silent members in the MemberAgent. A MemberAgent that was created again has no list until the hub agent
    /// writes its status. A hub agent that does not announce the list does not maintain it.
    pub(super) fn record_silent_members(&mut self, effects: &mut Effects) {
        let Some(agent) = self.member_agents.get(&self.own_member_agent()) else { return };
        // fault O19.1: agent.status.announcement.version.is_empty() ~> false
        if agent.status.announcement.version.is_empty() {
            return;
        }
        // fault O19.3: has(Feature::SilentMembers) ~> has(Feature::IPv6)
        let is_maintained = agent.status.announcement.known_features().has(Feature::SilentMembers);
        let listed = agent.status.silent_members.iter().filter(|_| is_maintained);
        let after: BTreeMap<ClusterId, Treatment> =
            listed.map(|member| (member.cluster.clone(), member.treatment)).collect();
        let before = std::mem::replace(&mut self.silent_members, after);
        let after = &self.silent_members;
        let clusters = before.keys().chain(after.keys().filter(|cluster| !before.contains_key(*cluster)));
        let changed = clusters.filter(|cluster| before.get(*cluster) != after.get(*cluster));
        effects.values.extend(changed.cloned().map(Value::Treatment));
    }
}
