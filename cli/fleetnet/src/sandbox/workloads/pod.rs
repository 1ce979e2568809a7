//! Scheduler and kubelet: gives each pod a Node, an address and conditions. Does no I/O.

use super::action::Action;
use super::cluster::{Cluster, Kind, is_deleting, items, key, text};
use super::place::{Place, READY, host};
use super::status::{conditions, differs, seconds};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Last parts of the addresses of pods.
const NUMBERS: u8 = 254;

/// True if the condition Ready of a pod is true.
pub(super) fn is_ready(pod: &Value) -> bool {
    has(pod, "Ready")
}

fn has(pod: &Value, condition: &str) -> bool {
    items(pod, "/status/conditions").any(|it| it["type"] == condition && it["status"] == "True")
}

pub(super) fn plan(cluster: &mut Cluster, place: &Place, now: Timestamp) -> Vec<Action> {
    let mut taken: BTreeSet<String> = cluster.pods.values().map(|pod| text(pod, "/status/podIP").to_owned()).collect();
    let mut actions = Vec::new();
    for pod in cluster.pods.values() {
        let uid = text(pod, "/metadata/uid").to_owned();
        if is_deleting(pod) {
            actions.push(Action::End { pod: key(pod), uid });
        } else if text(pod, "/spec/nodeName").is_empty() {
            actions.push(Action::Bind { pod: key(pod), uid, node: place.node.clone() });
        } else if let Some(status) = status(pod, place, &mut taken, &mut cluster.last_address, now) {
            actions.push(Action::Status(Kind::Pod, key(pod), status));
        }
    }
    actions
}

/// Returns the status of a pod that has a Node, if the pod does not have it yet. `None` also if no address is free.
fn status(pod: &Value, place: &Place, taken: &mut BTreeSet<String>, last: &mut u8, now: Timestamp) -> Option<Value> {
    let address = match text(pod, "/status/podIP") {
        "" => free(place, taken, last)?,
        address => address.to_owned(),
    };
    let runs = pod.pointer("/metadata/annotations").is_none_or(|annotations| annotations[READY] != "false");
    let mut gates = items(pod, "/spec/readinessGates").filter_map(|gate| gate["conditionType"].as_str());
    let is_open = gates.all(|gate| has(pod, gate));
    let ready = match (runs, is_open) {
        (true, true) => ("Ready", true, ""),
        (true, false) => ("Ready", false, "ReadinessGatesNotReady"),
        (false, _) => ("Ready", false, "ContainersNotReady"),
    };
    let wanted = [("PodScheduled", true, ""), ("Initialized", true, ""), ("ContainersReady", runs, ""), ready];
    let started = match text(pod, "/status/startTime") {
        "" => seconds(now),
        started => started.to_owned(),
    };
    let status = json!({
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": host(place.number),
        "startTime": started,
        "conditions": conditions(pod, &wanted, now),
        "containerStatuses": containers(pod, &started, runs),
    });
    differs(pod, &status).then_some(status)
}

fn containers(pod: &Value, started: &str, ready: bool) -> Vec<Value> {
    let status = |container: &Value| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "", "ready": ready, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": started}},
        })
    };
    items(pod, "/spec/containers").map(status).collect()
}

/// Takes the next address that no pod has. An address is used again as late as possible.
fn free(place: &Place, taken: &mut BTreeSet<String>, last: &mut u8) -> Option<String> {
    let from = *last;
    let mut candidates = (0..NUMBERS).map(|step| {
        let number = (u16::from(from) + u16::from(step)) % u16::from(NUMBERS) + 1;
        (number, format!("10.244.{}.{number}", place.number))
    });
    let (number, address) = candidates.find(|(_, address)| !taken.contains(address))?;
    *last = u8::try_from(number).ok()?;
    taken.insert(address.clone());
    Some(address)
}
