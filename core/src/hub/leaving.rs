//! Finalizers of the member agent in the member namespace of a member that leaves the fleet.

use crate::hub::view::reader::{ForceDelete, Reader};
use crate::model::{Kind, Meta};
use crate::names;
use crate::plan::{Plan, Write};
use fleetnet_types::{MemberNamespace, ObjectName, Timestamp};

/// Removes the member agent's finalizer from an object that is being deleted together with its member namespace. The
/// ServiceAccount and the Role of the member agent are deleted with this namespace, in any order. Without them, the
/// member agent can no longer remove its finalizers, and the deletion of the namespace would never end.
///
/// If a manager of the fleet deletes the member (MemberCluster), the member agent may have its rights from elsewhere.
/// Then it has some time to remove what it imported.
pub(super) fn release(view: Reader<'_>, kind: Kind, object: &Meta, now: Timestamp) -> Plan {
    if !object.deleting || !object.finalizers.ours {
        return Plan::default();
    }
    let namespace = &object.name.member_namespace();
    if !leaves(view, namespace) {
        return Plan::default();
    }
    match released_at(view, namespace, now) {
        Some(at) if now < at => Plan { again: Some(at), ..Plan::default() },
        Some(_) => Plan::one(Write::remove_finalizer(kind, object)),
        None => Plan::default(), // the MemberClusters are not listed yet
    }
}

fn leaves(view: Reader<'_>, namespace: &MemberNamespace) -> bool {
    let namespace = ObjectName::new("", namespace);
    view.complete(&[Kind::Namespace]) && view.namespaces().get(&namespace).is_some_and(|it| it.meta.deleting)
}

/// Returns the end of the time in which a member agent may remove its finalizers; `None` if this is not known yet.
fn released_at(view: Reader<'_>, namespace: &MemberNamespace, now: Timestamp) -> Option<Timestamp> {
    let micros = match view.force_delete() {
        ForceDelete::Off => return Some(now),
        ForceDelete::Unknown => return None,
        ForceDelete::After(micros) => micros,
    };
    let member = names::cluster_of(namespace)?;
    let deleted = view.member_clusters().get(&ObjectName::new("", member)).and_then(|member| member.deleted);
    Some(deleted.map_or(now, |deleted| deleted.plus_micros(micros)))
}
