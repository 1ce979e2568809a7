//! Tests of the controller's start, of restarts of the process, and of times in which the controller is inactive.

use super::builders::{
    Build as _, BuildPod as _, BuildService as _, BuildSlice as _, NAMESPACE, node, pod, service, slice,
};
use super::world::{MILLISECOND, NOON, SECOND, World};
use crate::Operation::Update;
use crate::controller::CacheSizes;
use crate::{Controller, Input, SliceWrite, Timing};
use endpointslice::Config;
use endpointslice::model::ClusterIpFamily::{IPv4, IPv6};
use fleetnet_runtime::{Verb, WatchState};
use fleetnet_types::ObjectName;
use serde_json::json;

/// Returns a controller without an engine that has listed a Node, the pods 1 and 2, and the Service of the returned
/// name.
pub(super) fn listed() -> (Controller, ObjectName) {
    let mut controller = filled();
    Input::ALL.iter().for_each(|input| controller.watch_state(*input, WatchState::Complete, &mut Vec::new()));
    (controller, ObjectName::new(NAMESPACE, "web"))
}

/// Returns a controller as [`listed`] does, before the lists are complete.
fn filled() -> Controller {
    let mut controller = Controller::new(Config::default(), Timing::default(), None);
    controller.begin_run(true);
    let objects = [node("node-1", "", "").into(), pod(1).into(), pod(2).into(), service("web").into()];
    objects.into_iter().for_each(|object| controller.apply(object, NOON, &mut Vec::new()));
    controller
}

/// Returns the number of endpoints in each slice that the controller makes.
fn made(controller: &Controller) -> Vec<usize> {
    let writes = controller.plan(&ObjectName::new(NAMESPACE, "web"), NOON).writes;
    let made = |write: SliceWrite| match write.verb {
        Verb::Create { body } => body["endpoints"].as_array().map_or(0, Vec::len),
        other => panic!("no slice is there: {other:?}"),
    };
    writes.into_iter().map(made).collect()
}

#[test]
fn nothing_is_written_before_all_four_inputs_are_known() {
    for last in Input::ALL {
        let mut controller = filled();
        for input in Input::ALL.into_iter().filter(|input| *input != last) {
            controller.watch_state(input, WatchState::Complete, &mut Vec::new());
        }
        assert!(!controller.is_ready() && made(&controller).is_empty(), "{last:?} is not known");
        let mut requeue = Vec::new();
        controller.watch_state(last, WatchState::Complete, &mut requeue);
        assert_eq!((requeue.len(), made(&controller)), (1, vec![2]), "{last:?} came last");
    }
}

/// Also rule Y5.
#[test]
fn while_an_input_is_not_known_any_more_nothing_is_written_and_then_everything_is_caught_up_with() {
    let (mut controller, web) = listed();
    for (number, input) in [Input::Service, Input::EndpointSlice, Input::Pod].into_iter().enumerate() {
        controller.watch_state(input, WatchState::Unknown, &mut Vec::new());
        controller.apply(pod(number + 3).into(), NOON, &mut Vec::new());
        assert!(made(&controller).is_empty(), "{input:?}");
        let mut requeue = Vec::new();
        controller.watch_state(input, WatchState::Complete, &mut requeue);
        assert_eq!((requeue, made(&controller)), (vec![web.clone()], vec![number + 3]), "{input:?}");
    }
}

/// Also rule Y5.
#[test]
fn nodes_that_are_not_served_any_more_hold_as_they_were_and_pods_on_them_go_on() {
    let (mut controller, _) = listed();
    controller.watch_state(Input::Node, WatchState::Unknown, &mut Vec::new());
    controller.apply(pod(2).on_node("node-2").into(), NOON, &mut Vec::new());
    assert_eq!(made(&controller), [1], "a pod on a Node that is not known waits for it");
    controller.apply(node("node-2", "", "").into(), NOON, &mut Vec::new());
    controller.watch_state(Input::Node, WatchState::Complete, &mut Vec::new());
    assert_eq!(made(&controller), [2]);
}

#[test]
fn an_undecodable_slice_has_a_name_that_a_new_slice_does_not_get() {
    let (mut controller, web) = listed();
    let name = |controller: &Controller| controller.plan(&web, NOON).writes[0].name.clone();
    let first = name(&controller);
    controller.undecodable(Input::EndpointSlice, NAMESPACE, &first, NOON, &mut Vec::new());
    assert_ne!(name(&controller), first);
}

/// Returns a cluster with a variety of Services, pods and Nodes.
fn varied() -> World {
    let mut world = World::with(Config::default().with_max_endpoints_per_slice(4).unwrap(), Timing::default());
    world.set_all([node("node-2", "zone-b", "4"), node("node-3", "zone-c", "4")]);
    world.set(service("web").of_families(&[IPv4, IPv6]).preferring("PreferSameZone"));
    world.set(service("empty").selecting([("foo", "nobody")]).headless());
    world.set(service("auto").annotated("service.kubernetes.io/topology-mode", "Auto"));
    world.set(service("named").serving(vec![super::builders::named_port("http", "http")]));
    for number in 0..12 {
        let address = format!("10.1.0.{}", 1 + number);
        let pod = pod(number).on_node(["node-2", "node-3"][number % 2]).with_ips(&[&address, "2001:db8::7"]);
        world.set(if number % 3 == 0 { pod } else { pod.opening("http", 8080) });
    }
    world.advance(SECOND * 2);
    assert!(world.take_done().len() > 8);
    world
}

#[test]
fn a_restart_in_a_settled_cluster_writes_nothing() {
    let mut world = varied();
    world.restart();
    assert_eq!(world.done_after(SECOND * 60), []);
    assert_eq!(world.take_foreign_change(), None, "what is listed was not changed by anybody");
}

#[test]
fn slices_of_kube_controller_manager_are_taken_over_as_they_are() {
    let mut world = World::new();
    let web = service("web");
    let theirs = slice("web-abcde", &web).holding([&pod(1), &pod(2).not_ready()]);
    world.make_slice(&theirs);
    world.set(web);
    world.set_all([pod(1), pod(2).not_ready()]);
    world.restart();
    assert_eq!(world.done_after(SECOND * 60), []);
}

#[test]
fn what_happened_while_nobody_was_there_is_caught_up_with_at_once() {
    let mut world = varied();
    let mut restart_after = |change: fn(&mut World)| {
        world.restart();
        world.serve(false);
        change(&mut world);
        world.restart();
        world.serve(true);
        world.settle();
        !world.take_done().is_empty()
    };
    assert!(restart_after(|world| world.set(pod(3).on_node("node-2").not_ready())));
    assert!(restart_after(|world| world.remove_pod("pod4")));
    assert!(restart_after(|world| world.delete_slice(&world.slices_of("web")[0].metadata.name.clone())));
    assert!(restart_after(|world| {
        let name = world.slices_of("named")[0].metadata.name.to_string();
        world.edit_slice(&name, |slice| slice["endpoints"] = json!([]));
    }));
    assert!(!restart_after(|_| {}));
}

#[test]
fn a_slice_that_is_deleted_by_hand_right_after_a_restart_comes_back_too() {
    let mut world = varied();
    world.restart();
    world.settle();
    let before = world.endpoints_of("web");
    world.delete_slice(&world.slices_of("web")[0].metadata.name.clone());
    world.advance(SECOND);
    assert!(!world.take_done().is_empty());
    assert_eq!(world.endpoints_of("web"), before);
}

#[test]
fn who_does_not_serve_plans_nothing_and_leaves_slices_as_they_are() {
    let mut world = varied();
    world.serve(false);
    let (plans, slices) = (world.seen.lock().plans, world.slices());
    world.set(pod(20));
    world.remove_pod("pod1");
    world.set_and_settle(node("node-9", "zone-a", ""));
    let requeued_services = world.seen.lock().plans - plans;
    assert_eq!(requeued_services, 0, "nothing is looked at");
    world.set(service("late"));
    world.advance(SECOND * 5);
    assert_eq!((world.take_done(), world.slices()), (vec![], slices));
}

#[test]
fn who_does_not_serve_holds_nothing_of_the_cluster_but_which_slices_were_seen() {
    let mut world = varied();
    let cached = |world: &World| world.seen.lock().cache_sizes;
    let slices = world.slices().len();
    assert_eq!(cached(&world), CacheSizes { services: 4, slices, pods: 12, nodes: 3, seen: slices, in_progress: 4 });
    let nothing = CacheSizes { seen: slices, ..CacheSizes::default() };
    world.serve(false);
    assert_eq!(cached(&world), nothing);
    assert_eq!(world.metric("endpoints_desired"), Some(0.0));
    world.set(service("late"));
    let name = world.slices_of("web")[0].metadata.name.to_string();
    world.edit_slice(&name, |slice| slice["endpoints"] = json!([]));
    world.restart();
    world.advance(SECOND * 5);
    assert_eq!(cached(&world), nothing, "nor what it learns meanwhile, or from its beginning");
}

/// Rule Y5: The agent has not completely listed an input of the EndpointSlice controller: Services, slices, pods or
/// Nodes
/// Then: The member agent's EndpointSlice controller plans no slices. Exception: if the watch of Nodes is lost, the
/// controller uses the known Nodes. While the controller is inactive, the agent watches only the Lease and the metadata
/// of slices for it. The controller lists its inputs from the beginning each time that it becomes active or inactive. A
/// slice that another writer changed in between counts as a change by another writer
#[test]
fn a_controller_that_serves_again_relists_before_it_plans() {
    let (mut controller, _) = listed();
    controller.begin_run(false);
    controller.begin_run(true);
    assert!(!controller.is_ready(), "pods are known to be complete, but not what they are");
    let mut requeue = Vec::new();
    Input::ALL.iter().for_each(|input| controller.watch_state(*input, WatchState::Complete, &mut requeue));
    assert!(controller.is_ready() && requeue.is_empty(), "the Service is not listed yet");
}

#[test]
fn who_serves_again_catches_up_and_has_forgotten_nothing_of_services_and_slices() {
    let mut world = varied();
    world.serve(false);
    world.settle();
    world.serve(true);
    assert_eq!(world.done_now(), [], "nothing happened");
    world.serve(false);
    world.remove_pod("pod1");
    world.set(pod(2).on_node("node-2").not_ready());
    let name = world.slices_of("auto")[0].metadata.name.to_string();
    world.delete_slice(&name);
    world.settle();
    assert_eq!(world.done_after(SECOND * 5), []);
    world.serve(true);
    world.settle();
    assert!(!world.take_done().is_empty());
    let web = world.endpoints_of("web").join("; ");
    assert!(!web.contains("pod1 ") && !web.contains("pod2 10.1.0.2 ready"), "{web}");
}

#[test]
fn nodes_that_went_while_nobody_looked_are_not_there_any_more() {
    let mut world = World::new();
    world.set(node("node-2", "zone-b", ""));
    world.set(service("web"));
    world.set_all_and_settle([pod(1), pod(2).on_node("node-2")]);
    world.serve(false);
    world.remove_node("node-2");
    world.serve(true);
    world.settle();
    assert_eq!(world.endpoints_of("web"), ["pod1 10.1.0.1 ready serving"]);
}

#[test]
fn a_wait_does_not_outlast_the_end_of_serving() {
    let mut world = World::with(Config::default(), Timing { batch_period: SECOND * 10, ..Timing::default() });
    world.set(service("web"));
    world.done_now();
    world.set(pod(1));
    world.advance(SECOND);
    world.serve(false);
    world.serve(true);
    assert_eq!(world.done_now(), [Update], "whoever begins to serve looks at everything at once");
    assert_eq!(world.done_after(MILLISECOND * 9_000), []);
}
