//! Tests of webhooks that change the slices that the controller writes. The change of a webhook counts as part of the
//! controller's own write, and the controller does not undo it.

use super::builders::{Build as _, BuildPod as _, pod, service};
use super::world::{Fate, SECOND, World};
use crate::Operation::{Create, Update};
use serde_json::{Value, json};

/// Webhook that adds a label and an annotation to every slice.
fn stamp(slice: &mut Value) {
    slice["metadata"]["labels"]["team"] = json!("red");
    slice["metadata"]["annotations"]["example.com/seen"] = json!("yes");
}

fn world() -> World {
    let mut world = World::new();
    world.webhook(Some(stamp));
    world.set(service("web"));
    world.set_all([pod(1), pod(2)]);
    world
}

fn labels(world: &World) -> Vec<Option<String>> {
    let labelled =
        |slice: endpointslice::model::EndpointSlice| slice.metadata.labels.get("team").map(ToString::to_string);
    world.slices_of("web").into_iter().map(labelled).collect()
}

#[test]
fn what_a_webhook_adds_to_own_writes_is_no_evidence_and_is_not_fought_over() {
    for fate in [Fate::Done, Fate::AnsweredLate] {
        for watch_is_paused in [false, true] {
            let mut world = world();
            let case = format!("{fate:?}, watch paused: {watch_is_paused}");
            world.pause_watch(watch_is_paused);
            world.writes_are(move |_| fate);
            world.settle();
            world.deliver_responses();
            world.pause_watch(false);
            assert_eq!(world.done_after(SECOND * 60), [Create], "{case}: it is settled");
            world.set_and_settle(pod(3));
            world.deliver_responses();
            assert_eq!(world.done_after(SECOND * 60), [Update], "{case}");
            assert_eq!(world.take_foreign_change(), None, "{case}");
            assert_eq!(labels(&world), [Some("red".to_owned())]);
        }
    }
}

#[test]
fn the_next_phase_follows_at_once_whatever_a_webhook_made_of_the_last() {
    let mut world = world();
    world.done_now();
    world.writes_are(|_| Fate::AnsweredLate);
    let many: Vec<_> = (3..=120).map(pod).collect();
    world.set_all_and_settle(many);
    world.let_writes_end();
    assert_eq!(world.take_done(), [Create, Update], "no second passes between them");
    assert_eq!(world.endpoints_of("web").len(), 120);
}

#[test]
fn what_a_webhook_added_when_a_slice_was_made_is_kept_when_it_is_changed() {
    let mut world = world();
    world.settle();
    world.webhook(None);
    world.set(pod(1).not_ready());
    assert_eq!(world.done_now(), [Create, Update]);
    assert_eq!(labels(&world), [Some("red".to_owned())]);
}

#[test]
fn a_label_that_another_client_adds_before_the_response_to_a_write_is_no_webhooks() {
    let mut world = World::new();
    world.set(service("web"));
    world.set(pod(1));
    world.writes_are(|_| Fate::AnsweredLate);
    world.settle();
    let slice = world.slices_of("web")[0].metadata.name.to_string();
    world.edit_slice(&slice, |slice| slice["metadata"]["labels"]["team"] = json!("red"));
    world.settle();
    world.let_writes_end();
    assert_eq!(world.seen.lock().foreign_labels, 0);
    world.advance(SECOND * 60);
    assert_eq!(labels(&world), [None], "the controller removes the label");
}

#[test]
fn after_a_restart_what_webhooks_add_is_learned_by_writes_that_change_nothing() {
    let mut world = world();
    world.done_now();
    let slices = world.slices();
    world.restart();
    assert_eq!(world.done_after(SECOND * 60), [Update]);
    assert_eq!(world.slices(), slices);
    assert_eq!(world.take_foreign_change(), None);
    assert_eq!(world.seen.lock().foreign_labels, 1);
}

#[test]
fn a_label_that_the_service_has_too_is_the_services() {
    let mut world = world();
    world.settle();
    world.webhook(None);
    world.set_and_settle(service("web").labelled([("team", "blue")]));
    assert_eq!(labels(&world), [Some("blue".to_owned())]);
}

/// Also rule Y9.
#[test]
fn a_webhook_that_makes_up_labels_without_end_takes_no_room_without_end() {
    let mut world = World::new();
    world.webhook(Some(|slice: &mut Value| {
        let version = slice["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned();
        slice["metadata"]["labels"][format!("made-up-{version}")] = json!("x");
    }));
    world.set(service("web"));
    for round in 0..100 {
        world.set(if round % 2 == 0 { pod(1) } else { pod(1).not_ready() });
        world.advance(SECOND);
    }
    assert_eq!(world.seen.lock().foreign_labels, 64);
}

/// Rule Y9: A webhook adds labels to slices
/// Then: The member agent's EndpointSlice controller leaves the webhook's labels on the slices. The number of label
/// keys that the controller leaves has a limit. A label that another writer adds while a write is in flight does not
/// count as a webhook's label
#[test]
fn what_others_change_while_our_write_is_under_way_is_theirs() {
    let mut world = world();
    world.done_now();
    world.writes_are(|_| Fate::AnsweredLate);
    world.set_and_settle(pod(3));
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["endpoints"] = json!([]));
    world.settle();
    assert_eq!(world.take_foreign_change(), None, "the answer will tell which of the two was ours");
    let now = world.now();
    world.let_writes_end();
    assert_eq!(world.take_foreign_change(), Some(now));
    world.advance(SECOND);
    assert_eq!((world.take_done(), world.endpoints_of("web").len()), (vec![Update, Update], 3));
}
