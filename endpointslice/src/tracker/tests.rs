//! Test tables of kube-controller-manager for own writes, and tests of watch events and responses in any order.

mod histories;

use super::*;
use crate::model::{Metadata, OwnerReference};
use jiff::Timestamp;

pub(super) fn service() -> Service {
    service_named("ns1", "svc1", "svc-uid")
}

fn service_named(namespace: &str, name: &str, uid: &str) -> Service {
    let metadata = Metadata { namespace: namespace.into(), name: name.into(), uid: uid.into(), ..Metadata::default() };
    Service { metadata, ..Service::default() }
}

pub(super) fn slice_of(namespace: &str, service: &str, uid: &str, generation: i64) -> EndpointSlice {
    let metadata = Metadata {
        namespace: namespace.into(),
        name: "example-1".into(),
        uid: uid.into(),
        generation,
        resource_version: (100 + generation).to_string().into(),
        labels: [(LABEL_SERVICE_NAME, service)].into(),
        owner_references: vec![OwnerReference { uid: "svc-uid".into(), ..OwnerReference::default() }],
        ..Metadata::default()
    };
    EndpointSlice { metadata, ..EndpointSlice::default() }
}

/// Returns the slice that most tests use, at this generation.
pub(super) fn slice(generation: i64) -> EndpointSlice {
    slice_of("ns1", "svc1", "original", generation)
}

fn terminating(mut slice: EndpointSlice) -> EndpointSlice {
    slice.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    slice
}

/// Returns a tracker after a successful create of `slice`.
fn after_writing(slice: &EndpointSlice) -> SliceTracker {
    let mut tracker = SliceTracker::default();
    write(&mut tracker, slice);
    tracker
}

fn write(tracker: &mut SliceTracker, slice: &EndpointSlice) {
    let service = &slice.metadata.labels.get(LABEL_SERVICE_NAME).unwrap().clone();
    let write = tracker.begin_create(&service_named(&slice.metadata.namespace, service, "svc-uid"));
    assert!(!tracker.stored(write, slice));
}

/// Deletes `slice` as a controller does: announces the delete to the tracker, then reports its success.
fn delete(tracker: &mut SliceTracker, slice: &EndpointSlice) {
    let service = &slice.metadata.labels.get(LABEL_SERVICE_NAME).unwrap().clone();
    let write = tracker.begin_delete(&service_named(&slice.metadata.namespace, service, "svc-uid"), slice);
    assert!(!tracker.removed(write));
}

/// Cases of kube-controller-manager's `TestEndpointSliceTrackerUpdate`. Columns: name, slice in a watch event, true if
/// the tracker knows the slice, true if the event is reported.
#[test]
fn the_four_cases_of_an_update() {
    let cases = [
        ("same slice", slice(1), true, false),
        ("different namespace", slice_of("ns2", "svc1", "diff-ns", 1), false, true),
        ("different Service", slice_of("ns1", "svc2", "diff-svc", 1), false, true),
        ("newer generation", slice(2), true, true),
    ];
    for (name, shown, is_known, is_reported) in cases {
        let mut tracker = after_writing(&slice(1));
        assert_eq!(tracker.contains(&shown), is_known, "{name}");
        assert_eq!(tracker.changed(&shown), is_reported, "{name}");
    }
}

/// Cases of kube-controller-manager's `TestEndpointSliceTrackerStaleSlices`. Columns: name, tracker, slices in the
/// cache, true if the cache is stale.
///
/// Rule Z16: A controller that uses the library plans from a cache of slices
/// Then: The library reports to the controller if the cache lacks the controller's own writes. The library also reports
/// each change by other writers. An answer to a write never adds a deleted slice to the cache again
#[test]
fn the_seven_cases_of_a_stale_cache() {
    let expecting_deletion = {
        let mut tracker = after_writing(&slice(1));
        delete(&mut tracker, &slice(1));
        tracker
    };
    let emptied = {
        let mut tracker = after_writing(&slice(1));
        assert!(tracker.deleted(&slice(1)));
        tracker
    };
    let cases = [
        ("empty tracker", SliceTracker::default(), vec![], false),
        ("no slices left", emptied, vec![], false),
        ("matching slices", after_writing(&slice(1)), vec![slice(1)], false),
        ("written since", after_writing(&slice(2)), vec![slice(1)], true),
        ("changed since by others", after_writing(&slice(1)), vec![slice(2)], false),
        ("deleted, but still there", expecting_deletion, vec![slice(1)], true),
        ("written, but not there", after_writing(&slice(1)), vec![], true),
    ];
    for (name, tracker, cache, is_stale) in cases {
        assert_eq!(tracker.is_stale(&service(), &cache), is_stale, "{name}");
    }
}

/// Cases of kube-controller-manager's `TestEndpointSliceTrackerDeletion`. Columns: name; slice to delete; slice in a
/// later watch event; true if the tracker knows the slice in the event; true if the event is reported; true if the
/// deletion of `slice(1)`, the original slice, was expected.
#[test]
fn the_seven_cases_of_a_deletion() {
    let other_namespace = || slice_of("ns2", "svc1", "diff-ns", 1);
    let other_service = || slice_of("ns1", "svc2", "diff-svc", 1);
    let cases = [
        ("same slice", slice(1), slice(1), true, true, true),
        ("different namespace", other_namespace(), other_namespace(), true, true, false),
        ("different namespace, look at the original", other_namespace(), slice(1), true, false, false),
        ("different Service", other_service(), other_service(), true, true, false),
        ("different Service, look at the original", other_service(), slice(1), true, false, false),
        ("newer generation", slice(2), slice(2), true, true, true),
        ("newer generation, look at the original", slice(2), slice(1), true, true, true),
    ];
    for (name, to_delete, shown, is_known, is_reported, was_expected) in cases {
        let mut tracker = after_writing(&slice(1));
        delete(&mut tracker, &to_delete);
        assert_eq!(tracker.contains(&shown), is_known, "{name}");
        assert_eq!(tracker.changed(&shown), is_reported, "{name}");
        assert_eq!(!tracker.deleted(&slice(1)), was_expected, "{name}");
        assert!(!tracker.contains(&slice(1)), "{name}");
    }
}

/// Cases of kube-controller-manager's `TestEndpointSliceTrackerDeleteService`. Columns: name, deleted Service, true if
/// the tracker still knows the slice, true if an event of the slice is reported.
#[test]
fn the_three_cases_of_a_deleted_service() {
    let cases = [
        ("same Service", ("ns1", "svc1"), false, true),
        ("different namespace", ("ns2", "svc1"), true, false),
        ("different Service", ("ns1", "svc2"), true, false),
    ];
    for (name, (namespace, service), is_known, is_reported) in cases {
        let mut tracker = after_writing(&slice(1));
        tracker.forget(namespace, service);
        assert_eq!(tracker.contains(&slice(1)), is_known, "{name}");
        assert_eq!(tracker.changed(&slice(1)), is_reported, "{name}");
    }
}

/// Cases of kube-controller-manager's `TestSyncServiceStaleInformer`: generation in the cache, generation written, true
/// if the cache is stale.
#[test]
fn the_three_cases_of_a_stale_informer() {
    for (cached, written, is_stale) in [(10, 12, true), (10, 10, false), (10, 1, false)] {
        assert_eq!(after_writing(&slice(written)).is_stale(&service(), [&slice(cached)]), is_stale);
    }
}

/// Regression test for kubernetes/kubernetes #141592: the watch shows a deletion by the garbage collector before the
/// response to an update arrives.
///
/// Also rule Z16.
#[test]
fn an_answer_for_a_slice_that_is_gone_already_is_ignored() {
    let mut tracker = after_writing(&slice(1));
    let update = tracker.begin_update(&service(), &slice(1));
    assert!(tracker.deleted(&slice(2)), "must be reported: it was not deleted here");
    assert!(!tracker.stored(update, &slice(2)));
    assert!(!tracker.is_stale(&service(), Vec::<EndpointSlice>::new()));
    assert!(tracker.is_empty());
}

#[test]
fn a_create_whose_slice_came_and_went_before_its_answer_leaves_nothing() {
    let mut tracker = SliceTracker::default();
    let create = tracker.begin_create(&service());
    assert!(!tracker.changed(&slice(1)));
    assert!(tracker.deleted(&slice(1)));
    assert!(!tracker.stored(create, &slice(1)));
    assert!(tracker.is_empty());
}

#[test]
fn own_writes_that_the_watch_shows_before_their_answers_are_never_reported() {
    let mut tracker = after_writing(&slice(1));
    let update = tracker.begin_update(&service(), &slice(1));
    let create = tracker.begin_create(&service());
    assert!(!tracker.changed(&slice(2)));
    assert!(!tracker.changed(&slice_of("ns1", "svc1", "second", 1)));
    assert!(!tracker.stored(update, &slice(2)));
    assert!(!tracker.stored(create, &slice_of("ns1", "svc1", "second", 1)));
    assert!(!tracker.changed(&slice(2)));
}

#[test]
fn a_foreign_slice_that_comes_during_a_create_is_reported_with_the_last_answer() {
    let mut tracker = SliceTracker::default();
    let (first, second) = (tracker.begin_create(&service()), tracker.begin_create(&service()));
    assert!(!tracker.changed(&slice_of("ns1", "svc1", "foreign", 1)));
    assert!(!tracker.stored(first, &slice(1)), "it may be the other create's");
    assert!(tracker.stored(second, &slice_of("ns1", "svc1", "second", 1)));
}

/// Also rule Z16.
#[test]
fn a_foreign_write_between_plan_and_update_is_reported_with_the_answer() {
    let mut tracker = after_writing(&slice(1));
    let update = tracker.begin_update(&service(), &slice(1));
    assert!(!tracker.changed(&slice(2)), "it could be the update");
    assert!(tracker.stored(update, &slice(3)));
}

/// Also rule Z16.
#[test]
fn a_foreign_write_after_the_update_is_reported_with_the_answer() {
    let mut tracker = after_writing(&slice(1));
    let update = tracker.begin_update(&service(), &slice(1));
    assert!(!tracker.changed(&slice(3)));
    assert!(tracker.stored(update, &slice(2)));
}

#[test]
fn a_foreign_write_that_makes_an_update_fail_is_reported() {
    let mut tracker = after_writing(&slice(1));
    let update = tracker.begin_update(&service(), &slice(1));
    assert!(!tracker.changed(&slice(2)));
    assert!(tracker.failed(update));
    assert!(!tracker.is_stale(&service(), [&slice(2)]));
}

#[test]
fn an_update_that_changes_nothing_does_not_make_the_cache_look_stale() {
    let mut tracker = after_writing(&slice(3));
    let update = tracker.begin_update(&service(), &slice(3));
    assert!(!tracker.stored(update, &slice(3)));
    assert!(!tracker.is_stale(&service(), [&slice(3)]));
}

#[test]
fn a_slice_deleted_by_hand_is_reported_even_if_this_process_never_wrote_it() {
    let mut restarted = SliceTracker::default();
    assert!(restarted.deleted(&slice(4)));
    let mut running = after_writing(&slice(1));
    assert!(running.deleted(&slice(1)));
    assert!(running.is_empty());
}

#[test]
fn an_own_deletion_leaves_nothing_however_event_and_answer_are_ordered() {
    let mut tracker = after_writing(&slice(1));
    let write = tracker.begin_delete(&service(), &slice(1));
    assert!(!tracker.deleted(&slice(1)));
    assert!(!tracker.removed(write));
    assert!(tracker.is_empty());

    let mut tracker = after_writing(&slice(1));
    delete(&mut tracker, &slice(1));
    assert!(!tracker.deleted(&slice(1)));
    assert!(tracker.is_empty());
}

#[test]
fn a_deletion_that_failed_is_not_expected() {
    let mut tracker = after_writing(&slice(1));
    let write = tracker.begin_delete(&service(), &slice(1));
    assert!(!tracker.failed(write));
    assert!(!tracker.is_stale(&service(), [&slice(1)]));
    assert!(tracker.deleted(&slice(1)));
}

#[test]
fn a_write_to_a_slice_that_was_gone_before_it_leaves_nothing() {
    let mut tracker = SliceTracker::default();
    let update = tracker.begin_update(&service(), &slice(1));
    assert!(!tracker.failed(update));
    let delete = tracker.begin_delete(&service(), &slice(1));
    assert!(!tracker.failed(delete));
    assert!(tracker.is_empty());
}

#[test]
fn a_slice_that_waits_for_its_finalizers_does_not_make_the_cache_look_stale() {
    let mut tracker = after_writing(&slice(1));
    delete(&mut tracker, &slice(1));
    let waiting = terminating(slice(2));
    assert!(!tracker.changed(&waiting), "it is on its way, as expected");
    assert!(!tracker.is_stale(&service(), [&waiting]));

    let mut tracker = after_writing(&slice(1));
    assert!(tracker.changed(&waiting), "deleted by hand: it must be replaced");
    assert!(!tracker.is_stale(&service(), [&waiting]));
}

#[test]
fn a_recreated_service_is_not_judged_by_the_slices_of_the_old_one() {
    let mut tracker = after_writing(&slice(1));
    let old_update = tracker.begin_update(&service(), &slice(1));
    let new = service_named("ns1", "svc1", "new-uid");
    assert!(!tracker.is_stale(&new, Vec::<EndpointSlice>::new()));
    let create = tracker.begin_create(&new);
    assert!(!tracker.stored(old_update, &slice(2)), "nobody waits for that answer any more");
    assert!(!tracker.stored(create, &slice_of("ns1", "svc1", "new", 1)));
    assert!(!tracker.contains(&slice(2)));
    assert!(!tracker.is_stale(&new, [&slice_of("ns1", "svc1", "new", 1)]));
}

#[test]
fn an_answer_that_comes_after_its_service_was_forgotten_is_ignored() {
    let mut tracker = after_writing(&slice(1));
    let update = tracker.begin_update(&service(), &slice(1));
    tracker.forget("ns1", "svc1");
    assert!(!tracker.stored(update, &slice(2)));
    assert!(tracker.is_empty());
}

#[test]
fn a_slice_that_came_and_went_in_a_gap_of_the_watch_is_not_awaited_for_ever() {
    let mut tracker = after_writing(&slice(1));
    let later = slice_of("ns1", "svc1", "later", 50);
    write(&mut tracker, &later);
    assert!(tracker.is_stale(&service(), [&later]));
    let bereft = tracker.relisted("120", |_| false);
    assert_eq!(bereft, [ServiceName { namespace: "ns1".into(), name: "svc1".into() }]);
    assert!(!tracker.contains(&slice(1)));
    assert!(tracker.contains(&later), "it is younger than the list");
    assert!(!tracker.is_stale(&service(), [&later]));
    assert_eq!(tracker.relisted("200", |uid| uid == "later"), []);
    assert!(tracker.contains(&later));
}

#[test]
fn a_deletion_in_a_gap_of_the_watch_leaves_nothing() {
    let mut tracker = after_writing(&slice(1));
    delete(&mut tracker, &slice(1));
    assert_eq!(tracker.relisted("120", |_| false), []);
    assert!(tracker.is_empty());
}

#[test]
fn a_write_that_takes_long_does_not_make_memory_grow() {
    let mut tracker = SliceTracker::default();
    let write = tracker.begin_create(&service());
    let reported = (0..3000).filter(|number| tracker.changed(&slice_of("ns1", "svc1", &format!("uid-{number}"), 1)));
    assert_eq!(reported.count(), 3000 - 1024);
    for number in 0..3000 {
        assert!(tracker.deleted(&slice_of("ns1", "svc1", &format!("uid-{number}"), 1)));
    }
    assert!(!tracker.stored(write, &slice_of("ns1", "svc1", "uid-2999", 1)));
    assert!(tracker.is_empty());
}
