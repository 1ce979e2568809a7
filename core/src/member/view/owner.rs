//! Owner of this cluster's id according to the MemberAgent in the hub, and the writes that are allowed without
//! ownership ([`crate::member::identity`]).

use super::renewals::{Leaders, Owners, Sighting};
use super::{McsApi, View};
use crate::index::Taken;
use crate::limits::{PROPERTIES_MAX, PROPERTY_BYTES_MAX, TWO_LEADERS_MICROS};
use crate::member::identity::{self, ClusterUid, Owner, Ownership, Record};
use crate::member::properties::{self, Merged};
use crate::model::{Announcement, Kind, Meta, Namespace, Properties, Renewal};
use crate::names::KUBE_SYSTEM;
use crate::plan::BlockingReason;
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text, Timestamp, Uid, WatchState};
use std::collections::BTreeMap;

impl View {
    /// Notes that this process does not lead any more. Another process of this cluster may lead before it leads again.
    pub fn follows(&mut self) {
        // A leader that comes back after another one of its cluster is no clone.
        self.owners.leaders = Leaders::default();
    }

    /// Returns the ownership of this cluster's id.
    pub fn ownership(&self, now: Timestamp) -> Ownership {
        if self.settings.announces.is_none() {
            return Ownership::Own;
        }
        let after = self.settings.takeover_after_micros;
        identity::ownership(&self.cluster_uid(), self.owner_record().as_ref(), now, after)
    }

    /// True if this cluster owns its id, so that this process may write to the hub.
    pub(in crate::member) fn acts_in_hub(&self, now: Timestamp) -> bool {
        self.ownership(now) == Ownership::Own
    }

    /// Returns the UID of this cluster's namespace `kube-system`, if known.
    pub fn own_cluster_uid(&self) -> Option<&Uid> {
        self.owners.own.as_ref()
    }

    fn cluster_uid(&self) -> ClusterUid {
        match self.watches.state(Kind::SystemNamespace) {
            WatchState::Incomplete => ClusterUid::NotRead,
            WatchState::Absent => ClusterUid::NotReadable,
            WatchState::Complete | WatchState::Unknown => {
                self.owners.own.clone().map_or(ClusterUid::NotReadable, ClusterUid::Known)
            }
        }
    }

    fn owner_record(&self) -> Option<Record> {
        let Owners { renewal, is_denied, is_pruned, .. } = &self.owners;
        let has_kind = match self.watches.state(Kind::MemberAgent) {
            WatchState::Incomplete => return None,
            WatchState::Complete => true,
            // False while the hub lacks the CRD of MemberAgent: no cluster can take the id over then, so the last owner
            // stays the owner.
            WatchState::Absent | WatchState::Unknown => false,
        };
        let name = self.own_member_agent();
        let is_undecodable = self.undecodable.has(Kind::MemberAgent, &name);
        let is_there = self.member_agents.get(&name).is_some();
        let newest = renewal.as_ref().filter(|_| is_there || !has_kind);
        let owner = newest.and_then(|newest| {
            let cluster = newest.cluster.clone()?;
            Some(Owner { cluster, seen: newest.seen, stopped: newest.stopped.is_some() })
        });
        Some(Record { owner, renewable: has_kind && !is_undecodable && !is_denied && !is_pruned })
    }

    pub fn own_member_agent(&self) -> ObjectName {
        self.in_hub(self.settings.cluster.clone())
    }

    /// Returns the time of the last renewal by this process. Renewals by other processes do not delay the next renewal.
    /// So two leaders of one cluster renew alternately, and each detects the other leader.
    pub(crate) fn last_renewal(&self) -> Option<Timestamp> {
        self.owners.renewed
    }

    /// Returns the `spec` of the MemberAgent that this process writes with its next heartbeat.
    pub(crate) fn renewal(&self, announcement: &Announcement, now: Timestamp) -> Renewal {
        let cluster_uid = match self.cluster_uid() {
            ClusterUid::Known(own) => Some(own),
            ClusterUid::NotRead | ClusterUid::NotReadable => None,
        };
        let (announcement, leader) = (announcement.clone(), self.settings.leader.clone());
        let latency = self.latencies.change(now);
        let slice_stream = self.slice_stream.report.clone();
        let properties = self.properties_change();
        Renewal { announcement, cluster_uid, leader, renewed: now, stopped: None, latency, slice_stream, properties }
    }

    /// Returns the properties that this member announces: none without cluster selection. `None` while a source is not
    /// listed, so that a restart changes nothing.
    fn properties(&self) -> Option<Merged> {
        let Some(selection) = &self.settings.cluster_selection else { return Some(Merged::default()) };
        let is_listed = |kind| self.watches.state(kind) != WatchState::Incomplete;
        let topology = [
            (properties::REGION, properties::agreed(self.nodes.iter().map(|node| node.region.as_ref()))),
            (properties::ZONE, properties::agreed(self.nodes.iter().map(|node| node.zone.as_ref()))),
        ];
        let of_nodes = topology.into_iter().filter_map(|(name, value)| Some((name.into(), value?.clone())));
        let of_flags = selection.properties.iter().map(|(name, value)| (name.clone(), value.clone()));
        let own = self
            .cluster_properties
            .iter()
            .filter(|it| !it.meta.deleting)
            .map(|it| (it.meta.name.name.clone(), it.value.clone()));
        let merged = properties::merge(&self.settings.cluster, of_nodes.chain(of_flags).chain(own));
        [Kind::ClusterProperty, Kind::Node].into_iter().all(is_listed).then_some(merged)
    }

    /// True if the MemberAgent lacks properties that this process has not written yet. A hub that drops them does not
    /// get them at once again.
    pub(crate) fn has_new_properties(&self) -> bool {
        let known = self.properties().map(|merged| merged.properties);
        known.is_some() && known != self.owners.announced && self.properties_change().is_some()
    }

    /// Returns why some properties are left out; `None` if none is.
    fn properties_left_out(&self) -> Option<String> {
        let left_out = self.properties()?.left_out;
        let some: Vec<&str> = left_out.iter().take(3).map(|name| &**name).collect();
        (!some.is_empty()).then(|| {
            format!(
                "cluster {} does not announce {} of its properties, such as {}: at most {PROPERTIES_MAX} count, with the \
                 first names, and values of at most {PROPERTY_BYTES_MAX} bytes. Remove ClusterProperties of the cluster or \
                 flags --cluster-property of its member agent, or shorten the values",
                self.settings.cluster,
                left_out.len(),
                some.join(", ")
            )
        })
    }

    /// Returns the properties in the MemberAgent that change, and `None` for each one that is gone.
    fn properties_change(&self) -> Option<BTreeMap<Text, Option<Text>>> {
        let (none, wanted) = (Properties::new(), self.properties()?.properties);
        let present = self.member_agents.get(&self.own_member_agent()).map_or(&none, |agent| &agent.properties);
        if wanted == *present || wanted.is_empty() {
            return (wanted != *present).then(BTreeMap::new);
        }
        let gone = present.keys().filter(|name| !wanted.contains_key(*name)).map(|name| (name.clone(), None));
        let is_new = |(name, value): &(&Text, &Text)| present.get(*name) != Some(*value);
        let new = wanted.iter().filter(is_new).map(|(name, value)| (name.clone(), Some(value.clone())));
        Some(gone.chain(new).collect())
    }

    /// Stores the UID of this cluster.
    pub(super) fn take_system_namespace(&mut self, meta: Meta) -> bool {
        self.owners.own = Some(meta.uid);
        false // the ownership shows a change
    }

    pub(super) fn take_namespace(&mut self, namespace: Namespace) -> bool {
        self.settings.mcs_api != McsApi::Off && matches!(self.namespaces.take(namespace), Taken::Changed(_))
    }

    /// Records the renewal in a MemberAgent, if this renewal is new.
    pub(super) fn note_renewal(&mut self, at: Timestamp) {
        let Some(agent) = self.member_agents.get(&self.own_member_agent()) else { return };
        let newest = Sighting::of(agent, &self.settings.leader, at);
        if self.owners.renewal.as_ref().is_some_and(|before| before.is_same_renewal(&newest)) {
            return; // the hub agent wrote only the status, so this is no renewal
        }
        let is_foreign = newest.cluster.is_some() && newest.cluster != self.owners.own;
        if let Some(leader) = newest.leader.as_ref().filter(|_| !is_foreign) {
            self.owners.leaders.note(leader, &self.settings.leader, at);
        }
        self.owners.is_pruned &= newest.cluster.is_none();
        self.owners.renewal = Some(newest);
    }

    /// Records that the hub accepted a renewal by this process. The MemberAgent in the response is already in the view.
    pub(in crate::member) fn renewal_written(&mut self, at: Timestamp) {
        let is_known = matches!(self.cluster_uid(), ClusterUid::Known(_));
        let answer = self.member_agents.get(&self.own_member_agent());
        (self.owners.renewed, self.owners.is_denied) = (Some(at), false);
        self.latencies.heartbeat_written(at);
        self.owners.announced = self.properties().map(|merged| merged.properties);
        self.owners.is_pruned = is_known && answer.is_some_and(|agent| agent.cluster_uid.is_none());
    }

    /// Records that the hub rejects or denies renewals by this process. Exports and imports continue if no other
    /// cluster owns the id.
    pub(in crate::member) fn renewal_denied(&mut self) {
        self.owners.is_denied = true;
    }

    /// Returns the blocking reasons about the cluster id: another cluster uses the id, two clusters share it, or the
    /// agent cannot check it.
    pub(super) fn identity_blocking_reasons(&self, ownership: &Ownership, now: Timestamp) -> Vec<BlockingReason> {
        let of_owner = match (ownership, self.cluster_uid()) {
            (Ownership::Foreign { cluster: owner, .. }, ClusterUid::Known(own)) => {
                Some((Reason::ClusterIdInUse, self.id_in_use(owner, &own)))
            }
            (Ownership::Own, own) => self.not_checked(&own).map(|why| (Reason::ClusterIdNotChecked, why)),
            _ => None,
        };
        let of_leaders = self.two_leaders(now).map(|message| (Reason::ClusterIdShared, message));
        let of_properties = self.properties_left_out().map(|message| (Reason::PropertiesLeftOut, message));
        of_owner
            .into_iter()
            .chain(of_leaders)
            .chain(of_properties)
            .map(|(reason, message)| BlockingReason { reason, message })
            .collect()
    }

    /// Returns why this cluster cannot check if it owns its id.
    fn not_checked(&self, own: &ClusterUid) -> Option<String> {
        let why = if *own == ClusterUid::NotReadable && self.watches.complete(&[Kind::MemberAgent]) {
            format!("it may not read its namespace {KUBE_SYSTEM}. Apply the ClusterRole of deploy/member-agent.yaml")
        } else if self.owners.is_pruned {
            "the hub's CRD of MemberAgent has no clusterUid. Apply deploy/crds in the hub".to_owned()
        } else {
            return None;
        };
        Some(format!("the agent cannot detect a second cluster with the id {}: {why}", self.settings.cluster))
    }

    fn two_leaders(&self, now: Timestamp) -> Option<String> {
        let (rival, at) = self.owners.leaders.rival.as_ref()?;
        (now < at.plus_micros(TWO_LEADERS_MICROS)).then(|| {
            format!(
                "two agents take turns to renew MemberAgent {}, {} and {rival}, and both have the UID of one cluster: \
                 one of them runs in a clone of this cluster, or without leader election. Stop it, or give it another \
                 cluster id",
                self.own_member_agent(),
                self.settings.leader
            )
        })
    }

    fn id_in_use(&self, owner: &Uid, own: &Uid) -> String {
        let (cluster, namespace) = (&self.settings.cluster, &self.settings.hub_namespace);
        format!(
            "cluster id {cluster} belongs to the cluster with UID {owner}, and this cluster has UID {own}: this \
             cluster exports and imports nothing. Give one of the two another id. Or let this cluster take over, in \
             the hub: kubectl -n {namespace} patch memberagent {cluster} --type=merge -p \
             '{{\"spec\":{{\"clusterUid\":\"{own}\"}}}}'"
        )
    }
}
