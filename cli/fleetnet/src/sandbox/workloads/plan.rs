//! Actions that the observed objects require. Does no I/O.

use super::action::Action;
use super::cluster::{Cluster, Key, Kind, is_deleting, owner, text};
use super::place::Place;
use super::{deployment, pod, replica_set};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the next actions. The cluster remembers only the last address of a pod.
pub(super) fn plan(cluster: &mut Cluster, place: &Place, now: Timestamp) -> Vec<Action> {
    let mut actions = orphans(cluster);
    for deployment in cluster.deployments.values().filter(|it| !is_deleting(it)) {
        actions.extend(deployment::plan(cluster, deployment, now));
    }
    for replica_set in cluster.replica_sets.values().filter(|it| !is_deleting(it)) {
        actions.extend(replica_set::plan(cluster, replica_set));
    }
    actions.extend(pod::plan(cluster, place, now));
    actions
}

/// Deletes the ReplicaSets and pods whose owner does not exist, as a garbage collector does.
fn orphans(cluster: &Cluster) -> Vec<Action> {
    let uids = |objects: &std::collections::BTreeMap<Key, Value>| -> BTreeSet<String> {
        objects.values().map(|object| text(object, "/metadata/uid").to_owned()).collect()
    };
    let (deployments, replica_sets) = (uids(&cluster.deployments), uids(&cluster.replica_sets));
    let is_orphan = |object: &Value, kind: &str, owners: &BTreeSet<String>| {
        !is_deleting(object) && owner(object, kind).is_some_and(|uid| !owners.contains(uid))
    };
    let sets = cluster.replica_sets.iter().filter(|(_, it)| is_orphan(it, "Deployment", &deployments));
    let pods = cluster.pods.iter().filter(|(_, it)| is_orphan(it, "ReplicaSet", &replica_sets));
    let sets = sets.map(|(key, _)| Action::Delete(Kind::ReplicaSet, key.clone()));
    sets.chain(pods.map(|(key, _)| Action::Delete(Kind::Pod, key.clone()))).collect()
}
