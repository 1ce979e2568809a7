//! Renewals of the MemberAgent that this process has seen: they show the owner and the leaders of the cluster id.

use crate::model::{MemberAgent, Properties};
use fleetnet_types::{Text, Timestamp, Uid};

/// Owners and leaders of this cluster's id, as far as this process has seen them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Owners {
    pub(super) own: Option<Uid>,
    /// Newest renewal, by any process, that this process has seen. Kept after the MemberAgent is gone.
    pub(super) renewal: Option<Sighting>,
    /// Time of the last renewal that this process wrote.
    pub(super) renewed: Option<Timestamp>,
    /// True if the hub denies or rejects this process's renewals.
    pub(super) is_denied: bool,
    /// True if the hub accepted a renewal but pruned the UID, because its CRD of MemberAgent is too old.
    pub(super) is_pruned: bool,
    pub(super) leaders: Leaders,
    /// Properties in the last renewal that this process wrote.
    pub(super) announced: Option<Properties>,
}

impl Owners {
    /// Moves all stored times by `micros`, after the wall clock was set by this duration. So each wait keeps its
    /// length.
    pub(super) fn clock_set(&mut self, micros: i64) {
        let seen = self.renewal.as_mut().map(|newest| &mut newest.seen);
        let rival = self.leaders.rival.as_mut().map(|(_, at)| at);
        for at in [seen, rival, self.renewed.as_mut()].into_iter().flatten() {
            *at = at.plus_micros(micros);
        }
    }
}

/// Renewal of the MemberAgent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sighting {
    pub(super) cluster: Option<Uid>,
    pub(super) leader: Option<Text>,
    renewed: Option<Timestamp>,
    pub(super) stopped: Option<Timestamp>,
    /// Time at which this process first saw the renewal. For a renewal by this process, the time at which the write was
    /// sent.
    pub(super) seen: Timestamp,
}

impl Sighting {
    pub(super) fn of(agent: &MemberAgent, own_leader: &Text, at: Timestamp) -> Self {
        let MemberAgent { cluster_uid, leader, renewed, stopped, .. } = agent;
        let sent = renewed.filter(|_| leader.as_ref() == Some(own_leader)).unwrap_or(at);
        let (cluster, leader) = (cluster_uid.clone(), leader.clone());
        Self { cluster, leader, renewed: *renewed, stopped: *stopped, seen: sent.min(at) }
    }

    pub(super) fn is_same_renewal(&self, other: &Self) -> bool {
        *self == Self { seen: self.seen, ..other.clone() }
    }
}

/// Leaders that renew the MemberAgent for this cluster.
///
/// Normally an old leader does not renew again after a new leader, unless the new one has followed meanwhile. But two
/// clusters have the same UID if one is a clone of the other. Then their leaders renew alternately.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Leaders {
    /// True if this process wrote the newest renewal.
    is_own_newest: bool,
    other: Option<Text>,
    /// Identity of another leader that renewed both before and after a renewal by this process, and the time of its
    /// last renewal.
    pub(super) rival: Option<(Text, Timestamp)>,
}

impl Leaders {
    pub(super) fn note(&mut self, leader: &Text, own: &Text, at: Timestamp) {
        if leader == own {
            self.is_own_newest = true;
            return;
        }
        let came_back = std::mem::take(&mut self.is_own_newest) && self.other.as_ref() == Some(leader);
        if came_back {
            self.rival = Some((leader.clone(), at));
        }
        self.other = Some(leader.clone());
    }
}
