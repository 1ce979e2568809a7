//! Tests of the phases of a plan (creates, then updates, then deletes): what a failed write delays, and how a plan
//! ends.

use super::builders::{Build as _, BuildPod as _, BuildService as _, BuildSlice as _, pod, port, service, slice};
use super::world::{Fate, SECOND, World, Write};
use crate::Operation::{Create, Delete, Update};
use crate::{Operation, Timing};
use endpointslice::Config;
use endpointslice::model::ClusterIpFamily::{IPv4, IPv6};
use endpointslice::model::Service;

fn config(max: usize) -> Config {
    Config::default().with_max_endpoints_per_slice(max).expect("a limit of a test")
}

/// Returns a cluster with a settled Service of this number of pods, in slices of at most `max` endpoints.
fn settled(pods: usize, max: usize) -> World {
    let mut world = World::with(config(max), Timing::default());
    world.set(service("web"));
    world.set_all((0..pods).map(pod));
    world.done_now();
    world
}

fn is(operation: Operation) -> impl Fn(&Write) -> bool + Send {
    move |write| write.operation == operation
}

/// Returns a cluster with a Service that was deleted and recreated with the same name. The controller deletes the
/// slices of the deleted Service after it has written the slices of the new Service.
fn recreated() -> World {
    let mut world = World::new();
    world.make_slice(&slice("web-old", &service("web")).holding([&pod(1), &pod(2)]).owned_by("an-earlier-one"));
    world.set_all([pod(1), pod(2)]);
    world.set(service("web"));
    world.restart();
    world
}

#[test]
fn slices_are_made_before_others_are_changed_and_changed_before_others_go() {
    let mut world = recreated();
    assert_eq!(world.done_now(), [Create, Delete]);
    let mut world = settled(10, 1);
    world.set(service("web").serving(vec![port("web", 81), port("other", 82)]));
    world.remove_pod("pod0");
    world.remove_pod_and_settle("pod1");
    let done = world.take_done();
    assert_eq!(done[..8], [Update; 8], "the slices of eight pods are used again");
    assert_eq!(done[8..], [Delete; 2]);
}

/// Rule Y7: A plan creates, updates and deletes slices
/// Then: The member agent's EndpointSlice controller first creates, then updates, then deletes slices, at most 32 at a
/// time. If the Service lost an address type, the controller deletes the slices of this type last. Metadata of other
/// writers stays on the slices
#[test]
fn nothing_is_changed_or_removed_before_every_new_slice_stands() {
    let mut world = recreated();
    world.writes_are(|write| if is(Create)(write) { Fate::Failed } else { Fate::Done });
    assert_eq!(world.done_after(SECOND * 5), []);
    assert_eq!(world.endpoints_of("web").len(), 2, "those of the earlier one");
    world.writes_are(|_| Fate::Done);
    assert_eq!(world.done_after(SECOND * 60), [Create, Delete]);
}

#[test]
fn one_new_slice_of_several_that_fails_holds_up_what_would_go() {
    let mut world = World::with(config(1), Timing::default());
    world.make_slice(&slice("web-old", &service("web")).holding([&pod(1), &pod(2)]).owned_by("an-earlier-one"));
    world.set_all([pod(1), pod(2)]);
    world.set(service("web"));
    let mut first = true;
    world.writes_are(move |_| if std::mem::take(&mut first) { Fate::Failed } else { Fate::Done });
    assert_eq!(world.done_now(), [Create], "one of two");
    assert_eq!(world.done_after(SECOND * 60), [Create, Delete]);
}

/// Also rule Y7.
#[test]
fn nothing_is_removed_before_every_changed_slice_is_as_it_should_be() {
    let mut world = settled(10, 1);
    world.writes_are(|write| if is(Update)(write) { Fate::Failed } else { Fate::Done });
    world.set(service("web").serving(vec![port("web", 81)]));
    world.remove_pod("pod0");
    assert_eq!(world.done_after(SECOND * 5), []);
    world.writes_are(|_| Fate::Done);
    world.advance(SECOND * 60);
    let done = world.take_done();
    assert_eq!((done.len(), done.last()), (10, Some(&Delete)), "{done:?}");
}

/// Also rule Y7.
#[test]
fn slices_of_a_dropped_family_go_when_the_other_slices_are_written() {
    let both = || service("web").of_families(&[IPv4]);
    let mut world = World::new();
    world.set(both());
    world.set_all([pod(1), pod(2)]);
    world.done_now();
    world.writes_are(|write| if is(Create)(write) { Fate::Failed } else { Fate::Done });
    world.set(service("web").of_families(&[IPv6]));
    assert_eq!(world.done_after(SECOND * 5), []);
    assert_eq!(world.endpoints_of("web").len(), 2);
    world.writes_are(|_| Fate::Done);
    assert_eq!(world.done_after(SECOND * 60), [Create, Delete]);
    assert_eq!(world.only_slice_of("web").address_type.as_str(), "IPv6");
}

#[test]
fn a_family_that_fails_does_not_hold_up_the_other() {
    let mut world = World::new();
    world.writes_are(|write| if is_ipv6(write) { Fate::Failed } else { Fate::Done });
    world.set(service("web").of_families(&[IPv4, IPv6]));
    world.set(pod(1));
    assert_eq!(world.done_after(SECOND), [Create]);
    world.set(pod(2));
    assert_eq!(world.done_now(), [Update]);
    assert_eq!(world.endpoints_of("web").len(), 2);
}

fn is_ipv6(write: &Write) -> bool {
    write.operation == Create && write.body["addressType"] == "IPv6"
}

/// Loses the responses to creates of slices, then calls `again`, which makes this process or a restarted process retry.
/// Checks that the retry finds the created slices and creates no others.
fn check_lost_answers(again: impl Fn(&mut World)) {
    let mut world = World::with(config(2), Timing::default());
    world.pause_watch(true);
    world.writes_are(|_| Fate::Unanswered);
    world.set(service("web"));
    world.set_all((0..5).map(pod));
    assert_eq!(world.done_now(), [Create; 3]);
    again(&mut world);
    assert_eq!(world.take_done(), []);
    assert_eq!((world.slices_of("web").len(), world.endpoints_of("web").len()), (3, 5));
}

#[test]
fn a_create_whose_answer_is_lost_is_not_made_twice() {
    check_lost_answers(|world| {
        world.writes_are(|_| Fate::Done);
        world.advance(SECOND * 10);
        world.pause_watch(false);
        world.advance(SECOND * 10);
    });
    check_lost_answers(World::restart);
}

#[test]
fn a_lost_answer_to_an_update_or_a_delete_does_no_harm() {
    let mut world = settled(10, 1);
    world.writes_are(|_| Fate::Unanswered);
    world.pause_watch(true);
    world.set(service("web").serving(vec![port("web", 81)]));
    world.remove_pod_and_settle("pod0");
    world.writes_are(|_| Fate::Done);
    world.advance(SECOND * 10);
    world.pause_watch(false);
    world.advance(SECOND * 10);
    assert_eq!(world.endpoints_of("web").len(), 9);
    assert_eq!(world.take_done().iter().filter(|operation| **operation == Delete).count(), 1);
    assert_eq!(world.done_after(SECOND * 60), []);
}

#[test]
fn a_name_that_others_have_taken_is_passed_over() {
    let names_of = |before: &dyn Fn(&mut World)| {
        let mut world = World::new();
        before(&mut world);
        world.set(service("web"));
        world.advance(SECOND * 3);
        let slices = world.slices().into_iter();
        let ours = slices.filter(|slice| slice.metadata.owner_references.len() == 1);
        ours.map(|slice| slice.metadata.name.to_string()).collect::<Vec<_>>()
    };
    let first = names_of(&|_| {});
    let foreign = |name: &str| {
        let mut foreign = slice(name, &service("web")).labelled([]);
        foreign.metadata.owner_references.clear();
        foreign
    };
    let known = names_of(&|world| {
        world.make_slice(&foreign(&first[0]));
        world.settle();
    });
    assert_eq!(known.len(), 1);
    assert_ne!(known, first);
    let unseen = names_of(&|world| {
        world.pause_watch(true);
        world.make_slice(&foreign(&first[0]));
    });
    assert_eq!(unseen, known, "the conflict tells of it");
}

#[test]
fn names_look_as_if_the_api_server_had_chosen_them_and_differ_by_service_family_and_incarnation() {
    let mut world = World::new();
    world.set_all_and_settle([service("web").of_families(&[IPv4, IPv6]), service("shop")]);
    let names: std::collections::BTreeSet<_> =
        world.slices().iter().map(|slice| slice.metadata.name.to_string()).collect();
    assert_eq!(names.len(), 3);
    let is_chosen = |name: &String| {
        let ending = name.strip_prefix("web-").or_else(|| name.strip_prefix("shop-")).unwrap_or_default();
        ending.len() == 5 && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    assert!(names.iter().all(is_chosen), "{names:?}");
    let mut again = World::new();
    again.set_and_settle(service("shop").with_uid("another"));
    assert!(!names.contains(again.only_slice_of("shop").metadata.name.as_str()), "a recreated one has other names");
}

#[test]
fn a_conflict_of_a_foreign_annotation_is_planned_again_at_once() {
    let mut world = settled(2, 10);
    let name = world.only_slice_of("web").metadata.name;
    world.pause_watch(true);
    world.edit_slice(&name, |slice| slice["metadata"]["annotations"]["example.com/seen"] = "1".into());
    world.set(pod(3));
    assert_eq!(world.done_now(), [Update], "no time has passed");
    assert_eq!(world.endpoints_of("web").len(), 3);
    let annotations = world.only_slice_of("web").metadata.annotations;
    assert!(annotations.contains_key("example.com/seen"));
}

#[test]
fn a_pod_that_flaps_while_a_write_is_under_way_ends_as_it_is() {
    use super::builders::BuildPod as _;
    let mut world = settled(2, 10);
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(pod(1).not_ready());
    world.set_and_settle(pod(1));
    world.let_writes_end();
    assert_eq!(world.take_done(), [Update, Update], "no time has passed");
    assert_eq!(world.endpoints_of("web"), ["pod0 10.1.0.0 ready serving", "pod1 10.1.0.1 ready serving"]);
    assert_eq!(world.take_foreign_change(), None, "it was our own doing");
}

#[test]
fn a_service_whose_ports_change_is_never_without_slices_and_uses_them_again() {
    let mut world = settled(300, 30);
    assert_eq!(world.slices_of("web").len(), 10);
    world.config = config(100);
    world.restart();
    assert_eq!(world.done_now(), [], "a limit that changes is no reason to write");
    world.set_and_settle(service("web").serving(vec![port("web", 81)]));
    let done = world.take_done();
    assert_eq!((&done[..3], &done[3..]), (&[Update; 3][..], &[Delete; 7][..]));
    let lengths: Vec<_> = world.slices_of("web").iter().map(|slice| slice.endpoints.len()).collect();
    assert_eq!(lengths, [100, 100, 100]);
}

/// Also rule Y7.
#[test]
fn slices_that_are_used_again_keep_what_others_wrote_on_them() {
    let mut world = settled(2, 10);
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| {
        slice["metadata"]["annotations"]["example.com/export"] = "web-xyz".into();
        slice["metadata"]["finalizers"] = serde_json::json!(["example.com/exported"]);
    });
    world.settle();
    world.set(service("web").serving(vec![port("web", 81)]));
    assert_eq!(world.done_now(), [Update]);
    let slice = world.only_slice_of("web");
    assert_eq!((&slice.metadata.name, slice.metadata.finalizers.len()), (&name, 1));
    assert!(slice.metadata.annotations.contains_key("example.com/export"));
}

#[test]
fn a_slice_that_a_finalizer_holds_is_not_deleted_again_and_again() {
    let mut world = recreated();
    world.edit_slice("web-old", |slice| slice["metadata"]["finalizers"] = serde_json::json!(["example.com/held"]));
    assert_eq!(world.done_now(), [Create, Delete]);
    assert_eq!(world.done_after(SECOND * 10), []);
    assert_eq!(world.take_foreign_change(), None, "that it lingers is our own doing");
}

#[test]
fn a_service_that_goes_while_its_writes_are_under_way_leaves_nothing_to_do() {
    let gone_under_way = |service: Service| {
        let mut world = settled(2, 10);
        world.take_foreign_change();
        world.writes_are(|_| Fate::Slow);
        world.set(service);
        world.set_and_settle(pod(3));
        world.remove_service("web");
        world.let_writes_end();
        world.advance(SECOND * 5);
        (world.take_done().len(), world.take_foreign_change())
    };
    assert_eq!(gone_under_way(service("web")), (1, None));
    assert_eq!(gone_under_way(service("web").terminating()), (1, None));
}

/// Also rule Y7.
#[test]
fn a_service_of_many_slices_is_written_32_at_a_time() {
    let mut world = World::with(config(1), Timing::default());
    world.set_all((0..100).map(pod));
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(service("web"));
    assert_eq!(world.seen.lock().most_writes, 32);
    world.let_writes_end();
    assert_eq!(world.take_done(), [Create; 100]);
    world.set(service("web").serving(vec![port("http", 81)]));
    assert_eq!(world.done_now(), [Update; 100]);
}

/// Removes all pods of one of two slices. Then changes one pod of the other slice during each write, `rounds` times.
/// Returns the operations of all writes, and the number of slices at the end.
fn churning(rounds: usize, fate: impl Fn(&Write) -> Fate + Send + 'static) -> (Vec<Operation>, usize) {
    let mut world = settled(10, 8);
    world.writes_are(fate);
    world.remove_pod("pod8");
    world.remove_pod("pod9");
    world.set_and_settle(pod(0).not_ready());
    for round in 1..=rounds {
        world.set_and_settle(pod(round).not_ready());
        world.deliver_responses();
    }
    (world.take_done(), world.slices_of("web").len())
}

#[test]
fn deletes_go_also_where_pods_change_faster_than_writes_land() {
    let (done, slices) = churning(3, |_| Fate::Slow);
    assert_eq!(done.iter().filter(|operation| **operation == Delete).count(), 1, "{done:?}");
    assert_eq!(slices, 1);
}

/// Also rule Y7.
#[test]
fn where_pods_change_all_the_time_a_change_that_fails_still_holds_up_deletes() {
    let fate = |write: &Write| if write.operation == Update { Fate::Failed } else { Fate::Slow };
    let (done, slices) = churning(3, fate);
    assert_eq!((done, slices), (vec![], 2));
}
