//! Tests of pods and Nodes that are undecodable when the controller becomes active. These objects exist, so none of
//! their endpoints is removed.

use super::builders::{Build as _, BuildPod as _, BuildService as _, named_port, node, pod, port, service};
use super::world::{SECOND, World};
use crate::Operation::{Create, Update};
use endpointslice::Config;
use endpointslice::model::ClusterIpFamily::{IPv4, IPv6};

const ALL: [&str; 3] = ["pod1 10.1.0.1 ready serving", "pod2 10.1.0.2 ready serving", "pod3 10.1.0.3 ready serving"];

/// Returns a settled cluster in which the agent has restarted while the object with this name is undecodable. The
/// object becomes decodable when a test applies it again.
fn world(undecodable: &'static str) -> World {
    let mut world = World::with(Config::default().with_max_endpoints_per_slice(2).unwrap(), Default::default());
    world.set(node("node-2", "zone-b", ""));
    world.set_all([service("web"), service("api").serving(vec![named_port("api", "http")])]);
    world.set_all((1..=3).map(|number| pod(number).opening("http", 8080)));
    world.set(pod(3).on_node("node-2").opening("http", 8080));
    world.done_now();
    world.make_undecodable(undecodable);
    world.restart();
    world.advance(SECOND * 60);
    world
}

/// Rule Y10: A pod or a Node is undecodable when the EndpointSlice controller becomes active
/// Then: The endpoints of an undecodable pod stay in the slices. The endpoints of pods on an undecodable Node keep the
/// zone that the slices show
#[test]
fn the_endpoints_of_a_pod_that_cannot_be_decoded_stay_until_it_is_decodable_or_gone() {
    let mut world = world("pod2");
    assert_eq!(world.take_done(), []);
    assert_eq!(world.endpoints_of("web"), ALL);
    assert_eq!(world.endpoints_of("api"), ALL);
    let mut repaired = pod(2).not_ready().opening("http", 8080);
    repaired.metadata.labels = [("foo", "bar")].into_iter().collect();
    world.set_and_settle(repaired);
    assert_eq!(world.endpoints_of("web")[1], "pod2 10.1.0.2");
    assert_eq!(world.endpoints_of("api")[1], "pod2 10.1.0.2");
}

#[test]
fn one_that_is_gone_or_turns_out_to_be_no_pod_of_theirs_takes_its_endpoints_along() {
    let mut gone = world("pod2");
    gone.remove_pod_and_settle("pod2");
    assert_eq!(gone.endpoints_of("web"), [ALL[0], ALL[2]]);
    let mut moved = world("pod2");
    moved.set_and_settle(pod(2).labelled([("foo", "other")]));
    assert_eq!(moved.endpoints_of("web"), [ALL[0], ALL[2]]);
    assert_eq!(moved.endpoints_of("api"), [ALL[0], ALL[2]]);
}

#[test]
fn all_else_of_its_services_goes_on_meanwhile() {
    let mut world = world("pod2");
    world.remove_pod("pod1");
    world.set(pod(3).on_node("node-2").not_ready().opening("http", 8080));
    world.set_and_settle(pod(4).opening("http", 8080));
    assert_eq!(world.endpoints_of("web"), [ALL[1], "pod3 10.1.0.3", "pod4 10.1.0.4 ready serving"]);
    world.set(service("other"));
    world.set_and_settle(service("web").serving(vec![port("web", 81)]).labelled([("team", "a")]));
    assert_eq!(world.endpoints_of("web").len(), 3, "its own with the ports of before");
    assert_eq!(
        world.endpoints_of("other"),
        ["pod3 10.1.0.3", "pod4 10.1.0.4 ready serving"],
        "it is in no slice of this"
    );
    world.set(pod(2).opening("http", 8080));
    world.take_done();
    world.restart();
    world.advance(SECOND);
    let ports: Vec<_> = world.slices_of("web").iter().map(|slice| slice.ports[0].port).collect();
    assert!(ports.iter().all(|port| *port == Some(81)), "{ports:?}");
    assert_eq!(world.endpoints_of("other").len(), 3);
}

/// Also rule Y5.
#[test]
fn both_endpoints_of_a_pod_of_two_families_stay() {
    let mut world = World::new();
    world.set(service("web").of_families(&[IPv6, IPv4]));
    world.set(pod(1).with_ips(&["10.1.0.1", "2001:db8::1"]));
    assert_eq!(world.done_now(), [Create, Create]);
    world.make_undecodable("pod1");
    world.restart();
    world.advance(SECOND * 60);
    assert_eq!((world.take_done(), world.endpoints_of("web").len()), (vec![], 2));
}

/// Also rule Y10.
#[test]
fn the_pods_of_a_node_that_cannot_be_decoded_stay_published_in_its_zone() {
    let mut world = world("node-2");
    assert_eq!(world.take_done(), []);
    assert_eq!(world.endpoints_of("web"), ALL);
    let zones = |world: &World| {
        let endpoints = world.slices_of("web").into_iter().flat_map(|slice| slice.endpoints);
        endpoints.filter_map(|endpoint| Some(endpoint.zone?.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(zones(&world), ["zone-b"]);
    world.set_and_settle(pod(4).on_node("node-2").opening("http", 8080));
    assert_eq!((world.take_done().len(), zones(&world).len()), (2, 2), "and its new ones come");
    world.set_and_settle(node("node-2", "zone-c", ""));
    assert_eq!(zones(&world), ["zone-c", "zone-c"]);
    world.remove_node("node-2");
    world.settle();
    assert_eq!(world.endpoints_of("web"), ALL[..2]);
}

#[test]
fn a_pod_that_cannot_be_decoded_and_was_never_published_keeps_nobody_waiting() {
    let mut world = world("pod4");
    world.set(pod(4));
    world.make_undecodable("pod4");
    world.restart();
    world.set(pod(1).not_ready().opening("http", 8080));
    assert_eq!(world.done_after(SECOND), [Update, Update], "one of each Service");
    assert_eq!(world.endpoints_of("web"), ["pod1 10.1.0.1", ALL[1], ALL[2]]);
}
