//! Tests of the comparisons: some changes of an object need a new plan, and others do not.

use super::*;
use endpointslice::model::{EndpointPort, Hints, OwnerReference, TargetRef};
use jiff::Timestamp;
use std::sync::Arc;

/// Returns a slice with one endpoint, for the pod pod1.
fn slice() -> EndpointSlice {
    let target = TargetRef { name: "pod1".into(), uid: "uid-1".into(), ..TargetRef::default() };
    let endpoint = Endpoint {
        addresses: ["10.1.0.1".into()].into_iter().collect(),
        target_ref: Some(Arc::new(target)),
        ..Endpoint::default()
    };
    EndpointSlice { endpoints: vec![endpoint], ports: vec![EndpointPort::default()], ..EndpointSlice::default() }
}

fn with(change: impl FnOnce(&mut EndpointSlice)) -> EndpointSlice {
    let mut slice = slice();
    change(&mut slice);
    slice
}

fn of_endpoint(change: impl FnOnce(&mut Endpoint)) -> EndpointSlice {
    with(|slice| change(&mut slice.endpoints[0]))
}

fn of_target(change: impl Fn(&mut TargetRef)) -> EndpointSlice {
    of_endpoint(|endpoint| endpoint.target_ref.iter_mut().for_each(|target| change(Arc::make_mut(target))))
}

/// Returns [`slice`], and variants of it that each differ in one field.
fn different() -> Vec<EndpointSlice> {
    let mut two = slice();
    two.endpoints.push(two.endpoints[0].clone());
    vec![
        slice(),
        with(|slice| slice.endpoints.clear()),
        two,
        with(|slice| slice.ports.clear()),
        with(|slice| slice.address_type = "IPv6".into()),
        of_endpoint(|endpoint| endpoint.addresses = ["10.1.0.2".into()].into_iter().collect()),
        of_endpoint(|endpoint| endpoint.addresses = ["10.1.0.1".into(), "10.1.0.2".into()].into_iter().collect()),
        of_endpoint(|endpoint| endpoint.conditions.ready = Some(true)),
        of_endpoint(|endpoint| endpoint.conditions.serving = Some(true)),
        of_endpoint(|endpoint| endpoint.conditions.terminating = Some(true)),
        of_endpoint(|endpoint| endpoint.hostname = Some("a".into())),
        of_endpoint(|endpoint| endpoint.node_name = Some("a".into())),
        of_endpoint(|endpoint| endpoint.zone = Some("a".into())),
        of_endpoint(|endpoint| endpoint.hints = Some(Arc::new(Hints::default()))),
        of_endpoint(|endpoint| endpoint.target_ref = None),
        of_target(|target| target.name = "pod2".into()),
        of_target(|target| target.uid = "uid-2".into()),
        of_target(|target| target.namespace = "a".into()),
        of_target(|target| target.kind = "Node".into()),
        of_target(|target| target.resource_version = Some("1".into())),
        of_target(|target| target.api_version = Some("v1".into())),
        of_target(|target| target.field_path = Some("a".into())),
    ]
}

#[test]
fn slices_say_the_same_if_endpoints_ports_and_labels_are_the_same() {
    let slices = different();
    for (at, one) in slices.iter().enumerate() {
        for (other_at, other) in slices.iter().enumerate() {
            assert_eq!(has_same_content(one, other), at == other_at, "{one:?} {other:?}");
            assert_eq!(Fingerprint::of(one) == Fingerprint::of(other), at == other_at, "{one:?} {other:?}");
        }
    }
}

#[test]
fn labels_and_the_deletion_of_a_slice_count_beside_its_endpoints() {
    let others = [
        with(|slice| drop(slice.metadata.labels.insert("a", "b"))),
        with(|slice| slice.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH)),
    ];
    for other in others {
        assert!(!has_same_content(&slice(), &other));
        assert_eq!(Fingerprint::of(&slice()), Fingerprint::of(&other));
    }
}

#[test]
fn versions_and_remarks_on_a_slice_say_nothing() {
    let other = with(|slice| {
        slice.metadata.resource_version = "7".into();
        slice.metadata.generation = 7;
        slice.metadata.annotations.insert("a", "b");
        slice.metadata.finalizers.push("example.com/a".into());
    });
    assert!(has_same_content(&slice(), &other) && reads_the_same(&slice(), &other));
    assert_eq!(Fingerprint::of(&slice()), Fingerprint::of(&other));
}

#[test]
fn plans_read_also_whom_a_slice_goes_with() {
    let other = with(|slice| slice.metadata.owner_references.push(OwnerReference::default()));
    assert!(has_same_content(&slice(), &other) && !reads_the_same(&slice(), &other));
}
