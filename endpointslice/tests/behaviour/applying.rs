//! Tests of applying plans: order of phases, failed writes, and other writers' data on slices.

use crate::builders::{BuildService as _, BuildSlice as _, pods, port, service, slice};
use crate::memory::ApiError;
use crate::world::{World, reconciled, world};
use endpointslice::address::Family;
use endpointslice::apply::Written;
use endpointslice::model::AddressType;

/// Returns a simulated cluster whose plan creates one slice, updates one slice and deletes one slice. Writes whose call
/// has the prefix in `failing` fail.
fn all_phases(failing: Option<(&'static str, ApiError)>) -> World {
    let service = service("web");
    let slices = [
        slice(1, &service).with_pods(&pods(0..1)).with_label("old", "label"),
        slice(2, &service).with_pods(&pods(300..301)).with_owner_uid("earlier"),
    ];
    let mut world = world(pods(0..150)).with_slices(slices);
    world.memory.failing = failing;
    world
}

#[test]
fn creates_come_before_updates_before_deletes() {
    let outcome = all_phases(None).reconcile();
    assert_eq!(outcome.calls, ["create web-00001", "update web-1", "delete web-2"]);
    let written = outcome.applied.written.iter().map(|written| match written {
        Written::Created(slice) => ("created", slice.metadata.name.to_string(), slice.metadata.generation),
        Written::Updated(slice) => ("updated", slice.metadata.name.to_string(), slice.metadata.generation),
        Written::Deleted(slice) => ("deleted", slice.metadata.name.to_string(), slice.metadata.generation),
    });
    let written: Vec<_> = written.collect();
    let expected = [("created", "web-00001", 1), ("updated", "web-1", 2), ("deleted", "web-2", 1)];
    assert_eq!(written, expected.map(|(what, name, generation)| (what, name.to_owned(), generation)));
    assert_eq!(outcome.applied.completed, [AddressType::IPv4]);
}

#[test]
fn an_application_may_be_carried_from_thread_to_thread() {
    fn is_send<T: Send>(_: &T) {}
    let world = all_phases(None);
    let plan = world.plan();
    is_send(&endpointslice::apply(&plan, &world.memory, std::num::NonZeroUsize::MIN));
}

/// Rule Z15: A write of a plan fails while the plan is applied
/// Then: The library deletes no slice that has the address type of the failed write, and no slice of an address type
/// that the Service lost
#[test]
fn nothing_is_removed_if_an_addition_failed() {
    let check = |failing: &'static str, calls: &[&str], error: &str| {
        let outcome = all_phases(Some((failing, ApiError::NoRoom))).reconcile();
        assert_eq!(outcome.calls, calls);
        let errors: Vec<_> = outcome.applied.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [error]);
        assert!(outcome.applied.completed.is_empty() && !outcome.applied.is_success());
    };
    check("create", &["create web-00001"], "failed to create EndpointSlice for Service testing/web: no room");
    let updated = ["create web-00001", "update web-1"];
    check("update", &updated, "failed to update web-1 EndpointSlice for Service testing/web: no room");
    let deleted = ["create web-00001", "update web-1", "delete web-2"];
    check("delete", &deleted, "failed to delete web-2 EndpointSlice for Service testing/web: no room");
}

#[test]
fn a_namespace_that_is_being_deleted_ends_it_without_an_error() {
    let outcome = all_phases(Some(("create", ApiError::NamespaceTerminating))).reconcile();
    assert_eq!(outcome.calls, ["create web-00001"]);
    assert!(outcome.applied.is_success() && outcome.applied.namespace_terminating);
}

/// Also rule Z15.
#[test]
fn slices_of_a_family_that_the_service_lost_stay_until_the_new_ones_are_there() {
    let old = slice(1, &service("web")).with_pods(&pods(0..1));
    let six = service("web").with_families(&[Family::V6]);
    let mut world = world(pods(0..1)).with_service(six).with_slices([old]);
    world.memory.failing = Some(("create", ApiError::NoRoom));
    assert_eq!(world.reconcile().calls, ["create web-00001"]);
    world.memory.failing = Some(("delete", ApiError::NoRoom));
    let outcome = world.reconcile();
    assert_eq!(outcome.calls, ["create web-00002", "delete web-1"]);
    let error = outcome.applied.errors[0].to_string();
    assert_eq!(error, "error deleting web-1 EndpointSlice for Service testing/web: no room");
    world.memory.failing = None;
    assert_eq!(world.reconcile().calls, ["delete web-1"]);
}

/// Also rule Z15.
#[test]
fn one_family_that_fails_does_not_stop_the_other() {
    let dual = service("web").with_families(&[Family::V4, Family::V6]);
    let stale = slice(1, &dual).with_pods(&pods(0..2));
    let mut world = world(pods(0..1)).with_service(dual).with_slices([stale]);
    world.memory.failing = Some(("update", ApiError::NoRoom));
    let outcome = world.reconcile();
    assert_eq!(outcome.applied.completed, [AddressType::IPv6]);
    assert_eq!(outcome.applied.errors.len(), 1);
}

/// Also rule Z4.
#[test]
fn a_recycled_slice_keeps_what_others_wrote_on_it() {
    let mut world = reconciled(pods(0..2));
    let mut stored = (*world.memory.slices()[0]).clone();
    stored.metadata.annotations.insert("networking.example.com/exported-as", "a-web");
    stored.metadata.finalizers = vec!["example.com/exporter".into()];
    world.memory.put(stored);
    world.service.spec.ports = vec![port("web", 81)];
    assert_eq!(world.reconcile().calls, ["update web-00001"]);
    assert!(world.reconcile().plan.is_empty());
    let slice = &world.memory.slices()[0];
    assert_eq!(slice.metadata.annotations.get("networking.example.com/exported-as").unwrap(), "a-web");
    assert_eq!(slice.metadata.finalizers, ["example.com/exporter"]);
    assert_eq!(slice.ports[0].port, Some(81));
}

#[test]
fn an_update_keeps_annotations_and_takes_off_labels_that_others_added() {
    let mut world = reconciled(pods(0..2));
    let mut stored = (*world.memory.slices()[0]).clone();
    stored.metadata.annotations.insert("note", "1");
    world.memory.put(stored.clone());
    assert!(world.reconcile().plan.is_empty());
    stored.metadata.labels.insert("note", "1");
    world.memory.put(stored);
    assert_eq!(world.reconcile().calls, ["update web-00001"]);
    let metadata = world.memory.slices()[0].metadata.clone();
    assert_eq!((metadata.annotations.get("note").map(|it| &**it), metadata.labels.get("note")), (Some("1"), None));
    world.pods.pop();
    world.reconcile();
    assert_eq!(world.memory.slices()[0].metadata.annotations.get("note").unwrap(), "1");
}
