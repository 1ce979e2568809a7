//! Ownership of a cluster id: of two clusters with one id, one acts in the hub and the other waits.
//!
//! The MemberAgent names the cluster that owns the id by the UID of its namespace `kube-system`. Three rules keep two clusters
//! from acting at one time:
//!
//! - A cluster acts in the hub only while the MemberAgent that it sees carries its own UID.
//! - Each change of that UID is a write with the resourceVersion as the precondition. Of two clusters that write at once, one
//!   wins, and the other sees it.
//! - The owner stops after half of `takeover_after` without a renewal, and another cluster may take over only after the whole.
//!   Both count on their own clocks, the owner from when it sent the renewal and the other from when it first saw it, so wrong
//!   clocks do not matter.

use crate::ids::{Text, Timestamp};
use crate::limits::RESTART_MICROS;

/// Whether this cluster may act in the hub under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It owns the id, or the check is off.
    Own,
    /// It owns the id and has not renewed for too long: it renews before it acts.
    Overdue,
    /// No cluster owns the id: it writes its UID, and acts once it sees that.
    Vacant,
    /// Another cluster owns the id.
    Foreign {
        /// UID of the namespace `kube-system` there.
        cluster: Text,
        /// When the id becomes vacant if that cluster does not renew.
        until: Timestamp,
    },
    /// Not known yet.
    Unknown,
}

/// What is known of this cluster's own UID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterUid {
    /// The namespace `kube-system` has not been read yet.
    NotRead,
    /// This agent has no right to read it: the check is off.
    NotReadable,
    /// The UID.
    Known(Text),
}

/// What the newest MemberAgent says of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The owner; `None` where there is no MemberAgent, or one without a UID.
    pub owner: Option<Owner>,
    /// False where no renewal can be recorded: the hub has no definition of MemberAgent or an older one, or rejects the write.
    pub renewable: bool,
}

/// The owner of an id, as of its last renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// UID of its namespace `kube-system`.
    pub cluster: Text,
    /// When this agent first saw the renewal, on its own clock; if it was its own, when it sent that.
    pub seen: Timestamp,
    /// It has announced that it stopped: another cluster may take over soon, but not while it is only restarted.
    pub stopped: bool,
}

/// Whether the cluster `own` may act. `record` is `None` until the hub's MemberAgents are listed.
pub fn ownership(own: &ClusterUid, record: Option<&Record>, now: Timestamp, takeover_after_micros: i64) -> Ownership {
    let Some(record) = record else { return Ownership::Unknown };
    let own = match own {
        ClusterUid::NotRead => return Ownership::Unknown,
        // fault O8.1 (identity::who_owns_an_id_is_read_from_the_newest_renewal): Own ~> Unknown
        ClusterUid::NotReadable => return Ownership::Own,
        ClusterUid::Known(own) => own,
    };
    match &record.owner {
        // Where nobody can record an owner, no other cluster is protected by this one's silence.
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
