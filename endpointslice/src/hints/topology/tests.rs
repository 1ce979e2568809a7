//! Test tables of kube-controller-manager for topology hints, and tests of changed Nodes.

use super::super::fixtures::{annotated, draft, hinted, in_zone, node, nodes, shown_draft, unready, with_readiness};
use super::*;
use crate::model::ClusterIpFamily;

const ENABLED: &str = "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4";
const NO_NODES: &str = "Warning TopologyAwareHintsDisabled Insufficient Node information: allocatable CPU or zone not \
                        specified on one or more nodes, addressType: IPv4";

fn with_nodes(nodes: &[Node]) -> Topology {
    let mut topology = Topology::default();
    assert_eq!(topology.set_nodes(nodes), []);
    topology
}

fn events(topology: &mut Topology) -> Vec<String> {
    let shown = |event: HintEvent| format!("{} {} {}", event.severity().as_str(), event.reason(), event.message());
    topology.take_events().into_iter().map(shown).collect()
}

fn counted(topology: &Topology) -> Option<Vec<(&str, usize)>> {
    match topology.services.get("ns", "svc")?.get(&AddressType::IPv4)? {
        State::Hinted(counts) => Some(counts.iter().map(|(zone, count)| (zone.as_str(), *count)).collect()),
        State::Unavailable(_) => None,
    }
}

fn svc() -> ServiceName {
    ServiceName { namespace: "ns".into(), name: "svc".into() }
}

fn ready(zones: &[&str]) -> Vec<Endpoint> {
    zones.iter().map(|zone| in_zone(zone)).collect()
}

/// Cases of kube-controller-manager's `TestAddHints`. Columns: name, CPU of each zone, draft, resulting hints, number
/// of endpoints hinted to each zone, event.
#[test]
fn the_six_cases_of_upstream() {
    let two = || vec![ready(&["zone-a", "zone-b"])];
    let mixed = vec![
        in_zone("zone-a"),
        in_zone("zone-b"),
        with_readiness(Some(false), in_zone("zone-b")),
        with_readiness(None, in_zone("zone-b")),
    ];
    let ten = draft(
        vec![ready(&["zone-a", "zone-b"]), ready(&["zone-c", "zone-c", "zone-a"])],
        vec![ready(&["zone-a", "zone-a"]), ready(&["zone-b", "zone-c", "zone-a"])],
        vec![],
    );
    let uneven = &[("zone-a", 450), ("zone-b", 550)][..];
    let too_few = "Warning TopologyAwareHintsDisabled Insufficient number of endpoints (2 endpoints, 3 zones), \
                   addressType: IPv4";
    type Case<'a> = (&'a str, &'a [(&'a str, u32)], Draft, [&'a [&'a str]; 3], Option<Vec<(&'a str, usize)>>, &'a str);
    let cases: [Case<'_>; 6] = [
        ("no slice, no node", &[], draft(vec![], vec![], vec![]), [&[], &[], &[]], None, NO_NODES),
        ("no node", &[], draft(vec![ready(&["zone-a"])], vec![], vec![]), [&["-"], &[], &[]], None, NO_NODES),
        (
            "fewer endpoints than zones",
            &[("zone-a", 300), ("zone-b", 400), ("zone-c", 300)],
            draft(two(), vec![], vec![]),
            [&["- -"], &[], &[]],
            None,
            too_few,
        ),
        (
            "an endpoint for each zone",
            uneven,
            draft(two(), vec![], vec![]),
            [&["zone-a zone-b"], &[], &[]],
            Some(vec![("zone-a", 1), ("zone-b", 1)]),
            ENABLED,
        ),
        (
            "endpoints that are not ready",
            uneven,
            draft(vec![mixed], vec![], vec![]),
            [&["zone-a zone-b - -"], &[], &[]],
            Some(vec![("zone-a", 1), ("zone-b", 1)]),
            ENABLED,
        ),
        (
            "one endpoint too many in a zone",
            &[("zone-a", 350), ("zone-b", 350), ("zone-c", 300)],
            ten,
            [&["zone-b zone-b", "zone-c zone-c zone-a"], &["zone-a zone-a", "zone-b zone-c zone-a"], &[]],
            Some(vec![("zone-a", 4), ("zone-b", 3), ("zone-c", 3)]),
            ENABLED,
        ),
    ];
    for (name, milli_by_zone, mut draft, expected, counts, event) in cases {
        let mut topology = with_nodes(&nodes(milli_by_zone));
        topology.assign(&annotated("Auto"), &mut draft);
        assert_eq!(shown_draft(&draft), expected, "{name}");
        assert_eq!(counted(&topology), counts, "{name}");
        assert_eq!(events(&mut topology), [event], "{name}");
    }
}

/// Cases of kube-controller-manager's `Test_getTotalReadyEndpoints`. Columns: pairs of ready and other endpoints in
/// created, updated and unchanged slices; total number of ready endpoints.
///
/// Also rule Z13.
#[test]
fn the_five_cases_of_counting_ready_endpoints() {
    type Slices<'a> = &'a [(usize, usize)];
    let cases: [([Slices<'_>; 3], usize); 5] = [
        ([&[], &[], &[]], 0),
        ([&[(0, 0)], &[], &[]], 0),
        ([&[(15, 0), (8, 0)], &[], &[]], 23),
        ([&[(15, 0), (8, 0)], &[(2, 0)], &[(100, 0), (90, 0)]], 215),
        ([&[(15, 3), (5, 4)], &[(3, 8)], &[(98, 2), (90, 6)]], 211),
    ];
    let endpoints = |&(are_ready, are_not): &(usize, usize)| {
        let not_ready = with_readiness(Some(false), in_zone("zone-a"));
        [vec![in_zone("zone-a"); are_ready], vec![not_ready; are_not]].concat()
    };
    for (slices, expected) in cases {
        let [creates, updates, unchanged] = slices.map(|slices| slices.iter().map(endpoints).collect());
        assert_eq!(ready_endpoints(&draft(creates, updates, unchanged)), expected);
    }
}

/// Cases of kube-controller-manager's `Test_checkNodeTopologyDistribution`. Columns: name, Nodes with zone and CPU,
/// number of endpoints hinted to each zone, true if the Service must be planned again.
#[test]
fn the_nine_cases_of_changed_nodes() {
    let (a, b, c) = ("zone-a", "zone-b", "zone-c");
    let even = || vec![node(b, "2"), node(b, "2"), node(c, "2"), node(c, "2")];
    let lopsided = || vec![node(a, "100m"), node(b, "1"), node(c, "2")];
    let uneven = || vec![node(a, "2"), node(b, "1"), node(c, "100m")];
    let with_unready = vec![unready(node(a, "100m")), node(b, "1"), node(c, "2")];
    let without_zone = vec![node(b, "2"), node("", "2"), node(c, "2"), node(c, "2")];
    let without_cpu = vec![node(b, "2"), node(b, "0"), node(c, "2"), node(c, "2")];
    type Case<'a> = (&'a str, Vec<Node>, &'a [(&'a str, usize)], bool);
    let cases: [Case<'_>; 9] = [
        ("empty", vec![], &[], false),
        ("lopsided", lopsided(), &[(a, 1), (b, 2), (c, 3)], true),
        ("lopsided, one unready", with_unready, &[(a, 1), (b, 2), (c, 3)], true),
        ("uneven endpoints within the threshold", even(), &[(b, 5), (c, 4)], false),
        ("a node without zone", without_zone, &[(b, 5), (c, 4)], true),
        ("a node without processors", without_cpu, &[(b, 5), (c, 4)], true),
        ("uneven endpoints beyond the threshold", even(), &[(b, 6), (c, 4)], true),
        ("three uneven zones that fit", uneven(), &[(a, 20), (b, 10), (c, 1)], false),
        ("a zone without endpoints", uneven(), &[(a, 20), (b, 10), (c, 0)], true),
    ];
    for (name, nodes, endpoints, must_sync) in cases {
        let mut topology = Topology::default();
        if !endpoints.is_empty() {
            let counts = endpoints.iter().map(|(zone, count)| ((*zone).into(), *count)).collect();
            topology.enter(&annotated("Auto"), &AddressType::IPv4, State::Hinted(counts));
        }
        let expected = if must_sync { vec![svc()] } else { vec![] };
        assert_eq!(topology.set_nodes(&nodes), expected, "{name}");
    }
}

/// Case of kube-controller-manager's `TestUpdateNode`. Here the Service is also planned again when its Nodes recover,
/// in contrast to kube-controller-manager (kubernetes/kubernetes #114215).
#[test]
fn a_service_without_hints_is_planned_again_when_nodes_recover() {
    let mut topology = with_nodes(&[node("", "100m"), node("", "100m")]);
    let service = annotated("Auto");
    let slices = || draft(vec![ready(&["zone-a", "zone-b"])], vec![], vec![]);
    topology.assign(&service, &mut slices());
    assert_eq!(events(&mut topology), [NO_NODES]);

    assert_eq!(topology.set_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)])), [svc()]);
    topology.assign(&service, &mut slices());
    assert_eq!(events(&mut topology), [ENABLED]);
    assert!(topology.has_hints(&service, &AddressType::IPv4));

    assert_eq!(topology.set_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)])), [], "nothing has changed");
}

/// Rule Z13: A Service asks for topology hints, or has a traffic distribution
/// Then: If the Service asks for topology hints, each zone gets endpoints in proportion to the CPU of its Nodes. Nodes
/// of the control plane do not count. The library sets no hints if the Service has too few endpoints or if a zone would
/// be overloaded. The library reports the decision about hints only when the decision changes. If the Service has a
/// traffic distribution, each endpoint has a hint for its own zone, or for its own Node
#[test]
fn events_tell_changes_only() {
    let mut topology = with_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)]));
    let service = annotated("Auto");
    let assign = |topology: &mut Topology, zones: &[&str]| {
        topology.assign(&service, &mut draft(vec![ready(zones)], vec![], vec![]));
        events(topology)
    };
    assert_eq!(assign(&mut topology, &["zone-a"]).len(), 1, "too few");
    assert_eq!(assign(&mut topology, &[]), [""; 0], "still too few, if fewer");
    assert_eq!(assign(&mut topology, &["zone-a", ""]).len(), 1, "for another reason");
    assert_eq!(assign(&mut topology, &["zone-a", "zone-b"]), [ENABLED]);
    assert_eq!(assign(&mut topology, &["zone-a", "zone-b"]), [""; 0]);
    topology.turned_off(&service, &AddressType::IPv4);
    topology.turned_off(&service, &AddressType::IPv4);
    let disabled = "Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled, addressType: IPv4";
    assert_eq!(events(&mut topology), [disabled]);
}

/// kube-controller-manager has one flag for both address types. If only one address type has hints, it emits an Event
/// for each of the two at every sync. Here each address type has its own state.
#[test]
fn address_types_have_hints_on_their_own() {
    let mut topology = with_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)]));
    let mut service = annotated("Auto");
    service.spec.ip_families = vec![ClusterIpFamily::IPv4, ClusterIpFamily::IPv6];
    for round in 0..3 {
        let mut v4 = draft(vec![ready(&["zone-a", "zone-b"])], vec![], vec![]);
        let mut v6 = Draft { address_type: AddressType::IPv6, ..draft(vec![vec![]], vec![], vec![]) };
        topology.assign(&service, &mut v4);
        topology.assign(&service, &mut v6);
        assert_eq!(topology.take_events().len(), if round == 0 { 2 } else { 0 });
    }
    assert!(topology.has_hints(&service, &AddressType::IPv4));
    assert!(!topology.has_hints(&service, &AddressType::IPv6));

    service.spec.ip_families = vec![ClusterIpFamily::IPv4];
    topology.assign(&service, &mut draft(vec![ready(&["zone-a", "zone-b"])], vec![], vec![]));
    let states = topology.services.get("ns", "svc").unwrap();
    assert_eq!(states.keys().collect::<Vec<_>>(), [&AddressType::IPv4], "the other type is forgotten");
}

#[test]
fn an_address_type_that_goes_together_with_the_annotation_is_forgotten() {
    let mut topology = with_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)]));
    let mut service = annotated("Auto");
    service.spec.ip_families = vec![ClusterIpFamily::IPv4, ClusterIpFamily::IPv6];
    for address_type in [AddressType::IPv4, AddressType::IPv6] {
        topology
            .assign(&service, &mut Draft { address_type, ..draft(vec![ready(&["zone-a", "zone-b"])], vec![], vec![]) });
    }
    service.spec.ip_families = vec![ClusterIpFamily::IPv4];
    topology.turned_off(&service, &AddressType::IPv4);
    assert!(topology.is_empty(), "nothing is planned for IPv6 any more");
    assert_eq!(topology.set_nodes(&[]), []);
}

#[test]
fn nothing_is_left_of_a_service_that_is_gone_or_asks_no_more() {
    let service = annotated("Auto");
    let mut topology = with_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)]));
    topology.assign(&service, &mut draft(vec![ready(&["zone-a", "zone-b"])], vec![], vec![]));
    topology.forget("ns", "svc");
    assert!(topology.is_empty());
    assert_eq!(topology.set_nodes(&[]), []);

    topology.assign(&service, &mut draft(vec![], vec![], vec![]));
    topology.turned_off(&service, &AddressType::IPv4);
    assert!(topology.is_empty());
}

/// Also rule Z13.
#[test]
fn endpoints_that_are_not_ready_lose_their_hints_when_their_slice_is_written() {
    let mut topology = with_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)]));
    let stale = with_readiness(Some(false), hinted(&["zone-a"], &[], in_zone("zone-a")));
    let mut slices = draft(vec![], vec![[ready(&["zone-a", "zone-b"]), vec![stale]].concat()], vec![]);
    topology.assign(&annotated("Auto"), &mut slices);
    assert_eq!(shown_draft(&slices)[1], ["zone-a zone-b -"]);
}

#[test]
fn removing_hints_writes_no_slice_that_has_no_hints() {
    let mut topology = with_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)]));
    let bare = ready(&["zone-a", "zone-b", ""]);
    let hinted = ready(&["zone-a"]).into_iter().map(|endpoint| hinted(&["zone-a"], &[], endpoint)).collect();
    let mut slices = draft(vec![ready(&["", "zone-b"])], vec![], vec![bare, hinted]);
    topology.assign(&annotated("Auto"), &mut slices);
    assert_eq!(shown_draft(&slices), [vec!["- -"], vec!["-"], vec!["- - -"]]);
    // No share changed, but the Node of the endpoint without a zone may have a zone now. So the Service is planned
    // again.
    assert_eq!(topology.set_nodes(&nodes(&[("zone-a", 100), ("zone-b", 100)])), [svc()]);
}

#[test]
fn events_that_nobody_takes_do_not_pile_up() {
    let mut topology = Topology::default();
    for number in 0..3000 {
        let mut service = annotated("Auto");
        service.metadata.name = format!("svc-{number}").into();
        topology.assign(&service, &mut draft(vec![], vec![], vec![]));
    }
    let events = topology.take_events();
    assert_eq!((events.len(), events[0].service.name.as_str()), (1024, "svc-1976"));
}

mod settled {
    //! Property test: for any zones and endpoints, plans soon have no writes any more if nothing else changes.

    use super::*;
    use crate::model::EndpointSlice;
    use crate::plan::Update;
    use property::{cases, for_any};
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any};
    use std::sync::Arc;

    const ZONES: [&str; 5] = ["zone-a", "zone-b", "zone-c", "zone-d", "zone-e"];

    fn endpoint() -> impl Strategy<Value = Endpoint> {
        let ready = proptest::prop_oneof![9 => proptest::strategy::Just(true), 1 => proptest::strategy::Just(false)];
        (0..ZONES.len(), ready, any::<bool>(), 0..ZONES.len()).prop_map(|(zone, ready, is_hinted, hint)| {
            let endpoint = with_readiness(Some(ready), in_zone(ZONES[zone]));
            if is_hinted { hinted(&[ZONES[hint]], &[], endpoint) } else { endpoint }
        })
    }

    /// Returns random created, updated and unchanged slices, either with many endpoints or with too few endpoints for
    /// all zones.
    fn slices() -> impl Strategy<Value = [Vec<Vec<Endpoint>>; 3]> {
        let of = |endpoints, slices| {
            let slices = move || vec(vec(endpoint(), 0..endpoints), 0..slices);
            [slices(), slices(), slices()]
        };
        proptest::prop_oneof![of(30, 4), of(4, 2)]
    }

    #[test]
    fn plans_come_to_rest() {
        for_any(cases(256), 10, &(vec(1_u32..100_000, 2..=4), slices()), |(milli, [creates, updates, unchanged])| {
            let zones: Vec<_> = ZONES.into_iter().zip(milli).collect();
            let mut topology = with_nodes(&nodes(&zones));
            let mut first = draft(creates, updates, unchanged);
            let was_hinted = has_hints(&first.unchanged);
            topology.assign(&annotated("Auto"), &mut first);
            let written = first.creates.into_iter().chain(first.updates.into_iter().map(|update| update.after));
            let mut slices: Vec<_> = first.unchanged.into_iter().chain(written.map(Arc::new)).collect();
            for plans in 1.. {
                let mut draft = Draft { unchanged: slices.clone(), ..Draft::default() };
                topology.assign(&annotated("Auto"), &mut draft);
                if draft.updates.is_empty() {
                    break;
                }
                assert!(plans < 8, "{:?}", shown_draft(&draft));
                for Update { before, after, .. } in draft.updates {
                    let at = slices.iter().position(|slice| Arc::ptr_eq(slice, &before)).unwrap();
                    slices[at] = Arc::new(after);
                }
            }
            let is_hinted = has_hints(&slices);
            [
                (is_hinted, "hinted in the end"),
                (!is_hinted && !slices.is_empty(), "without hints in the end"),
                (was_hinted && !is_hinted, "hints were removed"),
                (slices.iter().any(|slice| slice.endpoints.len() > 10), "of large slices"),
            ]
        });
    }

    fn has_hints(slices: &[Arc<EndpointSlice>]) -> bool {
        slices.iter().flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.hints.is_some())
    }
}
