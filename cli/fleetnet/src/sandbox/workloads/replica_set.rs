//! Controller of ReplicaSets: creates and deletes pods. Does no I/O.

use super::action::Action;
use super::cluster::{Cluster, Kind, is_deleting, key, number, owner, text};
use super::pod::is_ready;
use super::status::{controller_reference, differs};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// Numbers of a ReplicaSet's pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Desired number of pods.
    pub(super) desired: i64,
    pub(super) present: i64,
    pub(super) ready: i64,
}

/// Returns the pods of a ReplicaSet that are not being deleted and have not ended.
fn pods<'a>(cluster: &'a Cluster, replica_set: &'a Value) -> impl Iterator<Item = &'a Value> {
    let uid = text(replica_set, "/metadata/uid");
    cluster.pods.values().filter(move |pod| {
        let has_ended = matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
        owner(pod, "ReplicaSet") == Some(uid) && !is_deleting(pod) && !has_ended
    })
}

pub(super) fn counts(cluster: &Cluster, replica_set: &Value) -> Counts {
    let mut counts = Counts { desired: number(replica_set, "/spec/replicas").unwrap_or(1), ..Counts::default() };
    for pod in pods(cluster, replica_set) {
        counts.present += 1;
        counts.ready += i64::from(is_ready(pod));
    }
    counts
}

pub(super) fn plan(cluster: &Cluster, replica_set: &Value) -> Vec<Action> {
    let counts = counts(cluster, replica_set);
    let missing = counts.desired - counts.present;
    let mut actions: Vec<Action> = (0..missing).map(|_| Action::Create(Kind::Pod, new_pod(replica_set))).collect();
    if missing < 0 {
        // Pods that are not ready go first, and then the newest ones.
        let mut present: Vec<&Value> = pods(cluster, replica_set).collect();
        present.sort_by_key(|pod| (is_ready(pod), Reverse(text(pod, "/metadata/creationTimestamp").to_owned())));
        let surplus = present.into_iter().take(usize::try_from(-missing).unwrap_or_default());
        actions.extend(surplus.map(|pod| Action::Delete(Kind::Pod, key(pod))));
    }
    let Counts { present, ready, .. } = counts;
    let status = json!({
        "observedGeneration": number(replica_set, "/metadata/generation"), "replicas": present,
        "fullyLabeledReplicas": present, "readyReplicas": ready, "availableReplicas": ready,
    });
    if differs(replica_set, &status) {
        actions.push(Action::Status(Kind::ReplicaSet, key(replica_set), status));
    }
    actions
}

fn new_pod(replica_set: &Value) -> Value {
    let template = &replica_set["spec"]["template"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", text(replica_set, "/metadata/name")),
            "namespace": text(replica_set, "/metadata/namespace"),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [controller_reference(replica_set, "ReplicaSet")],
        },
        "spec": template["spec"],
    })
}
