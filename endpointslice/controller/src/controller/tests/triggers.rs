//! Tests of the changes that cause a plan of a Service, and of the changes that do not.

use super::builders::{Build as _, BuildPod as _, BuildService as _, BuildSlice as _, node, pod, service, slice};
use super::world::{MILLISECOND, SECOND, World};
use crate::Operation::{Create, Update};
use endpointslice::model::{Node, Phase, Pod, Service};
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use serde_json::json;

/// Returns a settled cluster: Service web (selector foo=bar) with pods 1 and 2, Service shop (foo=shop) with pod 3.
fn world() -> World {
    let mut world = World::new();
    world.set_all([service("web"), service("shop").selecting([("foo", "shop")])]);
    world.set_all([pod(1), pod(2), pod(3).labelled([("foo", "shop")])]);
    world.done_now();
    world
}

/// Changes pod 1 to this state. Returns the Services that the controller plans because of the change.
fn planned_after(pod: Pod) -> Vec<String> {
    let mut world = world();
    world.set(pod);
    world.requeue()
}

#[test]
fn a_pod_that_comes_or_goes_touches_the_services_that_select_it_and_no_others() {
    let mut world = world();
    world.set(pod(4));
    assert_eq!(world.requeue(), ["web"]);
    world.settle();
    world.remove_pod("pod3");
    assert_eq!(world.requeue(), ["shop"]);
    world.settle();
    world.set(pod(5).labelled([("foo", "nobody")]));
    assert!(world.requeue().is_empty());
    world.remove_pod("pod5");
    world.remove_pod("never-there");
    assert!(world.requeue().is_empty());
}

#[test]
fn an_endpoint_that_changes_touches_its_services() {
    assert_eq!(planned_after(pod(1).not_ready()), ["web"], "readiness");
    assert_eq!(planned_after(pod(1).terminating()), ["web"], "deletion");
    assert_eq!(planned_after(pod(1).with_ips(&["10.1.0.99"])), ["web"], "its address");
    assert_eq!(planned_after(pod(1).with_ips(&["10.1.0.1", "2001:db8::1"])), ["web"], "a second address");
    assert_eq!(planned_after(pod(1).in_phase(Phase::Failed)), ["web"], "its end");
}

#[test]
fn what_else_changes_about_a_pod_touches_nothing() {
    assert!(planned_after(pod(1)).is_empty(), "nothing");
    assert!(planned_after(pod(1).changed_at("2026-03-01T00:00:00Z")).is_empty(), "a time alone");
    assert!(planned_after(pod(1).in_phase(Phase::Pending)).is_empty(), "a phase that it does not end in");
    assert!(planned_after(pod(1).annotated("a", "b")).is_empty(), "annotations");
    assert!(planned_after(pod(1).with_label("other", "x")).is_empty(), "a label that nobody selects by");
}

#[test]
fn a_pod_that_changes_sides_touches_both_services_and_one_that_changes_beside_it_all_that_have_it() {
    assert_eq!(planned_after(pod(1).labelled([("foo", "shop")])), ["shop", "web"]);
    assert_eq!(planned_after(pod(1).labelled([("foo", "shop")]).not_ready()), ["shop", "web"]);
    let mut world = world();
    world.set_and_settle(pod(2).labelled([("foo", "shop")]));
    assert_eq!((world.endpoints_of("web").len(), world.endpoints_of("shop").len()), (1, 2));
    world.set(service("all").selecting([("tier", "front")]));
    world.set_and_settle(pod(1).with_label("tier", "front"));
    world.set(pod(1).with_label("tier", "back"));
    assert_eq!(world.requeue(), ["all"], "labels alone: where it comes or goes");
    world.settle();
    world.set(pod(1).with_label("tier", "front").not_ready());
    assert_eq!(world.requeue(), ["all", "web"], "labels and readiness: wherever it is");
}

#[test]
fn a_pod_that_was_to_wait_for_its_node_is_published_when_it_gets_one() {
    let mut world = world();
    world.set_and_settle(pod(4).on_node(""));
    assert_eq!(world.endpoints_of("web").len(), 2);
    world.set_and_settle(pod(4));
    assert_eq!(world.endpoints_of("web").len(), 3);
}

#[test]
fn a_pod_without_an_address_that_gets_a_node_touches_nothing() {
    let mut world = world();
    world.set_and_settle(pod(4).on_node("").with_ips(&[]));
    world.set(pod(4).with_ips(&[]));
    assert!(world.requeue().is_empty());
}

#[test]
fn a_node_that_comes_touches_the_services_that_wait_for_it() {
    let mut world = world();
    world.set_and_settle(pod(4).on_node("node-2"));
    assert_eq!(world.endpoints_of("web").len(), 2);
    world.set(node("node-2", "", ""));
    assert_eq!(world.requeue(), ["web"]);
    world.settle();
    assert_eq!(world.endpoints_of("web").len(), 3);
}

#[test]
fn a_node_touches_services_by_its_zone_and_by_coming_and_going_only() {
    let touched_after = |node: Option<Node>| {
        let mut world = world();
        match node {
            Some(node) => world.set(node),
            None => world.remove_node("node-1"),
        }
        world.requeue()
    };
    let unready = |mut node: Node| {
        node.status.readiness.is_ready = false;
        node
    };
    assert_eq!(touched_after(Some(node("node-1", "zone-a", ""))), ["shop", "web"]);
    assert_eq!(touched_after(None), ["shop", "web"]);
    assert!(touched_after(Some(node("node-1", "", "8"))).is_empty(), "nobody has hints by processors");
    assert!(touched_after(Some(unready(node("node-1", "", "")))).is_empty());
    assert!(touched_after(Some(node("node-9", "", ""))).is_empty(), "nothing runs there");
}

#[test]
fn a_zone_that_changes_is_published() {
    let mut world = world();
    world.set(node("node-1", "zone-b", ""));
    assert_eq!(world.done_now(), [Update, Update]);
    let zones = world.slices_of("web")[0].endpoints.iter().map(|endpoint| endpoint.zone.clone()).collect::<Vec<_>>();
    assert_eq!(zones, [Some("zone-b".into()), Some("zone-b".into())]);
}

/// Rule Y11: A Service or a slice changes in a field that plans read
/// Then: The member agent's EndpointSlice controller plans the Service. Examples of fields that plans read are the
/// labels of the Service and the owner of a slice
#[test]
fn what_plans_read_of_a_service_touches_it_and_what_else_changes_does_not() {
    let touched_after = |service: Service| {
        let mut world = world();
        world.set(service);
        !world.requeue().is_empty()
    };
    let later = |mut service: Service| {
        service.metadata.resource_version = "99".into();
        service
    };
    assert!(!touched_after(later(service("web"))), "status and versions");
    assert!(touched_after(service("web").annotated("a", "b")));
    assert!(touched_after(service("web").labelled([("a", "b")])));
    assert!(touched_after(service("web").terminating()));
    assert!(touched_after(service("web").preferring("PreferSameZone")));
    assert!(touched_after(service("web").with_uid("another")));
}

/// Rule Y6: Another writer changes slices while the EndpointSlice controller is active
/// Then: The member agent's EndpointSlice controller plans the Service of these slices a second later. The controller
/// may also write a slice because a pod changed. If such a write conflicts (409) with the other writer's change, the
/// controller retries once without a wait, then every second
#[test]
fn a_slice_that_others_change_is_put_right_after_a_second() {
    let mut world = world();
    let name = world.only_slice_of("web").metadata.name;
    let right = world.endpoints_of("web");
    world.edit_slice(&name, |slice| slice["endpoints"] = json!([]));
    assert_eq!(world.done_after(MILLISECOND * 999), []);
    assert_eq!(world.done_after(MILLISECOND), [Update]);
    assert_eq!(world.endpoints_of("web"), right);
}

#[test]
fn a_slice_that_others_delete_comes_back_after_a_second() {
    let mut world = world();
    let (name, right) = (world.only_slice_of("web").metadata.name, world.endpoints_of("web"));
    world.delete_slice(&name);
    assert_eq!(world.done_after(MILLISECOND * 999), []);
    assert_eq!(world.done_after(MILLISECOND), [Create]);
    assert_eq!(world.endpoints_of("web"), right);
}

#[test]
fn a_slice_that_becomes_anothers_is_replaced_and_one_that_becomes_ours_is_put_right() {
    let mut world = world();
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["metadata"]["labels"][LABEL_MANAGED_BY] = json!("me"));
    assert_eq!(world.done_after(SECOND), [Create]);
    assert_eq!(world.endpoints_of("web").len(), 2);
    assert_ne!(world.only_slice_of("web").metadata.name, name);
    let foreign = slice("web-foreign", &service("web")).holding([&pod(9)]).with_label(LABEL_MANAGED_BY, "me");
    world.make_slice(&foreign);
    assert_eq!(world.done_after(SECOND * 3), []);
    world.edit_slice("web-foreign", |slice| {
        slice["metadata"]["labels"][LABEL_MANAGED_BY] = json!("endpointslice-controller.k8s.io");
    });
    assert_eq!(world.done_after(SECOND * 3), [crate::Operation::Delete], "its pod is none");
}

#[test]
fn a_slice_that_changes_its_service_touches_both() {
    let mut world = world();
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["metadata"]["labels"][LABEL_SERVICE_NAME] = json!("shop"));
    world.settle();
    world.advance(SECOND);
    assert_eq!(world.endpoints_of("web").len(), 2);
    assert_eq!(world.endpoints_of("shop").len(), 1, "and what belongs to another Service is gone");
}

#[test]
fn a_slice_of_ours_without_a_service_is_left_alone() {
    let mut world = world();
    let mut nameless = slice("nameless", &service("web")).holding([&pod(9)]);
    nameless.metadata.labels.remove(LABEL_SERVICE_NAME);
    world.make_slice(&nameless);
    assert_eq!(world.done_after(SECOND * 3), []);
    world.edit_slice("nameless", |slice| slice["metadata"]["labels"][LABEL_SERVICE_NAME] = json!("web"));
    assert_eq!(world.done_after(SECOND * 3), [crate::Operation::Delete]);
}

#[test]
fn remarks_of_others_on_a_slice_are_no_news() {
    let mut world = world();
    let plans = world.seen.lock().plans;
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["metadata"]["annotations"]["example.com/seen"] = json!("7"));
    world.advance(SECOND * 3);
    assert_eq!((world.take_done(), world.seen.lock().plans), (vec![], plans));
    // The next write must succeed at once and keep the foreign annotation. So its precondition must be the
    // resourceVersion after the foreign write, although the foreign write caused no plan.
    world.set(pod(1).not_ready());
    assert_eq!(world.done_now(), [Update]);
    let annotations = world.only_slice_of("web").metadata.annotations;
    assert_eq!(annotations.get("example.com/seen").map(|it| it.as_str()), Some("7"));
}

/// Also rule Y11.
#[test]
fn a_slice_that_no_longer_goes_with_its_service_is_replaced() {
    let mut world = world();
    let name = world.only_slice_of("web").metadata.name;
    world.edit_slice(&name, |slice| slice["metadata"]["ownerReferences"] = json!([]));
    assert_eq!(world.done_after(SECOND), [Create, crate::Operation::Delete]);
    assert_eq!(world.endpoints_of("web").len(), 2);
}
