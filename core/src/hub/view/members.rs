//! Announcements of the members to the hub ([`crate::handshake`]).

use super::{Key, View};
use crate::feature_set::FeatureSet;
use crate::index::Taken;
use crate::model::{Kind, MemberAgent};
use crate::names;
use fleetnet_types::{ObjectName, Text, Timestamp, WatchState};

impl View {
    /// Returns the feature set of a member, by its member namespace.
    pub(crate) fn features_of(&self, namespace: &Text, now: Timestamp) -> FeatureSet {
        let announced = self.announced.get(namespace).copied().unwrap_or_default();
        FeatureSet::at(now, announced, self.watches.state(Kind::MemberAgent), self.watches.since(Kind::MemberAgent))
    }

    /// True once the hub agent has listed the MemberAgents, or knows that the kind is absent.
    pub(crate) fn knows_features(&self) -> bool {
        // fault U8.1: Incomplete } ~> Incomplete || true }
        // fault U12.1: self.watches.state(Kind::MemberAgent) != WatchState::Incomplete ~> !matches!(self.watches.state(Kind::MemberAgent), WatchState::Incomplete | WatchState::Unknown)
        self.watches.state(Kind::MemberAgent) != WatchState::Incomplete
    }

    pub(super) fn take_member_agent(&mut self, agent: MemberAgent, at: Timestamp, requeue: &mut Vec<Key>) {
        let name = agent.meta.name.clone();
        if let Taken::Changed(_) = self.member_agents.take(agent) {
            self.record_member_announcement(&name, at, requeue);
        }
    }

    pub(super) fn forget_member_agent(&mut self, name: &ObjectName, uid: &str, at: Timestamp, requeue: &mut Vec<Key>) {
        if self.member_agents.remove(name, uid).is_some() {
            self.record_member_announcement(name, at, requeue);
        }
    }

    /// Records the announcement in a MemberAgent. The name of a valid MemberAgent is the cluster id of its member namespace;
    /// others do not count. The features decide the content of the member's claims and distributed slices, so a change requeues
    /// them.
    fn record_member_announcement(&mut self, name: &ObjectName, at: Timestamp, requeue: &mut Vec<Key>) {
        let namespace = &name.namespace;
        // fault U9.1: as_deref() != Some(&*name.name ~> is_none(
        if names::cluster_of(namespace).as_deref() != Some(&*name.name) {
            return;
        }
        let announcement =
            self.member_agents.live(name).map(|agent| &agent.member).filter(|member| !member.version.is_empty());
        let announcement = announcement.map(|member| member.known_features());
        let changed = self.announced.entry(namespace.clone()).or_default().record(announcement, at);
        // fault T36.1: self.announced.retain(|_, announced| !announced.is_over(at)); ~>
        self.announced.retain(|_, announced| !announced.is_over(at)); // drops expired announcements of members that left
        if changed {
            for claim in self.claims.in_namespace(namespace) {
                // fault U6.3: self.requeue_slices_of(&claim.reference.source, requeue); ~>
                self.requeue_slices_of(&claim.reference.source, requeue);
                // fault F7.2: requeue.push(Key::Service(claim.reference.source.clone())); ~>
                requeue.push(Key::Service(claim.reference.source.clone()));
            }
            let copies = self.distributed_slices.in_namespace(namespace);
            requeue.extend(copies.map(|copy| Key::Slice(copy.meta.name.name.clone())));
        }
        requeue.push(Key::Member(name.name.clone().into()));
    }
}

#[cfg(test)]
mod tests {
    use crate::features::Features;
    use crate::hub::View;
    use crate::model::{Kind, Object};
    use crate::support::build::{IntoObject, member_agent, seconds};
    use fleetnet_types::{Change, Removal, Timestamp};

    fn hears(view: &mut View, cluster: &str, at: Timestamp) -> Object {
        let agent = member_agent(cluster, Features::ALL, Features::ALL).object();
        view.applied(agent.clone(), at, &mut Vec::new());
        agent
    }

    fn loses(view: &mut View, agent: &Object, at: Timestamp) {
        let (name, uid) = (agent.meta().name.clone(), agent.meta().uid.clone());
        view.apply(Kind::MemberAgent, Change::Removed { name, uid, how: Removal::Deleted }, at, &mut Vec::new());
    }

    #[test]
    fn nothing_is_remembered_of_members_that_left_a_minute_ago() {
        let mut view = View::default();
        for cluster in 0..100 {
            let agent = hears(&mut view, &format!("member-{cluster}"), seconds(1));
            loses(&mut view, &agent, seconds(2));
        }
        assert_eq!(view.announced.len(), 100, "what they announced holds for a minute");
        hears(&mut view, "member-100", seconds(61));
        assert_eq!(view.announced.len(), 101);
        hears(&mut view, "member-101", seconds(62));
        let left: Vec<&str> = view.announced.keys().map(|namespace| &**namespace).collect();
        assert_eq!(left, ["fleet-member-member-100", "fleet-member-member-101"]);
    }
}
