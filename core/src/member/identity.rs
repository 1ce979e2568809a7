//! Ownership of a cluster id: if two clusters have the same id, only the owner of the id writes to the hub, and the
//! other cluster waits.
//!
//! The UID of a cluster is the UID of its namespace `kube-system`. The MemberAgent records the UID of the owner. Three
//! rules ensure that two clusters never write at the same time:
//!
//! - A cluster writes to the hub only while the MemberAgent in its view has the UID of this cluster.
//! - Each change of this UID is a write with the resourceVersion as the precondition. If two clusters write at once,
//!   only one write succeeds, and the other cluster sees the new owner.
//! - The owner stops writing after half of `takeover_after` without a renewal. Another cluster may take over only after
//!   the whole of `takeover_after`. The owner counts from the time at which it sent its last renewal, the other cluster
//!   from the time at which it first saw this renewal. Each cluster measures a duration on its own clock, so a
//!   difference between the clocks has no effect.

use crate::limits::RESTART_MICROS;
use fleetnet_types::{Timestamp, Uid};

/// Ownership of this cluster's id, which decides whether the cluster may write to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This cluster may write to the hub: it owns the id, or its agent cannot check who owns the id.
    Own,
    /// This cluster owns the id, but its last renewal is too old. This cluster must renew its MemberAgent before it
    /// makes other writes.
    Overdue,
    /// No cluster owns the id. This cluster writes its UID to the MemberAgent, and makes other writes only after it
    /// sees this UID in the hub.
    Vacant,
    Foreign {
        /// UID of the namespace `kube-system` of the cluster that owns the id.
        cluster: Uid,
        /// Time at which the id becomes vacant if its owner does not renew the MemberAgent.
        until: Timestamp,
    },
    Unknown,
}

/// UID of this cluster: the UID of its namespace `kube-system`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterUid {
    /// The namespace `kube-system` is not read yet.
    NotRead,
    /// This agent has no right to read the namespace `kube-system`, so it cannot check who owns the id.
    NotReadable,
    Known(Uid),
}

/// Owner of the id according to the newest MemberAgent in the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Owner of the id; `None` if there is no MemberAgent, or if the MemberAgent has no UID.
    pub owner: Option<Owner>,
    /// False if the hub cannot store a renewal: its CRD of MemberAgent is missing or too old, or the hub rejects the
    /// write.
    pub renewable: bool,
}

/// Cluster that owns an id, as of its last renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// UID of the owner's namespace `kube-system`.
    pub cluster: Uid,
    /// Time of the owner's last renewal, on the clock of this agent. For a renewal by this agent, the time at which the
    /// write was sent. For a renewal by another cluster, the time at which this agent first saw it.
    pub seen: Timestamp,
    /// True if the owner announced a planned stop. Then another cluster may take over the id after a shorter time,
    /// which is still longer than a restart.
    pub stopped: bool,
}

/// Returns the ownership of the id, as the cluster `own` sees it. `record` is `None` until the hub's MemberAgents are
/// listed.
pub fn ownership(own: &ClusterUid, record: Option<&Record>, now: Timestamp, takeover_after_micros: i64) -> Ownership {
    let Some(record) = record else { return Ownership::Unknown };
    let own = match own {
        ClusterUid::NotRead => return Ownership::Unknown,
        ClusterUid::NotReadable => return Ownership::Own,
        ClusterUid::Known(own) => own,
    };
    let Some(owner) = &record.owner else {
        // If the hub cannot store an owner, this cluster cannot check who owns the id, and writes without the check.
        return if record.renewable { Ownership::Vacant } else { Ownership::Own };
    };
    if owner.cluster == *own {
        let is_fresh = now < owner.seen.plus_micros(takeover_after_micros / 2);
        return if is_fresh || !record.renewable { Ownership::Own } else { Ownership::Overdue };
    }
    let silence = if owner.stopped { RESTART_MICROS.min(takeover_after_micros) } else { takeover_after_micros };
    let until = owner.seen.plus_micros(silence);
    if now >= until { Ownership::Vacant } else { Ownership::Foreign { cluster: owner.cluster.clone(), until } }
}
