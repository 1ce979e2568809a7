//! Tests of the trigger-time annotation of a write: the time of the oldest change that the write publishes.

use super::builders::{
    Build as _, BuildPod as _, BuildService as _, BuildSlice as _, CREATED, node, pod, service, slice,
};
use super::world::{Fate, SECOND, World};
use crate::Operation::{Create, Update};
use endpointslice::names::ANNOTATION_TRIGGER_TIME;

const ONE: &str = "2026-03-01T00:00:01Z";
const TWO: &str = "2026-03-01T00:00:02.25Z";
const THREE: &str = "2026-03-01T00:00:03Z";

/// Returns a settled Service of two pods that became ready long ago.
fn world() -> World {
    let mut world = World::new();
    world.set_all([pod(1).changed_at(CREATED), pod(2).changed_at(CREATED)]);
    world.set(service("web"));
    world.done_now();
    world
}

fn trigger_time(world: &World) -> Option<String> {
    world.only_slice_of("web").metadata.annotations.get(ANNOTATION_TRIGGER_TIME).map(ToString::to_string)
}

#[test]
fn a_change_without_a_time_takes_the_annotation_away() {
    let mut world = world();
    world.remove_pod_and_settle("pod1");
    assert_eq!((world.take_done(), trigger_time(&world)), (vec![Update], None));
    world.set_and_settle(service("web").labelled([("team", "a")]));
    assert_eq!((world.take_done(), trigger_time(&world)), (vec![Update], None));
}

#[test]
fn the_time_is_kept_until_a_sync_succeeds() {
    let mut world = world();
    world.writes_are(|_| Fate::Failed);
    world.set(pod(1).not_ready().changed_at(ONE));
    world.advance(SECOND * 5);
    world.set(pod(2).not_ready().changed_at(THREE));
    world.advance(SECOND * 5);
    world.writes_are(|_| Fate::Done);
    world.advance(SECOND * 60);
    assert_eq!(trigger_time(&world).as_deref(), Some(ONE));
    world.set_and_settle(pod(2).changed_at(CREATED));
    assert_eq!(trigger_time(&world), None, "it is published");
}

#[test]
fn each_phase_of_a_sync_has_its_time() {
    let mut world =
        World::with(endpointslice::Config::default().with_max_endpoints_per_slice(2).unwrap(), Default::default());
    world.set(service("web"));
    world.set_all([pod(1), pod(2), pod(3)]);
    world.done_now();
    world.set_all_and_settle([pod(1).not_ready().changed_at(ONE), pod(4), pod(5)]);
    let mut done = world.done();
    assert_eq!(done.iter().map(|done| done.operation).collect::<Vec<_>>(), [Create, Update]);
    for done in done.drain(..) {
        let annotations = done.after.expect("it is there").metadata.annotations;
        assert_eq!(annotations.get(ANNOTATION_TRIGGER_TIME).map(|it| it.as_str()), Some(ONE));
    }
}

#[test]
fn while_a_pod_waits_for_its_node_other_changes_have_their_own_times() {
    let mut world = world();
    world.set_and_settle(pod(3).on_node("node-2").changed_at(ONE));
    world.set_and_settle(pod(1).not_ready().changed_at(THREE));
    assert_eq!(trigger_time(&world).as_deref(), Some(THREE));
    world.remove_pod_and_settle("pod2");
    assert_eq!(trigger_time(&world), None, "what goes has none");
    world.set_and_settle(node("node-2", "", ""));
    assert_eq!(trigger_time(&world).as_deref(), Some(ONE), "it is published for the first time");
}

#[test]
fn a_service_that_never_comes_to_rest_has_the_time_of_what_each_write_publishes() {
    let mut world = world();
    world.writes_are(|_| Fate::Slow);
    for second in 10..30 {
        let time = |second| format!("2026-03-01T00:00:{second}Z");
        let changed = pod(second % 2 + 1).changed_at(&time(second));
        world.set(if second / 2 % 2 == 1 { changed.not_ready() } else { changed });
        world.deliver_responses();
        world.writes_are(|_| Fate::Slow);
        if second > 10 {
            // The write that has just finished was sent before this second's change of the pod. So the slice has the
            // time of the previous second's change.
            assert_eq!(trigger_time(&world), Some(time(second - 1)));
        }
    }
}

#[test]
fn what_changed_before_serving_began_has_no_time_and_nothing_is_written_for_a_time_alone() {
    let mut world = World::new();
    let web = service("web");
    world.make_slice(&slice("web-theirs", &web).holding([&pod(1)]).annotated(ANNOTATION_TRIGGER_TIME, ONE));
    world.set(web);
    world.set(pod(1).changed_at(TWO));
    assert_eq!(world.done_now(), []);
    assert_eq!(trigger_time(&world).as_deref(), Some(ONE));
    world.set(pod(1).changed_at(THREE));
    assert_eq!(world.done_now(), []);
}

#[test]
fn what_puts_right_what_others_did_has_no_time() {
    let mut world = world();
    world.set_and_settle(pod(1).not_ready().changed_at(ONE));
    assert_eq!(trigger_time(&world).as_deref(), Some(ONE));
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["endpoints"] = serde_json::json!([]));
    world.advance(SECOND);
    assert_eq!(world.endpoints_of("web").len(), 2);
    assert_eq!(trigger_time(&world), None);
}

#[test]
fn pods_that_a_new_selector_brings_have_their_times() {
    let mut world = world();
    world.set(pod(3).labelled([("foo", "other")]).changed_at(ONE));
    world.set_and_settle(service("web").selecting([("foo", "other")]));
    assert_eq!(world.endpoints_of("web"), ["pod3 10.1.0.3 ready serving"]);
    assert_eq!(trigger_time(&world).as_deref(), Some(ONE));
}

#[test]
fn who_begins_to_serve_again_has_seen_no_times() {
    let mut world = world();
    world.serve(false);
    world.set(pod(1).not_ready().changed_at(ONE));
    world.serve(true);
    world.settle();
    assert_eq!(
        (world.take_done(), trigger_time(&world).as_deref()),
        (vec![Update], Some(CREATED)),
        "as after a restart"
    );
}
