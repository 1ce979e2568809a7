//! Tests of one sync of a Service: the slices after the sync, and slices that the sync does not write.

use super::builders::{
    Build as _, BuildPod as _, BuildService as _, BuildSlice as _, CREATED, pod, port, service, slice,
};
use super::world::World;
use crate::Operation::{Create, Delete, Update};
use endpointslice::model::ClusterIpFamily::{IPv4, IPv6};
use endpointslice::names::{ANNOTATION_TRIGGER_TIME, CONTROLLER_NAME, LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use serde_json::json;

#[test]
fn a_service_without_pods_gets_a_placeholder_that_tells_when_it_was_made() {
    let mut world = World::new();
    world.set(service("web"));
    assert_eq!(world.done_now(), [Create]);
    let slice = world.only_slice_of("web");
    assert_eq!((slice.endpoints.len(), slice.ports.len()), (0, 0));
    assert_eq!(slice.metadata.annotations.get(ANNOTATION_TRIGGER_TIME).map(|it| it.as_str()), Some(CREATED));
}

#[test]
fn a_service_without_a_selector_is_left_alone() {
    let mut world = World::new();
    world.set(service("web").selecting([]));
    world.set(pod(1));
    assert_eq!(world.done_now(), []);
}

#[test]
fn an_external_name_is_left_alone_whatever_it_selects_and_serves() {
    for is_selecting in [true, false] {
        for ports in [vec![port("http", 8080)], Vec::new()] {
            let mut service = service("web").external_name().serving(ports);
            if !is_selecting {
                service = service.selecting([]);
            }
            let mut world = World::new();
            world.set(pod(1));
            world.set(service.clone());
            assert_eq!(world.done_now(), [], "{service:?}");
        }
    }
}

#[test]
fn slices_of_a_service_that_is_being_deleted_are_kept_up_to_date_and_none_is_made() {
    let mut world = World::with_web_and_two_pods();
    world.set(service("web").terminating());
    world.remove_pod("pod1");
    assert_eq!(world.done_now(), [Update]);
    assert_eq!(world.endpoints_of("web"), ["pod2 10.1.0.2 ready serving"]);
    world.set_all((3..=120).map(pod));
    assert_eq!(world.done_now(), [Update], "what does not fit waits for a Service that stays");
    assert_eq!(world.slices_of("web").len(), 1);
}

#[test]
fn a_service_that_is_gone_is_forgotten_and_others_are_not() {
    let mut world = World::new();
    world.set_all([service("web"), service("shop")]);
    world.done_now();
    world.remove_service("web");
    world.set(pod(1).changed_at("2026-03-01T00:00:00Z"));
    assert_eq!(world.done_now(), [Update], "of the shop");
    let when = |world: &World, service: &str| {
        let slices = world.slices_of(service);
        slices[0].metadata.annotations.get(ANNOTATION_TRIGGER_TIME).map(ToString::to_string)
    };
    assert_eq!(when(&world, "shop").as_deref(), Some("2026-03-01T00:00:00Z"), "the shop is known");
    // Delete the slice of `web`, and then create the Service again. The controller has forgotten the earlier Service
    // and its changes, so the trigger time is the creation time of the Service.
    world.delete_slice(&world.slices_of("web")[0].metadata.name.clone());
    world.settle();
    world.set_and_settle(service("web"));
    assert_eq!(when(&world, "web").as_deref(), Some(CREATED), "web was forgotten");
}

#[test]
fn only_pods_that_the_selector_matches_are_endpoints() {
    let mut world = World::new();
    world.set_all([pod(1), pod(2).labelled([("foo", "boo")]), pod(3).in_namespace("elsewhere")]);
    world.set(service("web"));
    assert_eq!(world.done_now(), [Create]);
    let slice = world.only_slice_of("web");
    let [endpoint] = &slice.endpoints[..] else { panic!("{slice:?}") };
    let target = serde_json::to_value(endpoint.target_ref.as_deref()).expect("it can be written");
    assert_eq!(target, json!({"kind": "Pod", "namespace": "testing", "name": "pod1", "uid": "uid-of-pod1"}));
}

#[test]
fn a_slice_that_is_being_deleted_is_neither_used_nor_replaced_where_none_is_needed() {
    let mut world = World::with_web();
    let mut ending = slice("web-ending", &service("web")).without_ports().terminating();
    ending.metadata.finalizers = vec!["example.com/held".into()];
    world.make_slice(&ending);
    assert_eq!(world.done_after(super::world::SECOND * 5), []);
}

#[test]
fn slices_of_others_and_of_other_services_are_no_business_of_ours() {
    let mut world = World::new();
    let web = service("web").headless();
    let labels = [(LABEL_SERVICE_NAME, "web"), (LABEL_MANAGED_BY, CONTROLLER_NAME)];
    let of = |name: &str| slice(name, &web).without_ports().labelled(labels);
    world.make_slice(&of("matching-1"));
    world.make_slice(&of("matching-2"));
    world.make_slice(&of("not-matching-1").with_label(LABEL_SERVICE_NAME, "something-else"));
    world.make_slice(&of("not-matching-2").with_label(LABEL_MANAGED_BY, "something-else"));
    world.make_slice(&of("not-matching-3").labelled([(LABEL_SERVICE_NAME, "web")]));
    world.settle();
    let others_before: Vec<_> = world.slices().into_iter().skip(2).collect();
    world.set(web);
    assert_eq!(world.done_now(), [Update, Delete]);
    assert_eq!(world.only_slice_of("web").endpoints, []);
    let others: Vec<_> = world.slices().into_iter().skip(1).collect();
    assert_eq!(others, others_before);
}

#[test]
fn of_two_placeholders_one_goes_and_the_other_is_not_written() {
    let mut world = World::new();
    let web = service("web");
    world.make_slice(&slice("web-1", &web).without_ports());
    world.make_slice(&slice("web-2", &web).without_ports());
    world.set(web);
    assert_eq!(world.done_now(), [Delete]);
    assert_eq!(world.only_slice_of("web").metadata.name, "web-1");
}

#[test]
fn a_dual_stack_service_has_slices_of_both_families_also_where_pods_have_one() {
    let mut world = World::new();
    world.set(service("web").of_families(&[IPv4, IPv6]));
    world.set_all([pod(1), pod(2).with_ips(&["10.1.0.2", "2001:db8::2"])]);
    assert_eq!(world.done_now(), [Create, Create]);
    let expected =
        ["IPv6 pod2 2001:db8::2 ready serving", "pod1 10.1.0.1 ready serving", "pod2 10.1.0.2 ready serving"];
    assert_eq!(world.endpoints_of("web"), expected);
    world.set_and_settle(pod(2));
    let types: Vec<_> = world.slices_of("web").iter().map(|slice| slice.address_type.to_string()).collect();
    assert!(types.contains(&"IPv4".to_owned()) && types.contains(&"IPv6".to_owned()), "{types:?}");
}

#[test]
fn an_own_write_is_seen_with_its_answer_so_that_news_right_after_it_lose_no_time() {
    let mut world = World::new();
    world.pause_watch(true);
    world.set_and_settle(service("web"));
    for number in 1..=10 {
        world.set_and_settle(pod(number));
    }
    assert_eq!(world.endpoints_of("web").len(), 10, "and no time has passed");
    assert_eq!(world.take_done().len(), 11);
    world.pause_watch(false);
    assert_eq!(world.done_after(super::world::SECOND * 10), [], "the echoes of the watch are no news");
}
