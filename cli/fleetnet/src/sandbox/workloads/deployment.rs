//! Controller of Deployments: a ReplicaSet for each template, and the replacement of pods step by step. Does no I/O.

use super::action::Action;
use super::cluster::{Cluster, Kind, is_deleting, key, number, owner, text};
use super::replica_set::{Counts, counts};
use super::status::{conditions, controller_reference, differs};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Label of a ReplicaSet and of its pods: the hash of the template.
const HASH: &str = "pod-template-hash";
/// Annotation with the number of the rollout, which `kubectl rollout undo` reads.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Characters of hashes. They make no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// ReplicaSet of a Deployment.
struct Set<'a> {
    object: &'a Value,
    counts: Counts,
    revision: i64,
}

pub(super) fn plan(cluster: &Cluster, deployment: &Value, now: Timestamp) -> Vec<Action> {
    let sets = sets(cluster, deployment);
    let hash = hash(&deployment["spec"]["template"]);
    let is_new = |set: &Set<'_>| set.object["metadata"]["labels"][HASH] == *hash;
    let newest = sets.iter().map(|set| set.revision).max().unwrap_or(0);
    let Some(new) = sets.iter().find(|set| is_new(set)) else {
        let is_paused = deployment["spec"]["paused"] == true;
        let first = Action::Create(Kind::ReplicaSet, new_set(deployment, &hash, newest + 1));
        return if is_paused && !sets.is_empty() { Vec::new() } else { vec![first] };
    };
    let old: Vec<&Set<'_>> = sets.iter().filter(|set| !is_new(set)).collect();
    let mut actions = Vec::new();
    let revision = if new.revision < newest { newest + 1 } else { new.revision };
    if revision != new.revision {
        actions.push(annotate(Kind::ReplicaSet, new.object, revision));
    }
    if deployment["metadata"]["annotations"][REVISION] != *revision.to_string() {
        actions.push(annotate(Kind::Deployment, deployment, revision));
    }
    let all: Vec<Counts> = std::iter::once(new).chain(old.iter().copied()).map(|set| set.counts).collect();
    let wanted = replicas(&all, &Rollout::of(deployment));
    let changed = std::iter::once(new).chain(old.iter().copied()).zip(wanted);
    let changed = changed.filter(|(set, replicas)| set.counts.desired != *replicas);
    actions.extend(changed.map(|(set, replicas)| {
        Action::Patch(Kind::ReplicaSet, key(set.object), json!({"spec": {"replicas": replicas}}))
    }));
    actions.extend(outdated(&old, deployment));
    actions.extend(status(deployment, &all, now));
    actions
}

/// Returns the ReplicaSets of a Deployment, the newest ones first.
fn sets<'a>(cluster: &'a Cluster, deployment: &Value) -> Vec<Set<'a>> {
    let uid = text(deployment, "/metadata/uid");
    let own = cluster.replica_sets.values().filter(|it| owner(it, "Deployment") == Some(uid) && !is_deleting(it));
    let mut sets: Vec<Set<'_>> = own
        .map(|object| {
            let revision = object["metadata"]["annotations"][REVISION].as_str();
            let revision = revision.and_then(|revision| revision.parse().ok()).unwrap_or(0);
            Set { object, counts: counts(cluster, object), revision }
        })
        .collect();
    sets.sort_by_key(|set| -set.revision);
    sets
}

/// Rules of a rollout.
#[derive(Clone, Copy, Debug)]
struct Rollout {
    desired: i64,
    /// Maximum number of pods above `desired`.
    surge: i64,
    /// Maximum number of pods that are not ready. `None` if all old pods must go first.
    unavailable: Option<i64>,
}

impl Rollout {
    fn of(deployment: &Value) -> Self {
        let desired = number(deployment, "/spec/replicas").unwrap_or(1);
        if text(deployment, "/spec/strategy/type") == "Recreate" {
            return Self { desired, surge: 0, unavailable: None };
        }
        let rolling = |name: &str| &deployment["spec"]["strategy"]["rollingUpdate"][name];
        let surge = part(rolling("maxSurge"), desired, true);
        let unavailable = part(rolling("maxUnavailable"), desired, false);
        Self { desired, surge, unavailable: Some(if surge == 0 { unavailable.max(1) } else { unavailable }) }
    }
}

/// Returns a number, or a percentage of `whole`.
fn part(given: &Value, whole: i64, rounds_up: bool) -> i64 {
    let percent = match given {
        Value::Number(number) => return number.as_i64().unwrap_or(0),
        Value::String(text) => text.trim_end_matches('%').parse::<i64>().unwrap_or(25),
        _ => 25,
    };
    whole.saturating_mul(percent).saturating_add(if rounds_up { 99 } else { 0 }) / 100
}

/// Returns the next number of replicas of each ReplicaSet. The first one has the present template.
fn replicas(sets: &[Counts], rollout: &Rollout) -> Vec<i64> {
    let Some((new, old)) = sets.split_first() else { return Vec::new() };
    let total: i64 = sets.iter().map(|set| set.desired).sum();
    let Some(unavailable) = rollout.unavailable else {
        let are_gone = old.iter().all(|set| set.present == 0);
        let first = if are_gone { rollout.desired } else { new.desired };
        return std::iter::once(first).chain(old.iter().map(|_| 0)).collect();
    };
    let room = (rollout.desired + rollout.surge - total).max(0);
    let first = if new.desired > rollout.desired { rollout.desired } else { (new.desired + room).min(rollout.desired) };
    // Pods of the new ReplicaSet that are not ready count as missing, so old pods stay until the new ones are ready.
    let unready = (new.desired - new.ready).max(0);
    let mut surplus = (total - (rollout.desired - unavailable) - unready).max(0);
    let mut next: Vec<i64> = std::iter::once(first).chain(old.iter().map(|set| set.desired)).collect();
    // Pods that are not ready serve nobody, so they go first.
    for (set, next) in old.iter().zip(&mut next[1..]) {
        let fewer = (set.desired - set.ready).clamp(0, surplus);
        (*next, surplus) = (*next - fewer, surplus - fewer);
    }
    for next in next[1..].iter_mut().rev() {
        let fewer = (*next).min(surplus);
        (*next, surplus) = (*next - fewer, surplus - fewer);
    }
    next
}

/// Deletes the oldest ReplicaSets without pods beyond the history limit.
fn outdated(old: &[&Set<'_>], deployment: &Value) -> Vec<Action> {
    let limit = number(deployment, "/spec/revisionHistoryLimit").and_then(|limit| usize::try_from(limit).ok());
    let empty = old.iter().filter(|set| set.counts.desired == 0 && set.counts.present == 0);
    empty.skip(limit.unwrap_or(10)).map(|set| Action::Delete(Kind::ReplicaSet, key(set.object))).collect()
}

fn status(deployment: &Value, sets: &[Counts], now: Timestamp) -> Option<Action> {
    let rollout = Rollout::of(deployment);
    let total = |count: fn(&Counts) -> i64| sets.iter().map(count).sum::<i64>();
    let (present, ready) = (total(|it| it.present), total(|it| it.ready));
    let updated = sets.first().copied().unwrap_or_default();
    let is_available = ready >= rollout.desired - rollout.unavailable.unwrap_or(0);
    let is_complete = updated.ready == rollout.desired && present == rollout.desired;
    let progress = if is_complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    let reason = if is_available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    let wanted = [("Available", is_available, reason), ("Progressing", true, progress)];
    let status = json!({
        "observedGeneration": number(deployment, "/metadata/generation"),
        "replicas": present, "updatedReplicas": updated.present, "readyReplicas": ready, "availableReplicas": ready,
        "unavailableReplicas": (rollout.desired - ready).max(0), "conditions": conditions(deployment, &wanted, now),
    });
    differs(deployment, &status).then(|| Action::Status(Kind::Deployment, key(deployment), status))
}

fn annotate(kind: Kind, object: &Value, revision: i64) -> Action {
    Action::Patch(kind, key(object), json!({"metadata": {"annotations": {REVISION: revision.to_string()}}}))
}

fn new_set(deployment: &Value, hash: &str, revision: i64) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = json!(hash);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = json!(hash);
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", text(deployment, "/metadata/name")),
            "namespace": text(deployment, "/metadata/namespace"),
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [controller_reference(deployment, "Deployment")],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    })
}

/// Returns the hash of a template.
fn hash(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.to_string().hash(&mut hasher);
    let (mut rest, mut letters) = (hasher.finish(), String::new());
    for _ in 0..9 {
        let count = LETTERS.len() as u64;
        letters.push(char::from(LETTERS[usize::try_from(rest % count).unwrap_or_default()]));
        rest /= count;
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(desired: i64, ready: i64) -> Counts {
        Counts { desired, present: desired, ready }
    }

    #[test]
    fn a_rollout_replaces_pods_step_by_step() {
        let rolling = Rollout { desired: 4, surge: 1, unavailable: Some(1) };
        let table = [
            ("the first rollout is at once", vec![counts(0, 0)], vec![4]),
            ("more pods", vec![counts(2, 2)], vec![4]),
            ("fewer pods", vec![counts(6, 6)], vec![4]),
            ("begin: one more, one fewer", vec![counts(0, 0), counts(4, 4)], vec![1, 3]),
            ("new ones are not ready", vec![counts(1, 0), counts(4, 4)], vec![1, 4 - 1]),
            ("no room until they are", vec![counts(2, 0), counts(3, 3)], vec![2, 3]),
            ("then the next ones", vec![counts(2, 2), counts(3, 3)], vec![2, 1]),
            ("the end", vec![counts(4, 4), counts(1, 1)], vec![4, 0]),
            ("old ones that are not ready go first", vec![counts(1, 0), counts(2, 0), counts(2, 2)], vec![1, 1, 2]),
        ];
        for (what, sets, expected) in table {
            assert_eq!(replicas(&sets, &rolling), expected, "{what}");
        }
        let recreate = Rollout { desired: 4, surge: 0, unavailable: None };
        assert_eq!(replicas(&[counts(0, 0), counts(4, 4)], &recreate), [0, 0]);
        let gone = Counts { desired: 0, present: 0, ready: 0 };
        assert_eq!(replicas(&[counts(0, 0), gone], &recreate), [4, 0]);
    }

    #[test]
    fn percentages_of_surge_are_rounded_up_and_those_of_unavailable_pods_down() {
        let of = |rolling: Value| {
            let spec = json!({"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
            let rollout = Rollout::of(&json!({ "spec": spec }));
            (rollout.surge, rollout.unavailable)
        };
        assert_eq!(of(json!({"maxSurge": "25%", "maxUnavailable": "25%"})), (1, Some(0)));
        assert_eq!(of(json!({"maxSurge": 0, "maxUnavailable": 0})), (0, Some(1)));
        assert_eq!(of(json!({"maxSurge": 2, "maxUnavailable": "100%"})), (2, Some(3)));
        let most = format!("{}%", i64::MAX);
        assert!(of(json!({"maxSurge": most, "maxUnavailable": 0})).0 > 3);
    }
}
