//! Tests of names and labels of slices, and of address types of Services.

use crate::builders::BuildSlice as _;
use crate::builders::{BuildService as _, planned_labels, pods, service, slice};
use crate::world::world;
use endpointslice::address::Family;
use endpointslice::model::{AddressType, EndpointSlice, Service};
use endpointslice::plan::families;
use endpointslice::{Config, SliceTemplate, TextMap};

const NAME: &str = "kubernetes.io/service-name";
const MANAGER: &str = "endpointslice.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
const OURS: &str = "endpointslice-controller.k8s.io";

fn with_well_known(extra: &[(&str, &str)]) -> TextMap {
    [(NAME, "web"), (MANAGER, OURS)].iter().chain(extra).map(|&(key, value)| (key, value)).collect()
}

fn with_address() -> Service {
    service("web").with_cluster_ip("10.0.0.10")
}

#[test]
fn a_new_slice_names_its_service_and_manager() {
    let config = Config::default();
    let check = |service: &Service, labels: &[(&str, &str)]| {
        let made = SliceTemplate::new(service, &config).slice(AddressType::IPv4, &[].into());
        assert_eq!(made.metadata.labels, with_well_known(labels));
        assert_eq!(
            (&*made.metadata.generate_name, &*made.metadata.namespace, &*made.metadata.name),
            ("web-", "testing", "")
        );
        assert!(made.endpoints.is_empty() && made.metadata.annotations.is_empty());
        let owner = serde_json::to_value(&made.metadata.owner_references).unwrap();
        assert_eq!(
            owner,
            serde_json::json!([{
                "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "testing-web",
                "controller": true, "blockOwnerDeletion": true,
            }])
        );
    };
    check(&with_address(), &[]);
    check(&with_address().with_labels([("foo", "bar")]), &[("foo", "bar")]);
    check(&service("web").with_labels([("foo", "bar")]), &[("foo", "bar"), (HEADLESS, "")]);
    check(&with_address().with_labels([("foo", "bar"), ("bar", "baz")]), &[("foo", "bar"), ("bar", "baz")]);
    check(&with_address().with_labels([("foo", "bar"), (NAME, "bad"), (MANAGER, "bad")]), &[("foo", "bar")]);
    let mut annotated = with_address();
    annotated.metadata.annotations.insert("foo", "bar");
    check(&annotated, &[]);
}

/// Asserts that a slice with the labels `before` should have the labels `expected`. `written` is true if the plan must
/// write the slice because of its labels.
fn check(service: Service, before: &[(&str, &str)], expected: &[(&str, &str)], written: bool) {
    let mut existing: EndpointSlice = slice(1, &service).with_pods(&pods(0..1));
    existing.metadata.labels = with_well_known(before);
    let config = Config::default();
    let template = SliceTemplate::new(&service, &config);
    assert_eq!(template.labels_for(&existing), with_well_known(expected));
    assert_eq!(template.labels_differ(&existing), written, "{before:?}");
    assert_eq!(planned_labels(&service, existing), written.then(|| with_well_known(expected)));
}

/// Also rule Z12.
#[test]
fn a_slice_is_written_for_labels_of_the_service_but_not_for_the_reserved_ones() {
    let headless = || service("web");
    check(with_address(), &[], &[], false);
    check(headless().with_labels([("foo", "bar")]), &[], &[("foo", "bar"), (HEADLESS, "")], true);
    check(headless(), &[], &[(HEADLESS, "")], false);
    check(with_address().with_labels([(HEADLESS, "")]), &[], &[], false);
    check(with_address(), &[(HEADLESS, "")], &[], false);
    check(with_address().with_labels([(HEADLESS, "")]), &[(HEADLESS, "")], &[], false);
    check(headless().with_labels([("foo", "bar")]), &[("foo", "bar")], &[("foo", "bar"), (HEADLESS, "")], false);
    check(with_address().with_labels([("foo", "bar")]), &[], &[("foo", "bar")], true);
    check(with_address().with_labels([("foo", "bar")]), &[("foo", "bar"), ("extra", "1")], &[("foo", "bar")], true);
    check(with_address(), &[("extra", "1"), (HEADLESS, "")], &[], true);
    check(with_address().with_labels([("foo", "baz")]), &[("foo", "bar")], &[("foo", "baz")], true);
    check(with_address().with_labels([(NAME, "x"), (MANAGER, "y")]), &[], &[], false);
    check(with_address().with_labels([(NAME, "x"), ("foo", "bar")]), &[], &[("foo", "bar")], true);
}

/// Here any write corrects the headless label. kube-controller-manager does not correct the labels of a slice that only
/// gets more endpoints.
#[test]
fn a_stale_headless_label_goes_with_the_next_write() {
    let stale = slice(1, &with_address()).with_pods(&pods(0..1)).with_label(HEADLESS, "");
    let mut world = world(pods(0..1)).with_service(with_address()).with_slices([stale]);
    assert_eq!(world.reconcile().writes(), [0, 0, 0], "it is worth no write of its own");
    world.pods = pods(0..2);
    assert_eq!(world.reconcile().writes(), [0, 1, 0]);
    assert_eq!(world.memory.slices()[0].metadata.labels, with_well_known(&[]));
}

/// Also rule Z12.
#[test]
fn labels_that_others_may_add_are_kept() {
    let mut config = Config::default();
    config.foreign_labels = ["team".into()].into();
    let service = with_address().with_labels([("foo", "bar")]);
    let existing = slice(1, &service).with_label("team", "x");
    let template = SliceTemplate::new(&service, &config);
    assert!(!template.labels_differ(&existing));
    assert_eq!(template.labels_for(&existing), with_well_known(&[("foo", "bar"), ("team", "x")]));
}

/// Rule Z11: A Service declares no address family and has no cluster IP
/// Then: The library makes slices of both address families
#[test]
fn the_address_types_of_a_service_come_from_its_families_or_its_address() {
    use Family::{V4, V6};
    let check = |declared: &[Family], cluster_ip: &str, expected: &[Family]| {
        let service = service("web").with_families(declared).with_cluster_ip(cluster_ip);
        assert_eq!(families(&service), expected);
        assert_eq!(families(&service.without_selector()), expected);
    };
    check(&[], "10.0.0.10", &[V4]);
    check(&[], "2001::1", &[V6]);
    check(&[V4], "10.0.0.10", &[V4]);
    check(&[V6], "2001::1", &[V6]);
    check(&[V4, V6], "10.0.0.10", &[V4, V6]);
    check(&[V6, V4], "2001::1", &[V6, V4]);
    check(&[], "None", &[V4, V6]);
    check(&[], "", &[V4, V6]);
    check(&[V4], "None", &[V4]);
    check(&[V4, V6], "None", &[V4, V6]);
}
