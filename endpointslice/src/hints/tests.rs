//! Which hints are in charge, what they take away, and who is told.

use super::fixtures::{annotated, named, node, shown};
use super::*;
use crate::config::Config;
use crate::model::{ClusterIpFamily, Node, Phase, Pod, PodIp, ServicePort, TargetPort};
use crate::nodes::NodeZones;
use crate::plan::{Plan, PlanRequest, WriteCounts, plan_pods};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Upstream's `Test_hintsEnabled`.
#[test]
fn the_nineteen_cases_of_the_annotation() {
    let (hints, mode) = (ANNOTATION_TOPOLOGY_HINTS, ANNOTATION_TOPOLOGY_MODE);
    let cases: [(&[(&str, &str)], bool); 19] = [
        (&[], false),
        (&[("topology-hints", "enabled")], false),
        (&[(hints, "enabled")], false),
        (&[(hints, "aUto")], false),
        (&[(hints, "auto")], true),
        (&[(hints, "Auto")], true),
        (&[(hints, "disabled")], false),
        (&[(mode, "enabled")], false),
        (&[(mode, "aUto")], false),
        (&[(mode, "auto")], true),
        (&[(mode, "Auto")], true),
        (&[(mode, "disabled")], false),
        (&[(mode, "enabled")], false),
        (&[(mode, "aUto")], false),
        (&[(mode, "auto")], true),
        (&[(mode, "Auto")], true),
        (&[(mode, "disabled")], false),
        (&[(mode, "disabled"), (hints, "auto")], true),
        (&[(mode, "auto"), (hints, "disabled")], false),
    ];
    for (annotations, expected) in cases {
        let mut service = Service::default();
        service.metadata.annotations = annotations.iter().copied().collect();
        assert_eq!(is_topology_aware(&service), expected, "{annotations:?}");
    }
}

fn service() -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "testing".into();
    service.metadata.name = "foo".into();
    service.metadata.uid = "testing-foo".into();
    service.spec.selector = [("foo", "bar")].into();
    service.spec.ip_families = vec![ClusterIpFamily::IPv4];
    let (name, target_port) = ("foo".into(), TargetPort::Number(80));
    service.spec.ports = vec![ServicePort { name, target_port, ..ServicePort::default() }];
    service
}

fn pod(number: usize, node: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = "testing".into();
    pod.metadata.name = format!("pod{number}").into();
    pod.metadata.labels = [("foo", "bar")].into();
    pod.spec.node_name = node.into();
    pod.status.phase = Phase::Running;
    pod.status.readiness.is_ready = true;
    pod.status.pod_ips = vec![PodIp { ip: format!("1.2.{}.{}", number / 200, 4 + number % 200).into() }];
    pod
}

fn planned(
    service: &Service,
    pods: &[&Pod],
    nodes: &[Node],
    existing: &[Arc<EndpointSlice>],
    hints: &mut ServiceHints,
) -> Plan {
    let config = Config::default();
    let request = PlanRequest { service, existing, trigger_time: None, config: &config };
    plan_pods(&request, pods.iter().copied(), &nodes.iter().collect::<NodeZones>(), hints)
}

/// The endpoints that there will be, in the order of their slices.
fn endpoints(plan: &Plan) -> Vec<Endpoint> {
    let draft = &plan.families[0].draft;
    let updates = draft.updates.iter().map(|update| &update.after);
    let slices = draft.creates.iter().chain(updates).chain(draft.unchanged.iter().map(|slice| &**slice));
    slices.flat_map(|slice| slice.endpoints.clone()).collect()
}

/// How many endpoints have which hints, and how many of them are for a zone that is not their own.
fn distribution(plan: &Plan) -> (Vec<(String, usize)>, usize) {
    let endpoints = endpoints(plan);
    let mut counts = BTreeMap::new();
    for endpoint in &endpoints {
        *counts.entry(shown(endpoint)).or_default() += 1;
    }
    let is_foreign = |endpoint: &&Endpoint| {
        let hints = endpoint.hints.as_deref();
        hints.is_some_and(|hints| hints.for_zones.first() != endpoint.zone.as_ref())
    };
    (counts.into_iter().collect(), endpoints.iter().filter(is_foreign).count())
}

/// A slice of `service` with the endpoints of those pods, as an earlier plan made it.
fn existing(name: &str, service: &Service, pods: &[&Pod], nodes: &[Node]) -> Arc<EndpointSlice> {
    let plan = planned(service, pods, nodes, &[], &mut ServiceHints::default());
    let mut slice = plan.families[0].draft.creates[0].clone();
    slice.metadata.name = name.into();
    Arc::new(slice)
}

/// Upstream's `TestReconcileTopology`: three zones of ten Nodes with a pod each.
#[test]
fn the_five_cases_of_a_topology_aware_plan() {
    let places: Vec<_> =
        ["zone-a", "zone-b", "zone-c"].iter().flat_map(|zone| (0..10).map(move |n| (*zone, n))).collect();
    let nodes: Vec<_> = places.iter().map(|(zone, n)| named(&format!("node-{zone}-{n}"), node(zone, "100m"))).collect();
    let pods: Vec<_> = nodes.iter().enumerate().map(|(number, node)| pod(number, &node.metadata.name)).collect();
    let pick = |numbers: &[usize]| numbers.iter().map(|number| &pods[*number]).collect::<Vec<_>>();
    let (a_b, a_c, c) = (pick(&[7, 8, 16, 17, 18]), pick(&[5, 6, 25, 26]), pick(&[27, 28, 29]));
    let slice = |name: &str, pods: &[&Pod]| existing(name, &service(), pods, &nodes);
    let both = || vec![slice("zone-a-c", &a_c), slice("zone-a-b", &a_b)];
    let thirds = |count: usize| ["zone-a", "zone-b", "zone-c"].map(|zone| (zone.to_owned(), count)).to_vec();
    let none = |count: usize| vec![("-".to_owned(), count)];
    let cases = [
        ("not served", false, "auto", vec![slice("zone-c", &c)], c.clone(), none(3), 0, 0),
        ("turned on", true, "auto", vec![slice("zone-c", &c)], c.clone(), thirds(1), 2, 1),
        ("beyond the threshold", true, "auto", vec![slice("zone-a-c", &a_c)], a_c.clone(), none(4), 0, 0),
        ("two slices", true, "Auto", both(), [a_c.clone(), a_b.clone()].concat(), thirds(3), 1, 2),
        ("turned off", true, "disabled", both(), [a_c.clone(), a_b.clone()].concat(), none(9), 0, 0),
    ];
    for (name, is_served, mode, existing, pods, expected, across_zones, updates) in cases {
        let mut hints = ServiceHints { topology: is_served.then(Topology::default), ..ServiceHints::default() };
        assert_eq!(hints.set_nodes(&nodes), []);
        let mut service = service();
        service.metadata.annotations = annotated(mode).metadata.annotations;
        let plan = planned(&service, &pods, &nodes, &existing, &mut hints);
        assert_eq!(distribution(&plan), (expected, across_zones), "{name}");
        assert_eq!(plan.counts(), WriteCounts { updates, ..WriteCounts::default() }, "{name}");
    }
}

/// Upstream's `TestReconcile_TrafficDistribution`: one pod in zone a, three in b, two in c, a Node each. The two cases
/// with a feature gate that is off cannot be told apart from a value that is not known: every gate is locked on in 1.35.
#[test]
fn the_six_cases_of_a_traffic_distribution() {
    let nodes: Vec<_> = ["a", "b", "c"]
        .iter()
        .enumerate()
        .map(|(at, zone)| named(&format!("node-{at}"), node(&format!("zone-{zone}"), "100m")))
        .collect();
    let pods: Vec<_> =
        [0, 1, 1, 1, 2, 2].iter().enumerate().map(|(number, node)| pod(number, &format!("node-{node}"))).collect();
    let pods: Vec<_> = pods.iter().collect();
    type Case<'a> = (&'a str, Option<&'a str>, &'a str, &'a [(&'a str, usize)], usize);
    let cases: [Case<'_>; 6] = [
        ("PreferClose", Some("PreferClose"), "Disabled", &[("zone-a", 1), ("zone-b", 3), ("zone-c", 2)], 0),
        ("a value that is not known", Some("PreferFar"), "Disabled", &[("-", 6)], 0),
        ("the annotation wins", Some("PreferClose"), "Auto", &[("zone-a", 2), ("zone-b", 2), ("zone-c", 2)], 1),
        ("neither", None, "", &[("-", 6)], 0),
        (
            "PreferSameNode",
            Some("PreferSameNode"),
            "Disabled",
            &[("zone-a@node-0", 1), ("zone-b@node-1", 3), ("zone-c@node-2", 2)],
            0,
        ),
        ("PreferSameZone", Some("PreferSameZone"), "Disabled", &[("zone-a", 1), ("zone-b", 3), ("zone-c", 2)], 0),
    ];
    for (name, traffic_distribution, mode, expected, across_zones) in cases {
        let mut hints = ServiceHints::new();
        assert_eq!(hints.set_nodes(&nodes), []);
        let mut service = service();
        service.spec.traffic_distribution = traffic_distribution.map(Into::into);
        service.metadata.annotations = annotated(mode).metadata.annotations;
        let plan = planned(&service, &pods, &nodes, &[], &mut hints);
        let expected: Vec<_> = expected.iter().map(|(hint, count)| ((*hint).to_owned(), *count)).collect();
        assert_eq!(distribution(&plan), (expected, across_zones), "{name}");
        assert_eq!(plan.counts(), WriteCounts { creates: 1, ..WriteCounts::default() }, "{name}");
    }
}

#[test]
fn hints_of_a_service_that_asks_for_none_are_removed_once() {
    let nodes = [named("node-0", node("zone-a", "1"))];
    let pod = pod(0, "node-0");
    let mut asking = service();
    asking.spec.traffic_distribution = Some("PreferSameNode".into());
    let mut hints = ServiceHints::new();
    let plan = planned(&asking, &[&pod], &nodes, &[], &mut hints);
    let mut stored = plan.families[0].draft.creates[0].clone();
    stored.metadata.name = "foo-1".into();

    let plan = planned(&asking, &[&pod], &nodes, &[Arc::new(stored.clone())], &mut hints);
    assert!(plan.is_empty());
    let plan = planned(&service(), &[&pod], &nodes, &[Arc::new(stored)], &mut hints);
    assert_eq!(plan.counts(), WriteCounts { updates: 1, ..WriteCounts::default() });
    let stripped = Arc::new(plan.families[0].draft.updates[0].after.clone());
    assert!(planned(&service(), &[&pod], &nodes, &[stripped], &mut hints).is_empty());
}

#[test]
fn turning_the_annotation_off_gives_way_to_the_traffic_distribution_and_is_told_once() {
    let nodes = [named("node-0", node("zone-a", "1")), named("node-1", node("zone-b", "1"))];
    let pods = [pod(0, "node-0"), pod(1, "node-0")];
    let pods: Vec<_> = pods.iter().collect();
    let mut hints = ServiceHints::new();
    assert_eq!(hints.set_nodes(&nodes), []);
    let mut service = service();
    service.spec.traffic_distribution = Some("PreferSameZone".into());
    service.metadata.annotations.insert(ANNOTATION_TOPOLOGY_MODE, "Auto");
    assert!(!hints.is_local(&service));
    let plan = planned(&service, &pods, &nodes, &[], &mut hints);
    assert_eq!(distribution(&plan), (vec![("zone-a".to_owned(), 1), ("zone-b".to_owned(), 1)], 1));
    service.metadata.annotations.remove(ANNOTATION_TOPOLOGY_MODE);
    assert!(hints.is_local(&service));
    for _ in 0..2 {
        let plan = planned(&service, &pods, &nodes, &[], &mut hints);
        assert_eq!(distribution(&plan), (vec![("zone-a".to_owned(), 2)], 0));
    }
    let changes: Vec<_> = hints.take_events().into_iter().map(|event| event.change).collect();
    assert_eq!(changes, [HintChange::Enabled, HintChange::TurnedOff]);
}
