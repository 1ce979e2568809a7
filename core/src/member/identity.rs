//! Ownership of a cluster id: of two clusters with one id, one writes to the hub and the other waits.
//!
//! The MemberAgent names the owner of the id by the UID of the owner's namespace `kube-system`. Three rules keep two clusters
//! from writing at the same time:
//!
//! - A cluster writes to the hub only while the MemberAgent that it sees has its own UID.
//! - Each change of that UID is a write with the resourceVersion as the precondition. Of two clusters that write at once, one
//!   wins, and the other sees it.
//! - The owner stops after half of `takeover_after` without a renewal. Another cluster may take over only after the whole time.
//!   Both use their own clocks, so wrong clocks have no effect. The owner counts from when it sent the renewal, the other
//!   cluster from when it first saw it.

use crate::limits::RESTART_MICROS;
use fleetnet_types::{Timestamp, Uid};

/// Ownership of this cluster's id, which decides whether the cluster may write to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This cluster owns the id, or the check is off: it may write to the hub.
    Own,
    /// This cluster owns the id but has not renewed for too long. It must renew before other writes.
    Overdue,
    /// No cluster owns the id. This cluster writes its UID, and may write more once it sees that UID in the hub.
    Vacant,
    Foreign {
        /// UID of the namespace `kube-system` of the cluster that owns the id.
        cluster: Uid,
        /// Time at which the id becomes vacant if its owner does not renew.
        until: Timestamp,
    },
    Unknown,
}

/// UID of this cluster's namespace `kube-system`, as far as known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterUid {
    /// The namespace `kube-system` is not read yet.
    NotRead,
    /// This agent has no right to read the namespace `kube-system`, so the check is off.
    NotReadable,
    Known(Uid),
}

/// Owner of the id according to the newest MemberAgent in the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `None` without a MemberAgent, or if the MemberAgent has no UID.
    pub owner: Option<Owner>,
    /// False if the hub cannot store a renewal: it has no CRD of MemberAgent or an older one, or it rejects the write.
    pub renewable: bool,
}

/// Cluster that owns an id, as of its last renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// UID of the owner's namespace `kube-system`.
    pub cluster: Uid,
    /// Time at which this agent first saw the renewal, on its own clock. For its own renewal, the time at which it was sent.
    pub seen: Timestamp,
    /// True if the owner announced a planned stop. Another cluster may take over soon, but not during a restart.
    pub stopped: bool,
}

/// Decides the ownership of the id for the cluster `own`. `record` is `None` until the hub's MemberAgents are listed.
pub fn ownership(own: &ClusterUid, record: Option<&Record>, now: Timestamp, takeover_after_micros: i64) -> Ownership {
    let Some(record) = record else { return Ownership::Unknown };
    let own = match own {
        ClusterUid::NotRead => return Ownership::Unknown,
        // fault O8.1 (identity::who_owns_an_id_is_read_from_the_newest_renewal): Own ~> Unknown
        ClusterUid::NotReadable => return Ownership::Own,
        ClusterUid::Known(own) => own,
    };
    match &record.owner {
        // If the hub cannot store an owner, waiting would not keep another cluster from writing.
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
