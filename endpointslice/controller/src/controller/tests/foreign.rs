//! Tests of own and foreign writes: the delays after them, and the foreign writes from which the controller concludes
//! that another controller is active.

use super::builders::{Build as _, BuildPod as _, BuildService as _, pod, service, slice};
use super::world::{Fate, MILLISECOND, SECOND, World};
use crate::Operation::{Create, Update};
use crate::Timing;
use endpointslice::Config;
use endpointslice::names::LABEL_MANAGED_BY;
use fleetnet_types::Timestamp;
use serde_json::{Value, json};

/// Runs `happening`. Returns the time of the last foreign write that the controller saw, or `None` if there was none.
fn foreign_write_after(happening: impl FnOnce(&mut World)) -> Option<Timestamp> {
    let mut world = World::with_web_and_two_pods();
    assert_eq!(world.take_foreign_change(), None);
    happening(&mut world);
    world.settle();
    world.take_foreign_change()
}

fn edit(change: impl FnOnce(&mut Value)) -> impl FnOnce(&mut World) {
    |world| {
        let name = world.only_slice_of("web").metadata.name;
        world.edit_slice(&name, change);
    }
}

/// Also rule Y2.
#[test]
fn any_change_of_the_content_of_a_slice_is_a_foreign_write() {
    let now = Some(super::world::NOON);
    assert_eq!(foreign_write_after(edit(|slice| slice["endpoints"] = json!([]))), now);
    assert_eq!(foreign_write_after(edit(|slice| slice["endpoints"][0]["conditions"]["ready"] = json!(false))), now);
    assert_eq!(foreign_write_after(edit(|slice| slice["ports"] = json!([]))), now);
    assert_eq!(foreign_write_after(edit(|slice| slice["metadata"]["labels"]["a"] = json!("b"))), now);
    assert_eq!(foreign_write_after(|world| world.make_slice(&slice("web-other", &service("web")))), now);
    assert_eq!(foreign_write_after(|world| world.make_slice(&slice("else-1", &service("not-known-yet")))), now);
}

#[test]
fn a_foreign_write_is_reported_once() {
    let mut world = World::with_web_and_two_pods();
    edit(|slice| slice["endpoints"] = json!([]))(&mut world);
    world.settle();
    assert!(world.take_foreign_change().is_some());
    assert_eq!(world.take_foreign_change(), None);
}

/// Also rule Y2.
#[test]
fn other_changes_are_no_evidence_of_another_controller() {
    assert_eq!(foreign_write_after(edit(|slice| slice["metadata"]["annotations"]["a"] = json!("b"))), None, "a remark");
    assert_eq!(foreign_write_after(edit(|slice| slice["metadata"]["finalizers"] = json!(["example.com/a"]))), None);
    assert_eq!(foreign_write_after(edit(|slice| slice["metadata"]["ownerReferences"] = json!([]))), None);
    assert_eq!(foreign_write_after(edit(|slice| slice["metadata"]["labels"][LABEL_MANAGED_BY] = json!("me"))), None);
    let theirs = slice("theirs", &service("web")).with_label(LABEL_MANAGED_BY, "me");
    assert_eq!(foreign_write_after(|world| world.make_slice(&theirs)), None, "another manager's");
    let delete = |world: &mut World| world.delete_slice(&world.only_slice_of("web").metadata.name);
    assert_eq!(foreign_write_after(delete), None, "people and the garbage collector delete");
    let keep_by_finalizer = |world: &mut World| {
        edit(|slice| slice["metadata"]["finalizers"] = json!(["example.com/a"]))(world);
        delete(world);
    };
    assert_eq!(foreign_write_after(keep_by_finalizer), None, "and finalizers hold");
}

/// Also rule Y2.
#[test]
fn own_writes_are_no_evidence_however_they_are_seen() {
    for fate in [Fate::Done, Fate::Unanswered, Fate::Failed, Fate::Slow] {
        for watch_is_paused in [false, true] {
            let mut world = World::with_web_and_two_pods();
            world.pause_watch(watch_is_paused);
            let mut left = 3;
            world.writes_are(move |_| {
                left -= i32::from(left > 0);
                if left > 0 { fate } else { Fate::Done }
            });
            world.set_and_settle(service("web").serving(vec![super::builders::port("web", 81)]));
            world.set_and_settle(pod(3));
            world.remove_pod_and_settle("pod1");
            world.deliver_responses();
            world.pause_watch(false);
            world.advance(SECOND * 5);
            assert_eq!(world.endpoints_of("web").len(), 2);
            assert_eq!(world.take_foreign_change(), None, "{fate:?}, watch paused: {watch_is_paused}");
        }
    }
}

#[test]
fn own_writes_that_arrive_after_serving_has_ended_are_no_evidence() {
    let mut world = World::with_web_and_two_pods();
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(pod(3));
    world.serve(false);
    world.deliver_responses();
    assert_eq!(world.done_now(), [Update]);
    assert_eq!(world.take_foreign_change(), None);
}

#[test]
fn slices_that_change_while_the_agent_does_not_serve_are_evidence() {
    let mut world = World::with_web_and_two_pods();
    world.serve(false);
    edit(|slice| slice["endpoints"] = json!([]))(&mut world);
    world.settle();
    assert!(world.take_foreign_change().is_some());
}

#[test]
fn a_write_requested_long_ago_counts_as_foreign_when_it_comes() {
    let mut world = World::with_web_and_two_pods();
    world.writes_are(|_| Fate::Failed);
    world.set_and_settle(pod(1).not_ready());
    world.set_and_settle(pod(1));
    world.advance(SECOND * 61);
    edit(|slice| {
        for condition in ["ready", "serving"] {
            slice["endpoints"][0]["conditions"][condition] = json!(false);
        }
    })(&mut world);
    world.settle();
    assert_eq!(world.take_foreign_change(), Some(world.now()));
}

/// Simulates another writer that undoes each write of the controller, for this number of seconds. Returns the number of
/// writes of the controller.
fn fight(world: &mut World, seconds: u32) -> usize {
    for _ in 0..seconds * 20 {
        let name = world.only_slice_of("web").metadata.name;
        if !world.only_slice_of("web").endpoints.is_empty() {
            world.edit_slice(&name, |slice| slice["endpoints"] = json!([]));
        }
        world.advance(MILLISECOND * 50);
    }
    world.take_done().len()
}

#[test]
fn a_fight_costs_a_write_a_second() {
    assert_eq!(fight(&mut World::with_web_and_two_pods(), 10), 10);
}

#[test]
fn a_fight_costs_a_write_a_second_also_where_they_are_faster_than_the_answer() {
    // Here the watch shows the foreign write before the response to the controller's earlier own write arrives. The
    // next plan must have the same delay as after any foreign write.
    let mut world = World::with_web_and_two_pods();
    edit(|slice| slice["endpoints"] = json!([]))(&mut world);
    world.settle();
    world.writes_are(|_| Fate::Slow);
    world.advance(SECOND);
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["metadata"]["labels"]["theirs"] = json!("1"));
    world.settle();
    world.deliver_responses();
    assert_eq!(world.take_done(), [], "ours was on another version");
    assert_eq!(world.done_after(MILLISECOND * 999), []);
    world.writes_are(|_| Fate::Done);
    assert_eq!(world.done_after(MILLISECOND), [Update]);
}

/// Also rule Y6.
#[test]
fn a_pods_change_that_met_anothers_change_is_written_at_once_on_what_that_made() {
    let mut world = World::with_web_and_two_pods();
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(pod(3));
    edit(|slice| slice["endpoints"] = json!([]))(&mut world);
    world.settle();
    world.let_writes_end();
    assert_eq!(world.take_done(), [Update], "no time has passed");
    assert_eq!(world.endpoints_of("web").len(), 3);
    assert_eq!(world.done_after(SECOND * 5), []);
}

/// Also rule Y6.
#[test]
fn a_pods_change_that_always_meets_others_is_written_again_at_once_once_and_then_every_second() {
    let mut world = World::with_web_and_two_pods();
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(pod(3));
    for round in 0..4 {
        edit(|slice| slice["metadata"]["labels"]["theirs"] = json!(format!("{round}")))(&mut world);
        world.deliver_responses();
        let is_on_its_way = |world: &World| !world.flights_of("web").is_empty();
        assert_eq!(is_on_its_way(&world), round == 0, "{round}");
        world.advance(MILLISECOND * 999);
        assert_eq!(is_on_its_way(&world), round == 0, "{round}");
        world.advance(MILLISECOND);
        assert!(is_on_its_way(&world), "{round}");
    }
    assert_eq!(world.take_done(), []);
}

#[test]
fn a_fight_over_a_service_with_a_rejected_write_costs_no_more() {
    let mut world = World::with_web_and_two_pods();
    world.set(
        service("web")
            .of_families(&[endpointslice::model::ClusterIpFamily::IPv4, endpointslice::model::ClusterIpFamily::IPv6]),
    );
    world.writes_are(|write| match write.operation {
        Create => Fate::Rejected,
        _ => Fate::Done,
    });
    world.done_now();
    assert_eq!(fight(&mut world, 10), 10);
}

#[test]
fn a_batch_period_above_a_second_counts_for_changes_of_others_as_well() {
    let mut world = World::with(Config::default(), Timing { batch_period: SECOND * 4, ..Timing::default() });
    world.set(service("web"));
    world.set(pod(1));
    world.advance(SECOND * 10);
    world.take_done();
    edit(|slice| slice["endpoints"] = json!([]))(&mut world);
    assert_eq!(world.done_after(MILLISECOND * 3_999), []);
    assert_eq!(world.done_after(MILLISECOND), [Update]);
}

#[test]
fn a_pod_that_changes_does_not_wait_for_what_others_did() {
    let mut world = World::with_web_and_two_pods();
    edit(|slice| slice["endpoints"] = json!([]))(&mut world);
    world.settle();
    world.set(pod(3));
    assert_eq!(world.done_now(), [Update]);
    assert_eq!(world.endpoints_of("web").len(), 3);
}

#[test]
fn a_clock_that_goes_back_does_not_make_own_writes_anothers() {
    let mut world = World::with_web_and_two_pods();
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(pod(3));
    world.step_clock(-30_000);
    world.deliver_responses();
    assert_eq!(world.take_foreign_change(), None);
}
