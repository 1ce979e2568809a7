//! Tests of malformed objects: the controller uses their valid parts, and still publishes the endpoints of other
//! objects.

use super::builders::{
    Build as _, BuildPod as _, BuildService as _, BuildSlice as _, named_port, node, pod, port, service, slice,
};
use super::world::{Fate, SECOND, World};
use crate::Operation::{Create, Delete, Update};
use endpointslice::model::ClusterIpFamily::{self, IPv4, IPv6};
use endpointslice::model::{Pod, Service};
use serde_json::json;

/// Checks the published endpoints of a dual-stack Service. Its pods are pod 1, which is valid, and the pod `bad`.
#[track_caller]
fn check(bad: Pod, expected: &[&str]) {
    let mut world = World::new();
    world.set(service("web").of_families(&[IPv4, IPv6]));
    world.set_all_and_settle([pod(1), bad]);
    let all: Vec<_> = ["pod1 10.1.0.1 ready serving"].iter().chain(expected).copied().collect();
    let mut found = world.endpoints_of("web");
    found.sort_by_key(|line| line.starts_with("IPv6"));
    assert_eq!(found, all);
    assert_eq!(world.take_done(), [Create, Create], "nothing is rejected or retried");
    world.set(pod(3));
    assert_eq!(world.done_now(), [Update], "and the next pod is not held up");
    world.restart();
    assert_eq!(world.done_after(SECOND), []);
}

#[test]
fn a_pod_without_an_address_is_left_out() {
    check(pod(2).with_ips(&[]), &[]);
    let mut singular = pod(2).with_ips(&[]);
    singular.status.pod_ip = "10.1.0.2".into();
    check(singular, &[]);
    check(pod(2).with_ips(&[""]), &[]);
}

#[test]
fn the_good_addresses_of_a_pod_are_published_without_the_bad_ones() {
    check(pod(2).with_ips(&["127.0.0.1", "2001:db8:0::2"]), &["IPv6 pod2 2001:db8::2 ready serving"]);
    check(pod(2).with_ips(&["<nil>", "10.1.0.2", "10.1.0.22"]), &["pod2 10.1.0.2,10.1.0.22 ready serving"]);
    check(pod(2).with_ips(&["::ffff:10.1.0.2"]), &["pod2 10.1.0.2 ready serving"]);
    check(pod(2).with_ips(&["010.001.000.002"]), &["pod2 10.1.0.2 ready serving"]);
}

#[test]
fn a_node_that_goes_takes_its_pods_along_and_brings_them_back() {
    let mut world = World::new();
    world.set(node("node-2", "", ""));
    world.set(service("web"));
    world.set_all_and_settle([pod(1), pod(2).on_node("node-2")]);
    world.remove_node("node-2");
    world.settle();
    assert_eq!(world.endpoints_of("web"), ["pod1 10.1.0.1 ready serving"]);
    world.set_and_settle(node("node-2", "", ""));
    assert_eq!(world.endpoints_of("web").len(), 2);
}

#[test]
fn a_selector_that_changes_under_way_takes_the_other_pods() {
    let mut world = World::new();
    world.set_all([pod(1), pod(2).labelled([("foo", "other")])]);
    world.set_and_settle(service("web"));
    world.writes_are(|_| Fate::Slow);
    world.set_and_settle(service("web").selecting([("foo", "other")]));
    world.set_and_settle(service("web").selecting([("foo", "nobody")]));
    world.set(service("web").selecting([("foo", "other")]));
    world.let_writes_end();
    assert_eq!(world.endpoints_of("web"), ["pod2 10.1.0.2 ready serving"]);
    world.set(service("web").selecting([]));
    world.set_and_settle(pod(2).labelled([("foo", "other")]).not_ready());
    assert_eq!(world.endpoints_of("web"), ["pod2 10.1.0.2 ready serving"], "whoever takes it over finds it as it was");
    world.set_and_settle(service("web"));
    assert_eq!(world.endpoints_of("web"), ["pod1 10.1.0.1 ready serving"]);
}

/// Changes a Service to `other` and back. Returns the endpoints published for `other`, and the endpoints at the end.
fn there_and_back(other: Service) -> (Vec<String>, Vec<String>) {
    let mut world = World::new();
    world.set(pod(1).with_ips(&["10.1.0.1", "2001:db8::1"]).opening("http", 8080));
    world.set_and_settle(service("web"));
    world.set(other);
    world.advance(SECOND * 3);
    let there = world.endpoints_of("web");
    world.set(service("web"));
    world.advance(SECOND * 3);
    world.take_done();
    world.restart();
    assert_eq!(world.done_after(SECOND * 3), [], "it is settled");
    (there, world.endpoints_of("web"))
}

#[test]
fn a_service_that_changes_its_type_family_or_ports_and_back_is_as_it_was() {
    const V4: &str = "pod1 10.1.0.1 ready serving";
    const V6: &str = "IPv6 pod1 2001:db8::1 ready serving";
    let there = |other: Service| {
        let (there, back) = there_and_back(other);
        assert_eq!(back, [V4]);
        there
    };
    assert_eq!(there(service("web").external_name()), [V4], "its slices stay");
    assert_eq!(there(service("web").headless()), [V4]);
    assert_eq!(there(service("web").of_families(&[IPv6])), [V6]);
    assert_eq!(there(service("web").of_families(&[IPv6, IPv4])), [V6, V4]);
    assert_eq!(there(service("web").of_families(&[ClusterIpFamily::Other])), [V4], "that of its address");
    assert_eq!(there(service("web").serving(vec![])), [V4]);
    assert_eq!(there(service("web").serving(vec![named_port("web", "http")])), [V4]);
    assert_eq!(there(service("web").serving(vec![named_port("web", "nobody")])), [V4], "with no ports");
    assert_eq!(there(service("web").serving(vec![port("a", 0), port("a", -5)])), [V4]);
}

#[test]
fn a_service_that_changes_everything_while_its_writes_are_under_way_ends_as_it_is() {
    let mut world = World::new();
    world.set_all((1..=5).map(|number| pod(number).with_ips(&["10.1.0.9", "2001:db8::1"])));
    world.writes_are(|_| Fate::Slow);
    let states = [
        service("web"),
        service("web").of_families(&[IPv6]),
        service("web").external_name(),
        service("web").serving(vec![port("web", 81)]),
        service("web").selecting([]),
        service("web").of_families(&[IPv6]).serving(vec![port("web", 82)]),
    ];
    for service in states {
        world.set_and_settle(service);
    }
    world.let_writes_end();
    world.advance(SECOND * 3);
    let slice = world.only_slice_of("web");
    assert_eq!((slice.address_type.as_str(), slice.endpoints.len(), slice.ports[0].port), ("IPv6", 5, Some(82)));
}

#[test]
fn slices_that_were_spoiled_by_hand_are_put_right() {
    let spoil: [fn(&mut World, &str); 7] = [
        |world, name| world.delete_slice(name),
        |world, name| world.edit_slice(name, |slice| slice["endpoints"] = json!(null)),
        |world, name| world.edit_slice(name, |slice| slice["ports"] = json!(null)),
        |world, name| world.edit_slice(name, |slice| slice["endpoints"][0]["addresses"] = json!(["192.0.2.1"])),
        |world, name| world.edit_slice(name, |slice| slice["endpoints"][0]["targetRef"] = json!(null)),
        |world, name| {
            world.edit_slice(name, |slice| {
                let first = slice["endpoints"][0].clone();
                slice["endpoints"].as_array_mut().expect("a list").push(first);
            });
        },
        |world, name| world.edit_slice(name, |slice| slice["metadata"]["labels"]["extra"] = json!("x")),
    ];
    for restarts in [false, true] {
        for (number, spoil) in spoil.iter().enumerate() {
            let mut world = World::with_web_and_two_pods();
            let name = world.only_slice_of("web").metadata.name;
            spoil(&mut world, &name);
            if restarts {
                world.restart();
            }
            world.advance(SECOND);
            assert!(!world.take_done().is_empty(), "{number}");
            let expected = ["pod1 10.1.0.1 ready serving", "pod2 10.1.0.2 ready serving"];
            assert_eq!(world.endpoints_of("web"), expected, "{number}");
            let slice = world.only_slice_of("web");
            assert_eq!((slice.ports.len(), slice.metadata.labels.get("extra")), (1, None), "{number}");
        }
    }
}

#[test]
fn slices_of_unheard_of_address_types_go_when_all_else_is_done() {
    let mut world = World::new();
    let web = service("web");
    world.make_slice(&slice("web-fqdn", &web).of_type("FQDN"));
    world.set_all([pod(1), pod(2)]);
    world.set(web);
    assert_eq!(world.done_now(), [Create, Delete]);
    assert_eq!(world.endpoints_of("web").len(), 2);
}

#[test]
fn a_pod_that_is_recreated_under_its_name_stays_in_its_place() {
    let mut world = World::with_web_and_two_pods();
    world.remove_pod("pod1");
    world.set(pod(1).with_uid("another"));
    assert_eq!(world.done_now(), [Update]);
    let slice = world.only_slice_of("web");
    let uids: Vec<_> =
        slice.endpoints.iter().map(|it| it.target_ref.as_ref().expect("a pod").uid.to_string()).collect();
    assert_eq!(uids, ["another", "uid-of-pod2"]);
}

#[test]
fn a_service_that_is_recreated_under_its_name_gets_slices_of_its_own() {
    let mut world = World::with_web_and_two_pods();
    for round in 0..3 {
        world.remove_service("web");
        world.set(service("web").with_uid(&format!("web-{round}")));
        assert_eq!(world.done_now(), [Create, Delete], "the garbage collector has not come by yet");
        assert_eq!(world.endpoints_of("web").len(), 2);
    }
    // At last, the garbage collector deletes the slice before a new Service of the same name appears.
    world.remove_service("web");
    world.delete_slice(&world.only_slice_of("web").metadata.name);
    world.set_and_settle(service("web").with_uid("the-last"));
    assert_eq!(world.endpoints_of("web").len(), 2);
    world.advance(SECOND * 60);
    assert_eq!(world.slices_of("web").len(), 1);
}
