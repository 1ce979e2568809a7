//! Tests of the choice of Services to plan again after an event.

use crate::builders::{BuildPod as _, pod, service, slice, time};
use endpointslice::Text;
use endpointslice::changes::{NoServiceName, PodChange};
use endpointslice::model::{Phase, Pod};
use endpointslice::plan::ServiceName;
use std::collections::BTreeSet;

#[test]
fn a_pod_is_another_for_what_its_endpoint_and_its_services_depend_on() {
    let check = |change: fn(Pod) -> Pod, endpoint: bool, labels: bool| {
        let old = pod(1).with_ips(&["1.2.3.4", "fd00::4"]);
        let new = change(old.clone());
        assert_eq!(PodChange::between(&old, &new), PodChange { endpoint, labels }, "{new:?}");
        assert_eq!(PodChange::between(&new, &old), PodChange { endpoint, labels }, "{new:?}");
    };
    check(|pod| pod, false, false);
    check(|pod| pod.on_node("node-2"), false, false);
    check(
        |mut pod| {
            pod.metadata.resource_version = "2".into();
            pod
        },
        false,
        false,
    );
    check(|pod| pod.with_ips(&["1.2.3.5", "fd00::4"]), true, false);
    check(|pod| pod.with_ips(&["fd00::4"]), true, false);
    check(|pod| pod.with_ips(&["fd00::4", "1.2.3.4"]), true, false);
    check(|pod| pod.with_ips(&["1.2.3.4", "fd00::5"]), true, false);
    check(|pod| pod.with_ips(&["1.2.3.4"]), true, false);
    check(|pod| pod.not_ready(), true, false);
    check(|pod| pod.terminating(), true, false);
    check(|pod| pod.in_phase(Phase::Failed), true, false);
    check(|pod| pod.in_phase(Phase::Pending), false, false);
    check(
        |mut pod| {
            pod.metadata.labels.insert("new", "label");
            pod
        },
        false,
        true,
    );
    check(
        |mut pod| {
            pod.metadata.labels.insert("foo", "other");
            pod
        },
        false,
        true,
    );
    check(|pod| pod.with_hostname("first", ""), false, true);
    check(|pod| pod.with_hostname("", "web"), false, true);
}

#[test]
fn the_time_of_a_deletion_may_change() {
    let (old, mut new) = (pod(1).terminating(), pod(1).terminating());
    assert_eq!(PodChange::between(&old, &new), PodChange::default());
    new.metadata.deletion_timestamp = time("2026-02-01T00:00:01Z");
    assert!(PodChange::between(&old, &new).endpoint);
}

#[test]
fn services_are_planned_again_if_the_pod_is_other_for_them() {
    let set = |names: &str| -> BTreeSet<Text> { names.chars().map(|name| name.to_string().into()).collect() };
    let check = |old: &str, new: &str, all: &str, only_moved: &str| {
        let services = |endpoint, labels| PodChange { endpoint, labels }.services(set(old), set(new));
        assert_eq!(services(true, true), set(all));
        assert_eq!(services(true, false), set(all));
        assert_eq!(services(false, true), set(only_moved));
        assert!(services(false, false).is_empty());
    };
    check("abc", "abc", "abc", "");
    check("abc", "", "abc", "abc");
    check("", "abc", "abc", "abc");
    check("abc", "cd", "abcd", "abd");
    check("abc", "def", "abcdef", "abcdef");
    check("ab", "abcd", "abcd", "cd");
}

#[test]
fn a_slice_belongs_to_the_service_of_its_label() {
    let mut slice_of_web = slice(1, &service("web"));
    let expected = ServiceName { namespace: "testing".into(), name: "web".into() };
    assert_eq!(ServiceName::of_slice(&slice_of_web), Ok(expected));
    slice_of_web.metadata.labels.remove("kubernetes.io/service-name");
    let error = ServiceName::of_slice(&slice_of_web);
    assert_eq!(error, Err(NoServiceName));
    assert_eq!(NoServiceName.to_string(), "EndpointSlice missing kubernetes.io/service-name label");
}
