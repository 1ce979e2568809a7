//! Test cases of kube-controller-manager for trigger times, and cases that fail in kube-controller-manager.

use super::*;
use crate::backend::{SkipReason, Skipped};
use crate::model::{Endpoint, Metadata, PodStatus, Readiness, ServicePort, TargetRef};
use crate::plan::{Draft, FamilyPlan, Update};

/// Returns a time this many seconds after an arbitrary start.
fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp::from_second(1_546_300_800 + seconds).unwrap())
}

fn service(created: i64) -> Service {
    service_with_uid("uid-1", created)
}

fn service_with_uid(uid: &str, created: i64) -> Service {
    let metadata = Metadata {
        namespace: "ns".into(),
        name: "svc".into(),
        uid: uid.into(),
        creation_timestamp: at(created),
        ..Metadata::default()
    };
    Service { metadata, ..Service::default() }
}

fn pod(name: &str, ready_since: i64) -> Pod {
    let metadata = Metadata { namespace: "ns".into(), name: name.into(), ..Metadata::default() };
    let readiness = Readiness { is_ready: true, since: at(ready_since) };
    Pod { metadata, status: PodStatus { readiness, ..PodStatus::default() }, ..Pod::default() }
}

/// Step of a test: a successful sync with its input and the expected time, or the deletion of the Service.
enum Step {
    Sync { created: i64, pods: &'static [(&'static str, i64)], expected: Option<i64> },
    Delete,
}

/// Cases of kube-controller-manager's trigger time tracker.
#[test]
fn the_eight_cases_of_upstream() {
    use Step::{Delete, Sync};
    let first = Sync { created: 0, pods: &[("1", 1), ("2", 2), ("3", 3)], expected: Some(0) };
    let cases: [(&str, Vec<Step>); 8] = [
        ("new Service, no pods", vec![Sync { created: 2, pods: &[], expected: Some(2) }]),
        (
            "new Service, pods older and younger than it",
            vec![Sync { created: 3, pods: &[("1", 0), ("2", 1), ("3", 5)], expected: Some(3) }],
        ),
        (
            "pods added",
            vec![
                Sync { created: 0, pods: &[], expected: Some(0) },
                Sync { created: 0, pods: &[("1", 2), ("2", 1)], expected: Some(1) },
            ],
        ),
        ("pods updated", vec![first, Sync { created: 0, pods: &[("1", 5), ("2", 4), ("3", 3)], expected: Some(4) }]),
        (
            "nothing changed",
            vec![
                Sync { created: 0, pods: &[("1", 1), ("2", 2), ("3", 3)], expected: Some(0) },
                Sync { created: 0, pods: &[("1", 1), ("2", 2), ("3", 3)], expected: None },
            ],
        ),
        (
            "pod deleted, then added again",
            vec![
                Sync { created: 0, pods: &[("1", 1), ("2", 2)], expected: Some(0) },
                Sync { created: 0, pods: &[("1", 1)], expected: None },
                Sync { created: 0, pods: &[("1", 1), ("2", 4)], expected: Some(4) },
            ],
        ),
        (
            "Service deleted, then added again",
            vec![
                Sync { created: 0, pods: &[("1", 1), ("2", 2)], expected: Some(0) },
                Delete,
                Sync { created: 3, pods: &[("1", 1), ("2", 2)], expected: Some(3) },
            ],
        ),
        (
            "only the Service changed",
            vec![
                Sync { created: 0, pods: &[("1", 1), ("2", 2)], expected: Some(0) },
                Sync { created: 0, pods: &[("1", 1), ("2", 2)], expected: None },
            ],
        ),
    ];
    for (name, steps) in cases {
        let mut times = TriggerTimes::default();
        for step in steps {
            match step {
                Delete => times.forget("ns", "svc"),
                Sync { created, pods, expected } => {
                    let mut service = service(created);
                    // Some steps also change the Service's ports, which must have no influence on the time.
                    let port = if expected.is_some() { 80 } else { 81 };
                    service.spec.ports = vec![ServicePort { port, ..ServicePort::default() }];
                    let pods: Vec<_> = pods.iter().map(|&(name, since)| pod(name, since)).collect();
                    assert_eq!(times.observe(&service, &pods), expected.and_then(at), "{name}");
                    times.published("ns", "svc");
                }
            }
        }
    }
}

/// Also rule Z14.
#[test]
fn the_time_of_a_failed_write_is_kept_until_one_succeeds() {
    let mut times = TriggerTimes::default();
    times.observe(&service(0), &[pod("1", 1)]);
    times.published("ns", "svc");

    assert_eq!(times.observe(&service(0), &[pod("1", 7)]), at(7));
    // The write failed, so the earlier change of pod 1 still counts, although pod 2 changed meanwhile.
    assert_eq!(times.observe(&service(0), &[pod("1", 7), pod("2", 9)]), at(7));
    // The write failed again, and pod 1 was deleted: the change of pod 1 needs no publication any more.
    assert_eq!(times.observe(&service(0), &[pod("2", 9)]), at(9));
    times.published("ns", "svc");
    assert_eq!(times.observe(&service(0), &[pod("2", 9)]), None);
}

#[test]
fn a_recreated_service_starts_without_state_even_if_its_deletion_was_missed() {
    let mut times = TriggerTimes::default();
    times.observe(&service(0), &[pod("1", 5)]);
    assert_eq!(times.observe(&service_with_uid("uid-2", 3), &[pod("1", 1)]), at(3));
}

#[test]
fn a_pod_whose_clock_went_back_has_no_time_until_it_changes_again() {
    let mut times = TriggerTimes::default();
    times.observe(&service(0), &[pod("1", 5)]);
    times.published("ns", "svc");
    assert_eq!(times.observe(&service(0), &[pod("1", 2)]), None);
    assert_eq!(times.observe(&service(0), &[pod("1", 3)]), at(3));
}

#[test]
fn one_pod_at_a_time_gives_what_all_pods_at_once_give() {
    let mut times = TriggerTimes::default();
    assert_eq!(times.observe_pod("ns", "svc", &pod("1", 1)), None, "a Service must be observed once");
    times.observe(&service(0), &[pod("1", 1), pod("2", 2)]);
    times.published("ns", "svc");

    assert_eq!(times.observe_pod("ns", "svc", &pod("1", 6)), at(6));
    assert_eq!(times.observe_pod("ns", "svc", &pod("3", 4)), at(4));
    times.published("ns", "svc");
    assert_eq!(times.observe_removal("ns", "svc", "2"), None);
    assert_eq!(times.observe(&service(0), &[pod("1", 6), pod("3", 4)]), None);
    assert_eq!(times.observe_pod("ns", "svc", &pod("2", 2)), at(2), "it was forgotten");
}

/// Returns a plan that updates a slice with the endpoints of these pods.
fn plan_of(pods: &[&str]) -> Plan {
    let mut plan = Plan::nothing(&service(0));
    let update = Update::of(&Arc::new(EndpointSlice::default()), slice_of(pods).endpoints);
    plan.families =
        vec![FamilyPlan { draft: Draft { updates: vec![update], ..Draft::default() }, ..FamilyPlan::default() }];
    plan
}

fn slice_of(pods: &[&str]) -> EndpointSlice {
    let target = |pod: &&str| Some(Arc::new(TargetRef { name: (*pod).into(), ..TargetRef::default() }));
    let endpoints = pods.iter().map(|pod| Endpoint { target_ref: target(pod), ..Endpoint::default() }).collect();
    EndpointSlice { endpoints, ..EndpointSlice::default() }
}

/// Returns the trigger times of a Service. Its slices were published, and later pods 1 and 2 changed.
fn changed() -> TriggerTimes {
    let mut times = TriggerTimes::default();
    times.observe(&service(0), &[pod("1", 1), pod("2", 2)]);
    times.published("ns", "svc");
    times.observe_pod("ns", "svc", &pod("1", 5));
    times.observe_pod("ns", "svc", &pod("2", 6));
    times
}

/// Also rule Z14.
#[test]
fn a_plan_has_the_time_of_the_oldest_change_that_it_publishes() {
    let mut times = changed();
    assert_eq!(times.clone().planned(&plan_of(&["1", "2"])), at(5));
    assert_eq!(times.planned(&plan_of(&["2", "3"])), at(6));
    assert_eq!(times.planned(&plan_of(&["1"])), None, "what was in no write was published, or needed none");
}

/// Rule Z14: A write of a slice publishes changes of pods
/// Then: The slice gets the time of the oldest change that this write publishes for the first time (annotation
/// `endpoints.kubernetes.io/last-change-trigger-time`). If the write fails, its retry has the same time
#[test]
fn what_is_on_its_way_is_published_by_the_write_that_left_unless_that_was_not_carried_out() {
    let mut times = changed();
    times.planned(&plan_of(&["1", "2"]));
    let sent = times.send("ns", "svc", ["1".into()].into());
    assert_eq!(times.clone().planned(&plan_of(&["1", "2"])), at(6));
    times.observe_pod("ns", "svc", &pod("1", 9));
    assert_eq!(times.planned(&plan_of(&[])), None, "as things were before that write, nothing is to be done");
    let mut failed = times.clone();
    times.ended("ns", "svc", sent.clone(), true);
    assert_eq!(times.planned(&plan_of(&["1"])), at(9), "the change since then");
    failed.ended("ns", "svc", sent, false);
    assert_eq!(failed.planned(&plan_of(&["1"])), at(5));
}

#[test]
fn a_pod_that_waits_for_its_node_keeps_its_time_and_gives_it_to_no_other_write() {
    let mut times = changed();
    let mut plan = plan_of(&["2"]);
    plan.skipped = vec![Skipped { pod: "1".into(), reason: SkipReason::NodeMissing("node-1".into()) }];
    assert_eq!(times.planned(&plan), at(6));
    assert_eq!(times.planned(&plan_of(&["1"])), at(5));
}

#[test]
fn the_creation_of_a_service_is_published_by_every_slice_of_the_pods_that_it_began_with() {
    let mut times = TriggerTimes::default();
    times.observe(&service(3), &[pod("1", 7), pod("2", 8)]);
    assert_eq!(times.planned(&plan_of(&["1", "2"])), at(3));
    let first = times.send("ns", "svc", ["1".into()].into());
    assert_eq!(times.planned(&plan_of(&["2"])), at(3), "the other slice is yet to be written");
    times.ended("ns", "svc", first, false);
    assert_eq!(times.planned(&plan_of(&["1"])), at(3));
    let mut times = TriggerTimes::default();
    times.observe(&service(3), []);
    assert_eq!(times.planned(&plan_of(&[])), at(3), "a placeholder");
    assert_eq!(times.planned(&Plan::nothing(&service(3))), None);
    assert_eq!(times.planned(&plan_of(&[])), None, "there was nothing to write");
}

#[test]
fn nothing_is_left_of_a_service_that_is_forgotten() {
    let mut times = TriggerTimes::default();
    times.observe(&service(0), &[pod("1", 5)]);
    times.forget("ns", "svc");
    assert!(times.is_empty());
}

#[test]
fn a_pod_without_a_transition_time_sets_no_trigger_time() {
    let mut times = TriggerTimes::default();
    times.observe(&service(0), []);
    times.published("ns", "svc");
    let mut unknown = pod("1", 0);
    unknown.status.readiness.since = None;
    assert_eq!(times.observe(&service(0), &[unknown]), None);
}

/// Also rule Z14.
#[test]
fn a_pod_that_is_ready_since_before_its_service_has_the_earlier_time() {
    let mut times = TriggerTimes::default();
    let mut waiting = pod("1", 0);
    waiting.status.readiness.since = None;
    assert_eq!(times.observe(&service(5), [&waiting]), at(5));
    // The clock of the pod's Node is 2 s behind the clock of the API server. So the pod seems to be ready before its
    // Service was created, and the time of the pod counts.
    assert_eq!(times.observe(&service(5), [&pod("1", 3)]), at(3));
}
