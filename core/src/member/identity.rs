//! Ownership of a cluster id: of two clusters with one id, one acts in the hub and the other waits.
//!
//! The MemberAgent names the owner of the id by the UID of the owner's namespace `kube-system`. Three rules keep two clusters
//! from acting at the same time:
//!
//! - A cluster acts in the hub only while the MemberAgent that it sees has its own UID.
//! - Each change of that UID is a write with the resourceVersion as the precondition. Of two clusters that write at once, one
//!   wins, and the other sees it.
//! - The owner stops after half of `takeover_after` without a renewal. Another cluster may take over only after the whole time.
//!   Both use their own clocks, so wrong clocks have no effect. The owner counts from when it sent the renewal, the other
//!   cluster from when it first saw it.

use crate::limits::RESTART_MICROS;
use fleetnet_types::{Timestamp, Uid};

/// Ownership of this cluster's id, which decides if the cluster may act in the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This cluster owns the id, or the check is off.
    Own,
    /// This cluster owns the id but has not renewed for too long: it renews before it acts.
    Overdue,
    /// No cluster owns the id: this cluster writes its UID, and acts once it sees that.
    Vacant,
    Foreign {
        /// UID of the other cluster's namespace `kube-system`.
        cluster: Uid,
        /// Time when the id becomes vacant without a further renewal.
        until: Timestamp,
    },
    Unknown,
}

/// UID of this cluster, as far as known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterUid {
    /// The namespace `kube-system` has not been read yet.
    NotRead,
    /// This agent has no right to read the namespace: the check is off.
    NotReadable,
    Known(Uid),
}

/// Owner according to the newest MemberAgent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `None` without a MemberAgent, or if it has no UID.
    pub owner: Option<Owner>,
    /// False if no renewal can be recorded: the hub has no definition of MemberAgent or an older one, or it rejects the write.
    pub renewable: bool,
}

/// Owner of an id at its last renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// UID of its namespace `kube-system`.
    pub cluster: Uid,
    /// Time when this agent first saw the renewal, on its own clock; for its own renewal, the time when it was sent.
    pub seen: Timestamp,
    /// True if the owner announced a stop. Another cluster may take over soon, but not during a restart.
    pub stopped: bool,
}

/// Returns the ownership of the id for the cluster `own`. `record` is `None` until the hub's MemberAgents are listed.
pub fn ownership(own: &ClusterUid, record: Option<&Record>, now: Timestamp, takeover_after_micros: i64) -> Ownership {
    let Some(record) = record else { return Ownership::Unknown };
    let own = match own {
        ClusterUid::NotRead => return Ownership::Unknown,
        // fault O8.1 (identity::who_owns_an_id_is_read_from_the_newest_renewal): Own ~> Unknown
        ClusterUid::NotReadable => return Ownership::Own,
        ClusterUid::Known(own) => own,
    };
    match &record.owner {
        // If nobody can record an owner, waiting would not protect another cluster.
        None if !record.renewable => Ownership::Own,
        // fault O5.1: Vacant ~> Own
        None => Ownership::Vacant,
        Some(owner) if owner.cluster == *own => {
            // fault O4.1: takeover_after_micros / 2 ~> takeover_after_micros * 2
            let is_fresh = now < owner.seen.plus_micros(takeover_after_micros / 2);
            if is_fresh || !record.renewable { Ownership::Own } else { Ownership::Overdue }
        }
        Some(owner) => {
            // fault O3.1: owner.stopped ~> false
            // fault O3.5: takeover_after_micros ~> 0
            let silence = if owner.stopped { RESTART_MICROS.min(takeover_after_micros) } else { takeover_after_micros };
            let until = owner.seen.plus_micros(silence);
            // fault O3.2: until { return ~> until && owner.stopped { return
            if now >= until {
                return Ownership::Vacant;
            }
            Ownership::Foreign { cluster: owner.cluster.clone(), until }
        }
    }
}
